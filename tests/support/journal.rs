//! A journal of a client's events.

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use redlatch::event::AttemptOutcome;
use redlatch::{Builder, Event, LockClient, Released};

use super::secret::shown;

/// A client that waits for all nodes, and the journal of its events.
#[track_caller]
pub fn recorded_client(builder: Builder) -> (LockClient, Journal) {
    let journal = Journal::default();
    let client = builder
        .wait_for_all(true)
        .on_event(journal.recorder())
        .build();
    (client.expect("the settings are good"), journal)
}

/// One event, with the details that tests check.
#[derive(Clone, Debug, Default)]
pub struct Entry {
    pub name: &'static str,
    /// The resource, the register or the node.
    pub about: String,
    pub text: String,
    /// Those of a lock, and the rounds about a register.
    pub attempts: u64,
    /// The duration in the event: of the attempt, the wait, the hold or the silence.
    pub span: Duration,
    pub validity: Duration,
    pub outcome: Option<AttemptOutcome>,
    pub released: Option<Released>,
}

impl Entry {
    pub fn of(event: &Event<'_>) -> Self {
        let resource = event
            .resource()
            .map(|name| String::from_utf8_lossy(name.as_bytes()).into_owned());
        let about = resource.or(event.url().map(str::to_owned));
        let about = about.expect("an event is about a resource, a register or a node");
        Self {
            name: event.name(),
            about,
            text: shown(event),
            attempts: attempts(event),
            span: span(event),
            validity: validity(event),
            outcome: match *event {
                Event::Attempt { outcome, .. } => Some(outcome),
                _ => None,
            },
            released: match *event {
                Event::Released { outcome, .. } => outcome,
                _ => None,
            },
        }
    }
}

fn attempts(event: &Event<'_>) -> u64 {
    match *event {
        Event::Attempt { number, .. } => number,
        Event::Acquired { attempts, .. }
        | Event::Contended { attempts, .. }
        | Event::Failed { attempts, .. } => attempts,
        Event::RegisterRead { rounds, .. } | Event::RegisterChanged { rounds, .. } => rounds.into(),
        _ => 0,
    }
}

fn span(event: &Event<'_>) -> Duration {
    match *event {
        Event::Attempt { took: span, .. }
        | Event::Quarantined { left: span, .. }
        | Event::Woken { waited: span, .. }
        | Event::Acquired { waited: span, .. }
        | Event::Contended { waited: span, .. }
        | Event::Failed { waited: span, .. }
        | Event::Extended { took: span, .. }
        | Event::NotExtended { took: span, .. }
        | Event::Lost { held: span, .. }
        | Event::Released { held: span, .. }
        | Event::LetExpire { held: span, .. }
        | Event::NodeSlow { silent: span, .. }
        | Event::RegisterRead { took: span, .. }
        | Event::RegisterChanged { took: span, .. }
        | Event::RegisterFailed { took: span, .. } => span,
        _ => Duration::ZERO,
    }
}

fn validity(event: &Event<'_>) -> Duration {
    match *event {
        Event::Acquired { validity, .. }
        | Event::Extended { validity, .. }
        | Event::NotExtended { validity, .. }
        | Event::Released {
            remaining: validity,
            ..
        }
        | Event::LetExpire {
            remaining: validity,
            ..
        } => validity,
        _ => Duration::ZERO,
    }
}

/// All events of one client, or of several.
#[derive(Clone, Default)]
pub struct Journal(Arc<Mutex<Vec<Entry>>>);

impl Journal {
    /// The callback for `on_event`. No event may show a password: see `secret`.
    pub fn recorder(&self) -> impl Fn(&Event<'_>) + Send + Sync + 'static {
        let journal = self.clone();
        move |event| journal.entries().push(Entry::of(event))
    }

    pub fn entries(&self) -> MutexGuard<'_, Vec<Entry>> {
        self.0.lock().expect("nothing panics with this lock held")
    }

    /// Removes and returns the events about locks and registers, in order. Keeps those about nodes.
    pub fn take_lock_events(&self) -> Vec<Entry> {
        let mut entries = self.entries();
        let (nodes, locks) = entries
            .drain(..)
            .partition(|entry| entry.name.starts_with("node"));
        *entries = nodes;
        locks
    }

    /// The names of the events about this node, in order.
    pub fn node_events(&self, url: &str) -> Vec<&'static str> {
        let entries = self.entries();
        entries
            .iter()
            .filter(|entry| entry.about == url)
            .map(|entry| entry.name)
            .collect()
    }
}

/// The names of the events.
pub fn names(entries: &[Entry]) -> Vec<&'static str> {
    entries.iter().map(|entry| entry.name).collect()
}
