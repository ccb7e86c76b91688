//! An event of each kind, for the tests of the bridges.

use crate::engine::NoVote;
use crate::error::{Error, LockLost, LossReason, RegisterError};
use crate::event::{AttemptOutcome, Event, Released};
use crate::inspect::NotALock;
use crate::name::Name;
use crate::node::{NodeError, QueueSupport};
use std::time::Duration;

/// Calls `each` with at least one event of each kind, in the order of the kinds.
pub(super) fn each(mut each: impl FnMut(&Event<'_>)) {
    let resource = Name::new(b"orders:42");
    let register = resource;
    let [took, waited, held] = [1, 20, 300].map(Duration::from_millis);
    let [validity, left, remaining] = [9, 60, 2].map(Duration::from_secs);
    let error = &Error::NoEntropy;
    let url = "redis://10.0.0.1:6379/0";
    let silent = waited;
    let expired = LossReason::Expired;
    let gone = LossReason::Gone;
    let not_extended = &Error::Lost(LockLost::new(*b"orders", gone));
    let outcome = Some(Released::InTime);
    let samples = [
        Event::Attempt {
            resource,
            number: 1,
            outcome: AttemptOutcome::Granted,
            took,
        },
        Event::Quarantined {
            resource,
            left,
            reports: &[],
        },
        Event::HeldByThisThread { resource },
        Event::Queued { resource, ahead: 3 },
        Event::Woken { resource, waited },
        Event::NotALock {
            resource,
            reason: NotALock::NoTtl,
        },
        Event::Acquired {
            resource,
            attempts: 1,
            waited,
            validity,
        },
        Event::Contended {
            resource,
            attempts: 1,
            waited,
        },
        Event::Failed {
            resource,
            attempts: 1,
            waited,
            error,
        },
        Event::Failed {
            resource,
            attempts: 1,
            waited,
            error: &Error::Cancelled,
        },
        Event::Extended {
            resource,
            took,
            validity,
            automatic: false,
        },
        Event::Extended {
            resource,
            took,
            validity,
            automatic: true,
        },
        Event::NotExtended {
            resource,
            took,
            validity,
            automatic: true,
            error: not_extended,
        },
        Event::Lost {
            resource,
            held,
            reason: expired,
        },
        Event::Released {
            resource,
            held,
            outcome,
            remaining,
        },
        Event::LetExpire {
            resource,
            held,
            remaining,
        },
        Event::NodeUp { url },
        Event::NodeDown {
            url,
            error: &NodeError::Overloaded,
        },
        Event::NodeSlow { url, silent },
        Event::NodeQueue {
            url,
            support: QueueSupport::WithoutPushes,
        },
        Event::NewReign {
            url,
            age: took,
            left,
        },
        Event::SessionLost {
            url: "zk://10.0.0.1:2181",
        },
        Event::NodeVotes { url },
        Event::NodeWithoutVote {
            url,
            reason: NoVote::Restarted,
        },
        Event::RegisterRead {
            register,
            rounds: 1,
            took,
        },
        Event::RegisterChanged {
            register,
            rounds: 2,
            took,
        },
        Event::RegisterFailed {
            register,
            took,
            error: &RegisterError::Unknown,
        },
    ];
    let mut names: Vec<_> = samples.iter().map(Event::name).collect();
    names.dedup();
    assert_eq!(names, Event::NAMES, "a new event needs a sample");
    samples.iter().for_each(&mut each);
}
