//! One automatic extension: due, under way, finished.

use super::KeptLock;
use super::load;
use super::notifier::BackgroundEvent;
use crate::clock::{self, Time};
use crate::engine::{Extend, Extended, Input, Operation, Request, Rules, Step, Ttl};
use crate::error::{Error, LossReason, NoQuorum};
use crate::net::RoundOutcome;
use std::sync::Arc;
use std::time::Duration;

/// An extension that is due or under way.
pub(super) struct AutoExtension {
    kept: KeptLock,
    ttl: Ttl,
    /// Until when the lock was held when this became due. Locks that expire first come first.
    pub(super) valid_until: Time,
    /// How much it counts towards the limit of what is under way.
    pub(super) units: usize,
    began: Time,
    extend: Option<Extend>,
}

/// The result of an extension.
pub(super) struct FinishedExtension {
    pub(super) kept: KeptLock,
    /// Until when the lock is held now.
    pub(super) held_until: Result<Time, LossReason>,
    /// How long the round took, if it was confirmed.
    pub(super) round: Option<Duration>,
    /// The event to emit, if there is a listener.
    pub(super) event: Option<BackgroundEvent>,
}

impl AutoExtension {
    pub(super) fn new(kept: KeptLock, ttl: Ttl, valid_until: Time) -> Self {
        let units = load::units(kept.held.key_bytes());
        Self { kept, ttl, valid_until, units, began: Time::ZERO, extend: None }
    }

    /// Posts the extension to the nodes, and says whether it has: not if the lock is not held any
    /// more, or would be held for too long.
    pub(super) fn begin(&mut self, rules: &Arc<Rules>, send: impl FnOnce(Request)) -> bool {
        // Before the first byte is written: the lock must not look longer than it is.
        let now = clock::now();
        self.began = now;
        let (ttl, extend) = (self.ttl, &mut self.extend);
        let begun = self.kept.held.begin_extension(now, ttl, |held| {
            // An answer that comes after the validity has no effect.
            let end = held.valid_until;
            let mut operation = Extend::new(Arc::clone(rules), held, ttl, now);
            let Step::Send(request) = operation.poll() else { return false };
            send(request.ending_by(end));
            *extend = Some(operation);
            true
        });
        let is_sent = self.extend.is_some();
        if begun.is_ok() && !is_sent {
            // The lock would be held for too long.
            self.kept.plan.failed(now, Duration::ZERO, self.valid_until);
        }
        is_sent
    }

    /// The lock of an extension that is dropped.
    pub(super) fn into_lock(self) -> KeptLock {
        self.kept
    }

    /// Handles the answers of the nodes. With `has_listener` there may be an event to emit.
    pub(super) fn finish(
        mut self,
        votes: RoundOutcome,
        rules: &Rules,
        has_listener: bool,
    ) -> FinishedExtension {
        // After the answer that decided it.
        let now = clock::now();
        let mut extend = self.extend.take().expect("an extension under way has begun");
        extend.handle(now, Input::Ballot(votes.ballot));
        let Step::Done(outcome) = extend.poll() else {
            unreachable!("an extension is one attempt, without a pause")
        };
        let (began, mut kept) = (self.began, self.kept);
        let (took, is_confirmed) = (now.since(began), matches!(outcome, Extended::Confirmed(_)));
        let held_until = kept.held.finish_extension(now, outcome);
        if let Ok(valid_until) = held_until {
            if is_confirmed {
                kept.plan.confirmed();
            } else {
                kept.plan.failed(now, took, valid_until);
            }
        }
        if let Some(head) = kept.head.as_ref().filter(|_| is_confirmed) {
            head.set_key_expiry(kept.held.key_expires_at(rules));
        } else if let Some(head) = kept.head.as_ref().filter(|_| held_until.is_err()) {
            // The next waiter need not wait for the guard to be dropped.
            head.set_key_expiry(kept.held.valid_until());
        }
        let event = has_listener.then(|| {
            let valid_until = kept.held.held_until(now).filter(|_| kept.is_emitted);
            let Some(valid_until) = valid_until else { return BackgroundEvent::Nodes };
            if !is_confirmed && !kept.plan.is_to_report(now) {
                return BackgroundEvent::Nodes;
            }
            let no_quorum = || Error::NoQuorum(NoQuorum::new(votes.reports));
            let error = (!is_confirmed).then(no_quorum);
            let key = Arc::clone(&kept.held.granted().key);
            BackgroundEvent::AutoExtension { key, took, validity: valid_until.since(now), error }
        });
        FinishedExtension { kept, held_until, round: is_confirmed.then_some(took), event }
    }
}
