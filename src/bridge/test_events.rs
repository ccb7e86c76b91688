//! An event of each kind, for the tests of the bridges.

use crate::engine::NoVote;
use crate::error::{Error, LockLost, LossReason, RegisterError};
use crate::event::Released;
use crate::event::{AttemptOutcome, Event, RegisterEvent};
use crate::name::Name;
use crate::node::{NodeError, QueueSupport};
use std::time::Duration;

/// The number of kinds. Its `match` fails to compile when a kind is added, which then needs a
/// sample as well.
fn kind(event: &Event<'_>) -> usize {
    match event {
        Event::Attempt { .. } => 0,
        Event::Quarantined { .. } => 1,
        Event::Queued { .. } => 2,
        Event::Woken { .. } => 3,
        Event::Acquired { .. } => 4,
        Event::Contended { .. } => 5,
        Event::Failed { .. } => 6,
        Event::Extended { .. } => 7,
        Event::NotExtended { .. } => 8,
        Event::Lost { .. } => 9,
        Event::Released { .. } => 10,
        Event::LetExpire { .. } => 11,
        Event::NodeUp { .. } => 12,
        Event::NodeDown { .. } => 13,
        Event::NodeSlow { .. } => 14,
        Event::NodeQueue { .. } => 15,
        Event::SessionLost { .. } => 16,
        Event::Register(RegisterEvent::NodeVotes { .. }) => 17,
        Event::Register(RegisterEvent::NodeWithoutVote { .. }) => 18,
        Event::Register(RegisterEvent::Read { .. }) => 19,
        Event::Register(RegisterEvent::Changed { .. }) => 20,
        Event::Register(RegisterEvent::Failed { .. }) => 21,
    }
}

const KINDS: usize = 22;

/// Calls `each` with at least one event of each kind, in the order of the kinds.
pub(super) fn each(mut each: impl FnMut(&Event<'_>)) {
    let resource = Name::new(b"orders:42");
    let register = resource;
    let [took, waited, held] = [1, 20, 300].map(Duration::from_millis);
    let [validity, left, remaining] = [9, 60, 2].map(Duration::from_secs);
    let (error, url, silent) = (&Error::NoEntropy, "redis://10.0.0.1:6379/0", waited);
    let (expired, gone) = (LossReason::Expired, LossReason::Gone);
    let not_extended = &Error::Lost(LockLost::new(*b"orders", gone));
    let outcome = Some(Released::InTime);
    let samples = [
        Event::Attempt { resource, number: 1, outcome: AttemptOutcome::Granted, took },
        Event::Quarantined { resource, left, reports: &[] },
        Event::Queued { resource, place: 3 },
        Event::Woken { resource, waited },
        Event::Acquired { resource, attempts: 1, waited, validity },
        Event::Contended { resource, attempts: 1, waited },
        Event::Failed { resource, attempts: 1, waited, error },
        Event::Failed { resource, attempts: 1, waited, error: &Error::Cancelled },
        Event::Extended { resource, took, validity, is_automatic: false },
        Event::Extended { resource, took, validity, is_automatic: true },
        Event::NotExtended { resource, took, validity, error: not_extended, is_automatic: true },
        Event::Lost { resource, held, reason: expired },
        Event::Released { resource, held, outcome, remaining },
        Event::LetExpire { resource, held, remaining },
        Event::NodeUp { url },
        Event::NodeDown { url, error: &NodeError::Overloaded },
        Event::NodeSlow { url, silent },
        Event::NodeQueue { url, support: QueueSupport::WithoutPushes },
        Event::SessionLost { url: "zk://10.0.0.1:2181" },
        Event::Register(RegisterEvent::NodeVotes { url }),
        Event::Register(RegisterEvent::NodeWithoutVote { url, why: NoVote::Restarted }),
        Event::Register(RegisterEvent::Read { register, rounds: 1, took }),
        Event::Register(RegisterEvent::Changed { register, rounds: 2, took }),
        Event::Register(RegisterEvent::Failed { register, took, error: &RegisterError::Unknown }),
    ];
    let kinds: Vec<_> = samples.iter().map(kind).collect();
    assert!(kinds.is_sorted() && (0..KINDS).all(|kind| kinds.contains(&kind)), "{kinds:?}");
    samples.iter().for_each(&mut each);
}
