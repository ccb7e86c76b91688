//! An event of each kind, for the tests of the bridges.

use crate::engine::NoVote;
use crate::error::{Error, LockLost, LossReason, RegisterError};
use crate::event::{AttemptOutcome, Event, Released};
use crate::inspect::NotALock;
use crate::name::Name;
use crate::node::{NodeError, QueueSupport};
use std::time::Duration;

const RESOURCE: Name<'_> = Name::new(b"orders:42");
const TOOK: Duration = Duration::from_millis(1);
const WAITED: Duration = Duration::from_millis(20);
const HELD: Duration = Duration::from_millis(300);
const VALIDITY: Duration = Duration::from_secs(9);
const LEFT: Duration = Duration::from_secs(60);
const REMAINING: Duration = Duration::from_secs(2);
const URL: &str = "redis://10.0.0.1:6379/0";

/// Calls `each` with at least one event of each kind, in the order of the kinds.
pub(super) fn each(each: impl FnMut(&Event<'_>)) {
    let lost = Error::Lost(LockLost::new(*b"orders", LossReason::Gone));
    let mut samples = of_calls();
    samples.extend(of_guards(&lost));
    samples.extend(of_nodes());
    samples.extend(of_registers());
    let mut names: Vec<_> = samples.iter().map(Event::name).collect();
    names.dedup();
    assert_eq!(names, Event::NAMES, "a new event needs a sample");
    samples.iter().for_each(each);
}

fn of_calls() -> Vec<Event<'static>> {
    let resource = RESOURCE;
    let took = TOOK;
    let waited = WAITED;
    let validity = VALIDITY;
    let left = LEFT;
    let error = &Error::NoEntropy;
    vec![
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
    ]
}

fn of_guards(not_extended: &Error) -> Vec<Event<'_>> {
    let resource = RESOURCE;
    let took = TOOK;
    let held = HELD;
    let validity = VALIDITY;
    let remaining = REMAINING;
    let expired = LossReason::Expired;
    let outcome = Some(Released::InTime);
    vec![
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
    ]
}

fn of_nodes() -> Vec<Event<'static>> {
    let url = URL;
    let took = TOOK;
    let left = LEFT;
    let silent = WAITED;
    vec![
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
    ]
}

fn of_registers() -> Vec<Event<'static>> {
    let register = RESOURCE;
    let took = TOOK;
    vec![
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
    ]
}
