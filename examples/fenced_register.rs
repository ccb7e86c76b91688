//! A holder that was stopped for longer than its lock was valid, and a register that refuses it.
//!
//! ```sh
//! cargo run --features embedded --example fenced_register
//! cargo run --features embedded --example fenced_register -- redis://a redis://b redis://c
//! ```
//!
//! Without arguments it starts five Redis-like nodes inside this process. Nodes of your own must be
//! a group that keeps registers: `Registers::form`.
//!
//! A lock ends by the clock, and its holder may be stopped at any moment: by SIGSTOP, by a machine
//! that swaps, or because the lid of a laptop was closed. `write_fenced` takes the lock's fencing
//! token, and refuses it once a larger one has written. So the register holds the result of the
//! last holder, and no database with a column for the token is needed.
//!
//! Here the holder is a process of its own, which SIGSTOP stops. On Windows, and in the tests of
//! this library, it is a thread that sleeps instead: to the lock and to the register that is the
//! same.

use redlatch::embedded::Nodes;
use redlatch::register::Register;
use redlatch::{FencingToken, LockClient, LockGuard, RegisterError};
use std::error::Error;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// Short, so that this program need not run for long.
const TTL: Duration = Duration::from_millis(500);

/// How many pages the first holder has written when it is stopped.
const PAGES: usize = 3;

/// The first argument of the process that is the first holder.
const HOLDER: &str = "holder";

type Failure = Box<dyn Error + Send + Sync>;

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match &arguments[..] {
        [] => {
            let nodes = Nodes::start(5)?;
            tell(&nodes.urls())
        }
        [first, name, urls @ ..] if first == HOLDER => hold(urls, name, |_| {}),
        urls => tell(urls),
    }
}

fn tell(urls: &[String]) -> Result<(), Failure> {
    if cfg!(unix) {
        story_of_a_process(urls)
    } else {
        story(urls)
    }
}

/// Alice is a process, and SIGSTOP stops her.
fn story_of_a_process(urls: &[String]) -> Result<(), Failure> {
    let name = format!("report:{}", std::process::id());
    let mut command = Command::new(std::env::current_exe()?);
    command
        .args([HOLDER, &name])
        .args(urls)
        .stdout(Stdio::piped());
    let mut alice = command.spawn()?;
    let output = alice.stdout.take().expect("it is piped");
    let mut lines = BufReader::new(output).lines();
    for line in lines.by_ref().take(1 + PAGES) {
        say(&line?);
    }
    signal(&alice, "STOP")?;
    say("Alice is stopped (SIGSTOP), with the lock in her hands.");
    let bobs = succeed(urls, &name);
    // Whatever became of that: a process that is stopped does not end by itself.
    signal(&alice, "CONT")?;
    say("Alice continues (SIGCONT).");
    for line in lines {
        say(&line?);
    }
    let is_refused = alice.wait()?.success();
    expect(is_refused, "the register refuses Alice's write")?;
    check(urls, &name, bobs?)
}

/// Alice is a thread, and sleeps. For the tests, which are not a program that can be started again.
pub(crate) fn story(urls: &[String]) -> Result<(), Failure> {
    let name = &format!("report:{}", std::process::id());
    let (stopped, is_stopped) = mpsc::channel();
    let (proceed, may_proceed) = mpsc::channel();
    thread::scope(|scope| {
        let alice = scope.spawn(move || {
            hold(urls, name, |pages| {
                if pages == PAGES {
                    say("Alice sleeps, with the lock in her hands.");
                    let _ = stopped.send(());
                    let _ = may_proceed.recv();
                }
            })
        });
        // Fails if Alice has failed; then her own error is returned.
        let bobs = is_stopped.recv().ok().map(|()| succeed(urls, name));
        let _ = proceed.send(());
        alice.join().expect("no thread panics")?;
        check(urls, name, bobs.expect("Alice was stopped")?)
    })
}

/// Alice writes a page after the other, until she is refused.
///
/// She does not ask her guard before each: it would tell her about the loss, but she may be stopped
/// between that answer and the write.
fn hold(urls: &[String], name: &str, mut after: impl FnMut(usize)) -> Result<(), Failure> {
    let client = LockClient::new(urls)?;
    let (lock, token) = take(&client, name)?;
    let report = client.register(name)?;
    say(&format!("Alice holds the lock, with the token {token}."));
    for page in 1.. {
        match report.write_fenced(token, format!("Alice's page {page}").as_bytes()) {
            Ok(Ok(_)) if page <= PAGES => say(&format!("   Alice has written page {page}.")),
            Ok(Ok(_)) => {}
            Ok(Err(stale)) => {
                say(&format!("   Alice's page {page} is refused: {stale}."));
                break;
            }
            // She was stopped during a round: the answers came, but after its time.
            Err(RegisterError::NoQuorum { error, .. }) => say(&format!("   again: {error}")),
            Err(error) => return Err(error.into()),
        }
        after(page);
        thread::sleep(Duration::from_millis(20));
    }
    expect(
        lock.ensure_held().is_err(),
        "Alice's guard reports the loss",
    )
}

/// Bob gets the lock when it has expired, and writes.
fn succeed(urls: &[String], name: &str) -> Result<FencingToken, Failure> {
    let client = LockClient::new(urls)?;
    let (lock, token) = take(&client, name)?;
    say(&format!("Bob holds the lock now, with the token {token}."));
    let written = client
        .register(name)?
        .write_fenced(token, b"Bob's page 1")?;
    expect(written.is_ok(), "the register accepts Bob's write")?;
    say("   Bob has written.");
    drop(lock);
    Ok(token)
}

/// The register has what Bob wrote, and knows his token.
fn check(urls: &[String], name: &str, bobs: FencingToken) -> Result<(), Failure> {
    let register: Register = LockClient::new(urls)?.register(name)?;
    let value = register.read()?.ok_or("the register has no value")?;
    let bytes = String::from_utf8_lossy(value.bytes()).into_owned();
    expect(bytes == "Bob's page 1", "the value is Bob's")?;
    expect(
        value.fence() == Some(bobs),
        "the register remembers Bob's token",
    )?;
    say(&format!("The register has {bytes:?}."));
    register.delete()?; // for this program; a report would be kept
    Ok(())
}

fn take(client: &LockClient, name: &str) -> Result<(LockGuard, FencingToken), Failure> {
    let lock = client.request(name).ttl(TTL).fenced().lock()?;
    let token = lock.fencing_token().expect("the request asked for a token");
    Ok((lock, token))
}

/// Sends a signal, by the shell: the standard library has no call for it.
fn signal(process: &Child, name: &str) -> Result<(), Failure> {
    let id = process.id().to_string();
    let done = Command::new("sh")
        .args(["-c", "kill -s \"$0\" \"$1\"", name, &id])
        .status()?;
    expect(done.success(), "a signal reaches one's own child")
}

fn expect(holds: bool, what: &str) -> Result<(), Failure> {
    if holds {
        Ok(())
    } else {
        Err(format!("this should be so: {what}").into())
    }
}

#[expect(clippy::print_stdout, reason = "this program reports on the terminal")]
fn say(line: &str) {
    println!("{line}");
}
