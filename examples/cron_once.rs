//! A job that several machines have in their crontabs, and that one of them runs.
//!
//! ```sh
//! cargo run --features embedded --example cron_once
//! cargo run --features embedded --example cron_once -- redis://a redis://b redis://c
//! ```
//!
//! Without arguments it starts five Redis-like nodes inside this process.
//!
//! The lock is named after the job and the time it is due, and it stays taken for a while when the
//! job is done: a machine whose clock is behind asks a moment later, and must not find it free. So
//! the lock is held for longer than the machines' clocks differ, however quick the job was.

use redlatch::embedded::Nodes;
use redlatch::{Error, LockClient};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

const MACHINES: [&str; 4] = ["alpha", "beta", "gamma", "delta"];

/// More than the machines' clocks differ, and less than the time from one run to the next.
const HOLD_AT_LEAST: Duration = Duration::from_secs(30);

/// How long a machine tries to acquire the lock.
const WAIT: Duration = Duration::from_secs(1);

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let urls: Vec<String> = std::env::args().skip(1).collect();
    if urls.is_empty() {
        let nodes = Nodes::start(5)?;
        story(&nodes.urls())
    } else {
        story(&urls)
    }
}

/// The job is due three times, on every machine.
pub(crate) fn story(urls: &[String]) -> Result<(), Box<dyn std::error::Error>> {
    let clients: Result<Vec<_>, _> = MACHINES.iter().map(|_| LockClient::new(urls)).collect();
    let clients = clients?;
    for due in ["02:00", "03:00", "04:00"] {
        // With the process number, so that a second start of this program runs the jobs again.
        let resource = format!("cron:report:{due}:{}", std::process::id());
        let runs = AtomicUsize::new(0);
        let results = thread::scope(|scope| {
            let machines: Vec<_> = clients
                .iter()
                .zip(MACHINES)
                .map(|(client, name)| {
                    let resource = &resource;
                    let runs = &runs;
                    scope.spawn(move || {
                        if name == "delta" {
                            thread::sleep(Duration::from_millis(100)); // its clock is behind
                        }
                        run_once(client, resource, || job(name, due, runs))
                    })
                })
                .collect();
            let results = machines
                .into_iter()
                .map(|machine| machine.join().expect("no panic"));
            results.collect::<Result<Vec<_>, _>>()
        })?;
        let runs = runs.into_inner();
        say(&format!(
            "The job of {due} was due on {} machines and ran on {runs}.",
            results.len()
        ));
        if runs != 1 {
            return Err("it should have run once".into());
        }
    }
    Ok(())
}

/// Does the work if no other machine does or has just done it. Says whether it did.
///
/// It asks for a while, and not once: machines that ask at the same moment can get some nodes
/// each and a majority none of them.
fn run_once(client: &LockClient, resource: &str, work: impl FnOnce()) -> Result<bool, Error> {
    let request = client.request(resource).hold_at_least(HOLD_AT_LEAST);
    let ran = request.try_with_lock_for(WAIT, |_lock| {
        work();
        Ok(())
    });
    match ran {
        Err(Error::NoQuorum(error)) => {
            // Too few nodes answered to know who holds the lock. Not running
            // is better than running twice.
            say(&format!("   not run: {error}"));
            Ok(false)
        }
        answer => Ok(answer?.is_some()),
    }
}

fn job(machine: &str, due: &str, runs: &AtomicUsize) {
    runs.fetch_add(1, Ordering::SeqCst);
    say(&format!("   {machine} writes the report of {due}."));
}

#[expect(clippy::print_stdout, reason = "this program reports on the terminal")]
fn say(line: &str) {
    println!("{line}");
}
