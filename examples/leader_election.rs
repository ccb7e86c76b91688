//! One of three candidates leads, and another takes over when it is gone.
//!
//! ```sh
//! cargo run --features embedded --example leader_election
//! cargo run --features embedded --example leader_election -- redis://a redis://b redis://c
//! ```
//!
//! Without arguments it starts five Redis-like nodes inside this process.
//!
//! The leader is the process that holds a lock and keeps extending it. The others wait in the
//! nodes' queue. When a leader resigns, it releases the lock, and the next candidate leads a few
//! milliseconds later. When a leader hangs or dies, the next one takes over as soon as the ttl has
//! passed.

use redlatch::embedded::Nodes;
use redlatch::{ExtendError, LockClient, LockGuard, LockLost, ReleaseError};
use std::error::Error;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// When a leader dies, there is none for this time. Short, so that this program ends soon.
const TTL: Duration = Duration::from_secs(1);

/// How often the lock is extended: several times within its ttl, so that one may fail.
const BEAT: Duration = Duration::from_millis(200);

type Failure = Box<dyn Error + Send + Sync>;

/// What the candidates note for the report of this program. They need none of it to elect a leader.
#[derive(Default)]
struct Terms {
    count: AtomicUsize,
    /// When the last leader began to release the lock.
    resigned: Mutex<Option<Instant>>,
}

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
    let terms = Terms::default();
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
    say(&format!("{} terms are enough.", terms.count.into_inner()));
    Ok(())
}

/// Leads once. The owner's label shows the leader's name to programs that inspect the lock.
fn campaign(client: &LockClient, name: &str, resource: &str, terms: &Terms) -> Result<(), Failure> {
    let request = client.request(resource).ttl(TTL).owner(name);
    let lock = request.lock()?;
    let term = 1 + terms.count.fetch_add(1, Ordering::SeqCst);
    let resigned = terms.resigned.lock().expect("nobody panics with it").take();
    match resigned.map(|time| time.elapsed()) {
        None => say(&format!("{name} leads: term {term}.")),
        Some(after) if after > TTL => return Err(format!("no leader for {after:?}").into()),
        Some(after) => say(&format!("{name} leads: term {term}, {after:.1?} after the release.")),
    }
    if term == 2 { hang(name, &lock) } else { lead(name, lock, terms) }
}

/// Leads for a while and resigns, or stops when the lock is lost.
fn lead(name: &str, mut lock: LockGuard, terms: &Terms) -> Result<(), Failure> {
    for _ in 0..3 {
        // The leader's work goes here. Check the lock right before each step.
        if let Err(lost) = lock.ensure_held() {
            return step_down(name, &lost);
        }
        thread::sleep(BEAT);
        match lock.extend(TTL) {
            Ok(()) => say(&format!("   {name} still leads.")),
            // Too few nodes answered. The lock stays valid until the end of its last extension.
            Err(ExtendError::NoQuorum(error)) => say(&format!("   {name} tries again: {error}")),
            Err(ExtendError::Lost(lost)) => return step_down(name, &lost),
            Err(error) => return Err(error.into()),
        }
    }
    *terms.resigned.lock().expect("nobody panics with it") = Some(Instant::now());
    match lock.release() {
        Ok(()) => say(&format!("{name} resigns.")),
        Err(ReleaseError::Lost(lost)) => return step_down(name, &lost),
        Err(error) => say(&format!("{name} resigns, and the ttl ends the lock: {error}.")),
    }
    Ok(())
}

/// Another process may lead by now.
fn step_down(name: &str, lost: &LockLost) -> Result<(), Failure> {
    say(&format!("{name} leads no more: {lost}."));
    Ok(())
}

/// Does nothing for longer than the ttl, as a process does that was stopped.
fn hang(name: &str, lock: &LockGuard) -> Result<(), Failure> {
    say(&format!("   {name} hangs."));
    thread::sleep(TTL + BEAT);
    match lock.ensure_held() {
        Err(lost) => say(&format!("   {name} continues, and its guard reports: {lost}.")),
        Ok(()) => return Err("the guard does not report that the lock has expired".into()),
    }
    Ok(())
}

#[expect(clippy::print_stdout, reason = "this program reports on the terminal")]
fn say(line: &str) {
    println!("{line}");
}
