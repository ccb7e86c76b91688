//! One of three candidates leads, and another takes over when it is gone.
//!
//! ```sh
//! cargo run --example leader_election
//! cargo run --example leader_election -- redis://a redis://b redis://c
//! ```
//!
//! Without arguments it starts five Redis-like nodes inside this process.
//!
//! A leader is who holds a lock, for as long as it keeps extending it. One that gives up says so by
//! releasing it; one that hangs or dies is followed when the ttl has passed.

use redlatch::embedded::Nodes;
use redlatch::{ExtendError, LockClient, LockGuard, LockLost};
use std::error::Error;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

/// Short, so that this program need not run for long: so long nobody leads when a leader has died.
const TTL: Duration = Duration::from_secs(1);

/// How often the lock is extended: several times within its ttl, so that one may fail.
const BEAT: Duration = Duration::from_millis(200);

type Failure = Box<dyn Error + Send + Sync>;

fn main() -> Result<(), Failure> {
    let urls: Vec<String> = std::env::args().skip(1).collect();
    if urls.is_empty() {
        let nodes = Nodes::start(5)?;
        story(&nodes.urls())
    } else {
        story(&urls)
    }
}

/// Three terms: the first leader resigns, the second one hangs, the third one resigns.
pub(crate) fn story(urls: &[String]) -> Result<(), Failure> {
    let resource = format!("leader:{}", std::process::id());
    let terms = AtomicUsize::new(0);
    thread::scope(|scope| {
        let candidates: Vec<_> = ["alice", "bob", "carol"]
            .into_iter()
            .map(|name| {
                let (resource, terms) = (&resource, &terms);
                // Each with a client of its own, as programs on three machines have them.
                scope.spawn(move || campaign(&LockClient::new(urls)?, name, resource, terms))
            })
            .collect();
        candidates.into_iter().try_for_each(|thread| thread.join().expect("a candidate panicked"))
    })?;
    say(&format!("{} terms are enough.", terms.into_inner()));
    Ok(())
}

/// Wants to lead once. The label says to whoever looks at the lock who leads.
fn campaign(
    client: &LockClient,
    name: &str,
    resource: &str,
    terms: &AtomicUsize,
) -> Result<(), Failure> {
    let request = client.request(resource).ttl(TTL).owner(name);
    let lock = request.lock()?;
    let term = 1 + terms.fetch_add(1, Ordering::SeqCst);
    say(&format!("{name} leads: term {term}."));
    if term == 2 { hang(name, &lock) } else { lead(name, lock) }
}

/// Leads for a while, and resigns, or stops when it is too late.
fn lead(name: &str, mut lock: LockGuard) -> Result<(), Failure> {
    for _ in 0..3 {
        // What only the leader may do goes here, with a look at the clock right before it.
        if let Err(lost) = lock.ensure_held() {
            return step_down(name, &lost);
        }
        thread::sleep(BEAT);
        match lock.extend(TTL) {
            Ok(()) => say(&format!("   {name} still leads.")),
            // Too few nodes answered. What was granted before is good until its time is over.
            Err(ExtendError::NoQuorum(error)) => say(&format!("   {name} tries again: {error}")),
            Err(ExtendError::Lost(lost)) => return step_down(name, &lost),
            Err(error) => return Err(error.into()),
        }
    }
    match lock.release() {
        Ok(released) => say(&format!("{name} resigns: {released:?}.")),
        Err(error) => say(&format!("{name} resigns, and the ttl does the rest: {error}.")),
    }
    Ok(())
}

/// Somebody else may lead by now.
fn step_down(name: &str, lost: &LockLost) -> Result<(), Failure> {
    say(&format!("{name} leads no more: {lost}."));
    Ok(())
}

/// Does nothing for longer than the ttl, as a process does that was stopped.
fn hang(name: &str, lock: &LockGuard) -> Result<(), Failure> {
    say(&format!("   {name} hangs."));
    thread::sleep(TTL + BEAT);
    match lock.ensure_held() {
        Err(lost) => say(&format!("   {name} comes to itself and knows: {lost}.")),
        Ok(()) => return Err("the guard does not know that its time is over".into()),
    }
    Ok(())
}

#[expect(clippy::print_stdout, reason = "this program is here to tell something")]
fn say(line: &str) {
    println!("{line}");
}
