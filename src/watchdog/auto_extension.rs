//! One renewal: a lock of which an extension is under way.

use super::KeptLock;
use super::load;
use super::notifier::BackgroundEvent;
use crate::clock::{self, Time};
use crate::engine::{Extend, Extended, Input, Operation, Request, Rules, Step, Ttl};
use crate::error::{ExtendError, LockLost, NoQuorum};
use crate::net::Delivery;
use std::sync::Arc;
use std::time::Duration;

/// A lock that is to be renewed, or is being renewed.
pub(super) struct AutoExtension {
    kept: KeptLock,
    ttl: Ttl,
    /// Until when it is held as far as is known. Those that end first are renewed first.
    pub(super) ends_at: Time,
    /// How much of what may be under way it takes.
    pub(super) units: usize,
    began: Time,
    extend: Option<Extend>,
}

/// What a renewal came to.
pub(super) struct Settled {
    pub(super) kept: KeptLock,
    /// Until when the lock is held now.
    pub(super) standing: Result<Time, LockLost>,
    /// How long it took, if it was confirmed.
    pub(super) round: Option<Duration>,
    /// What there is to tell, if it was asked for.
    pub(super) news: Option<BackgroundEvent>,
}

impl AutoExtension {
    pub(super) fn new(kept: KeptLock, ttl: Ttl, ends_at: Time) -> Self {
        let units = load::units(kept.hold.key_bytes());
        Self { kept, ttl, ends_at, units, began: Time::ZERO, extend: None }
    }

    /// Leaves the extension for the nodes, and says whether it has: not if the lock is not held any
    /// more.
    pub(super) fn begin(&mut self, rules: &Arc<Rules>, send: impl FnOnce(Request)) -> bool {
        // Before the first byte is written: the lock must not look longer than it is.
        let now = clock::now();
        self.began = now;
        let (ttl, extend) = (self.ttl, &mut self.extend);
        let begun = self.kept.hold.begin(now, ttl, |lease| {
            // An answer that comes when the lock is over brings nothing.
            let end = lease.valid_until;
            let mut operation = Extend::new(Arc::clone(rules), lease, ttl, now);
            let Step::Send(request) = operation.poll() else { return false };
            send(Request { deadline: request.deadline.min(end), ..request });
            *extend = Some(operation);
            true
        });
        let is_sent = self.extend.is_some();
        if begun.is_ok() && !is_sent {
            // It would be held for too long.
            self.kept.plan.failed(now, Duration::ZERO, self.ends_at);
        }
        is_sent
    }

    /// The lock, if it is not to be renewed after all.
    pub(super) fn give_up(self) -> KeptLock {
        self.kept
    }

    /// Takes in what the nodes have answered. With `has_listener` there may be something to tell.
    pub(super) fn conclude(
        mut self,
        delivery: Delivery,
        rules: &Rules,
        has_listener: bool,
    ) -> Settled {
        // After the answer that decided it.
        let now = clock::now();
        let mut extend = self.extend.take().expect("what is under way has begun");
        extend.handle(now, Input::Ballot(delivery.returns.ballot));
        let Step::Done(outcome) = extend.poll() else {
            unreachable!("an extension is one attempt, and at once")
        };
        let (began, mut kept) = (self.began, self.kept);
        let (took, is_confirmed) = (now.since(began), matches!(outcome, Extended::Confirmed(_)));
        let standing = kept.hold.settle(now, outcome);
        if let Ok(valid_until) = standing {
            if is_confirmed {
                kept.plan.confirmed();
            } else {
                kept.plan.failed(now, took, valid_until);
            }
        }
        if let Some(tenure) = kept.tenure.as_ref().filter(|_| is_confirmed) {
            tenure.set_key_expiry(kept.hold.expires_at(rules));
        } else if let Some(tenure) = kept.tenure.as_ref().filter(|_| standing.is_err()) {
            // Those in line need not wait for the guard.
            tenure.set_key_expiry(kept.hold.valid_until());
        }
        let news = has_listener.then(|| {
            let valid_until = kept.hold.held_until(now).filter(|_| kept.is_told);
            let Some(valid_until) = valid_until else { return BackgroundEvent::Nodes };
            let no_quorum = || ExtendError::NoQuorum(NoQuorum::new(delivery.returns.reports));
            let error = (!is_confirmed).then(no_quorum);
            BackgroundEvent::AutoExtension {
                key: kept.hold.key(),
                took,
                validity: valid_until.since(now),
                error,
            }
        });
        Settled { kept, standing, round: is_confirmed.then_some(took), news }
    }
}
