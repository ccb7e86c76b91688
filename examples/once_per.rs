//! A daily job that every machine's crontab starts, and that one of them runs.
//!
//! ```sh
//! cargo run --features embedded --example once_per
//! cargo run --features embedded --example once_per -- redis://a redis://b redis://c
//! ```
//!
//! Without arguments it starts three Redis-like nodes inside this process.
//!
//! A lock that stays taken remembers the last run, so nothing depends on the clocks of the
//! machines. (With `exact`, it is a register, which no minority of the nodes can forget.) A run
//! that fails is tried again by whoever calls next.

use redlatch::embedded::Nodes;
use redlatch::{LockClient, OncePerRun};
use std::error::Error;
use std::thread;
use std::time::Duration;

type Failure = Box<dyn Error + Send + Sync>;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

fn main() -> Result<(), Failure> {
    let urls: Vec<String> = std::env::args().skip(1).collect();
    if urls.is_empty() {
        story(&Nodes::start(3)?.urls())
    } else {
        story(&urls)
    }
}

pub(crate) fn story(urls: &[String]) -> Result<(), Failure> {
    // With the process number, so that a second start of this program runs the job again.
    let job = format!("report:{}", std::process::id());
    let first = LockClient::new(urls)?;
    let failed = call(&first, &job, || Err("no paper".into()));
    match failed {
        Err(error) => say(&format!(
            "alpha has failed: {error}. The next one tries again."
        )),
        Ok(_) => return Err("a job that fails is an error".into()),
    }
    let ran = thread::scope(|scope| {
        let machines: Vec<_> = ["beta", "gamma", "delta"]
            .into_iter()
            .map(|name| {
                let job = &job;
                scope.spawn(move || machine(&LockClient::new(urls)?, job, name))
            })
            .collect();
        let ran = machines
            .into_iter()
            .map(|machine| machine.join().expect("no panic"));
        ran.collect::<Result<Vec<_>, Failure>>()
    })?;
    let runs = ran.iter().filter(|ran| **ran).count();
    say(&format!(
        "Three machines were started, and {runs} has run the job."
    ));
    // Whoever asks later learns when it is due.
    match call(&first, &job, || Ok(0))? {
        OncePerRun::NotDue { left, .. } if runs == 1 => say(&format!("Due again in {left:.0?}.")),
        other => return Err(format!("{runs} runs, then {other:?}").into()),
    }
    first.force_release(&first.inspect(format!("once_per:{job}"))?)?; // it is needed no more
    Ok(())
}

/// What the crontab starts. Says whether the job ran here.
fn machine(client: &LockClient, job: &str, name: &str) -> Result<bool, Failure> {
    match call(client, job, || Ok(42))? {
        OncePerRun::Ran(pages) => {
            say(&format!("   {name} has written {pages} pages."));
            return Ok(true);
        }
        OncePerRun::NotDue { .. } => say(&format!("   {name}: it was written today.")),
        _ => say(&format!("   {name}: another machine is writing it.")),
    }
    Ok(false)
}

fn call(
    client: &LockClient,
    job: &str,
    work: impl FnOnce() -> Result<u32, Failure>,
) -> Result<OncePerRun<u32>, Failure> {
    client.once_per(job, DAY).retry_failed().run(|lock| {
        lock.ensure_held()?;
        work()
    })
}

#[expect(clippy::print_stdout, reason = "this program reports on the terminal")]
fn say(line: &str) {
    println!("{line}");
}
