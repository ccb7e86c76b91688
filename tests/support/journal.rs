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
        let entry = Self {
            name: event.name(),
            about,
            text: shown(event),
            ..Self::default()
        };
        match *event {
            Event::Attempt {
                number,
                outcome,
                took,
                ..
            } => Self {
                attempts: number,
                outcome: Some(outcome),
                span: took,
                ..entry
            },
            Event::Quarantined { left, .. } => Self {
                span: left,
                ..entry
            },
            Event::Woken { waited, .. } => Self {
                span: waited,
                ..entry
            },
            Event::Acquired {
                attempts,
                waited,
                validity,
                ..
            } => Self {
                attempts,
                span: waited,
                validity,
                ..entry
            },
            Event::Contended {
                attempts, waited, ..
            }
            | Event::Failed {
                attempts, waited, ..
            } => Self {
                attempts,
                span: waited,
                ..entry
            },
            Event::Extended { took, validity, .. } | Event::NotExtended { took, validity, .. } => {
                Self {
                    span: took,
                    validity,
                    ..entry
                }
            }
            Event::Lost { held, .. } => Self {
                span: held,
                ..entry
            },
            Event::Released {
                held,
                outcome,
                remaining,
                ..
            } => Self {
                span: held,
                validity: remaining,
                released: outcome,
                ..entry
            },
            Event::LetExpire {
                held, remaining, ..
            } => Self {
                span: held,
                validity: remaining,
                ..entry
            },
            Event::NodeSlow { silent, .. } => Self {
                span: silent,
                ..entry
            },
            Event::RegisterRead { rounds, took, .. }
            | Event::RegisterChanged { rounds, took, .. } => Self {
                attempts: rounds.into(),
                span: took,
                ..entry
            },
            Event::RegisterFailed { took, .. } => Self {
                span: took,
                ..entry
            },
            _ => entry,
        }
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
