//! One of three candidates leads, and another takes over when it is gone.
//!
//! ```sh
//! cargo run --features embedded --example leader_election
//! cargo run --features embedded --example leader_election -- redis://a redis://b redis://c
//! ```
//!
//! Without arguments it starts five Redis-like nodes inside this process.
//!
//! The leader holds a lock, which is kept alive. The others wait in the nodes' queue. When a leader
//! resigns, the next candidate leads a few milliseconds later. When its process dies, as soon as
//! the ttl has passed. When an operator deposes it, at once: the old leader learns of it a little
//! later, and what it does until then is told by its epoch, which is smaller than the new one.

use redlatch::embedded::Nodes;
use redlatch::{Error, FencingToken, Leadership, LockClient};
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

/// When a leader dies, there is none for this time. Short, so that this program ends soon.
const TTL: Duration = Duration::from_secs(2);

/// How long each step of the leader's work takes.
const STEP: Duration = Duration::from_millis(200);

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// What the leaders work on: it refuses an epoch that is smaller than one that it has seen.
#[derive(Default)]
struct Journal {
    entries: Vec<(FencingToken, String)>,
    /// How many leaders there were, and when the last one began to resign.
    terms: usize,
    resigned: Option<Instant>,
}

impl Journal {
    fn write(&mut self, epoch: FencingToken, name: &str) -> bool {
        let is_current = self.entries.last().is_none_or(|(last, _)| *last <= epoch);
        if is_current {
            self.entries.push((epoch, name.to_owned()));
        }
        is_current
    }
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

/// Three terms: the first leader resigns, the second one is deposed, the third one resigns.
pub(crate) fn story(urls: &[String]) -> Result<(), Failure> {
    let name = format!("leader:{}", std::process::id());
    let journal = Mutex::new(Journal::default());
    thread::scope(|scope| {
        let candidates: Vec<_> = ["alice", "bob", "carol"]
            .into_iter()
            .map(|candidate| {
                let name = &name;
                let journal = &journal;
                // Each with a client of its own, as programs on three machines have them.
                scope.spawn(move || run(&LockClient::new(urls)?, name, candidate, journal))
            })
            .collect();
        candidates
            .into_iter()
            .try_for_each(|thread| thread.join().expect("a candidate panicked"))
    })?;
    let journal = journal.into_inner().expect("nobody panics with it");
    if !journal.entries.is_sorted_by_key(|(epoch, _)| epoch) || journal.entries.len() < 9 {
        return Err(format!("two leaders at a time: {:?}", journal.entries).into());
    }
    say(&format!("{} terms are enough.", journal.terms));
    Ok(())
}

/// Leads once.
fn run(
    client: &LockClient,
    name: &str,
    candidate: &str,
    journal: &Mutex<Journal>,
) -> Result<(), Failure> {
    let election = client.election(name).name(candidate).ttl(TTL);
    let leadership = election.campaign()?;
    let (term, resigned) = {
        let mut journal = journal.lock().expect("nobody panics with it");
        journal.terms += 1;
        (journal.terms, journal.resigned.take())
    };
    match resigned.map(|time| time.elapsed()) {
        Some(after) if after > TTL => return Err(format!("no leader for {after:?}").into()),
        Some(after) => {
            say(&format!(
                "{candidate} leads: term {term}, {after:.1?} after the release."
            ));
        }
        None => say(&format!("{candidate} leads: term {term}.")),
    }
    let leader = election
        .leader()?
        .and_then(|it| it.owner().map(|name| name.to_string()));
    say(&format!(
        "   Everybody sees that {} leads.",
        leader.unwrap_or_default()
    ));
    let lost_by = candidate.to_owned();
    leadership.on_lost(move |lost| say(&format!("{lost_by} leads no more: {lost}.")))?;
    if term == 2 {
        // An operator deposes it: `redlatch release --force` does the same.
        say(&format!("   {candidate} is deposed."));
        client.force_release(&client.inspect(name)?)?;
    }
    work(candidate, &leadership, journal);
    if term != 2 {
        journal.lock().expect("nobody panics with it").resigned = Some(Instant::now());
    }
    match leadership.resign() {
        Ok(()) => say(&format!("{candidate} resigns.")),
        Err(Error::Lost(_)) if term == 2 => {}
        Err(error) => say(&format!(
            "{candidate} resigns, and the ttl ends the lock: {error}."
        )),
    }
    Ok(())
}

/// The leader's work: five steps, or until it is deposed.
fn work(candidate: &str, leadership: &Leadership, journal: &Mutex<Journal>) {
    for _ in 0..5 {
        if !leadership.is_leader() {
            return;
        }
        let is_written = journal
            .lock()
            .expect("nobody panics with it")
            .write(leadership.epoch(), candidate);
        if !is_written {
            // It has not been told yet that another one leads.
            say(&format!(
                "   {candidate} of epoch {} is refused.",
                leadership.epoch()
            ));
        }
        thread::sleep(STEP);
    }
}

#[expect(clippy::print_stdout, reason = "this program reports on the terminal")]
fn say(line: &str) {
    println!("{line}");
}
