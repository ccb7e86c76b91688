//! Recording an acquisition for the listener: its attempts, its pauses, its result.

use super::LockClient;
use crate::clock::{self, Time};
use crate::core::LastRound;
use crate::engine::{Acquire, Acquired, Ballot, Input, Operation, Step, Verdict};
use crate::error::LockError;
use crate::event::{AttemptOutcome, Event};
use crate::guard::LockGuard;
use crate::name::Name;
use std::time::Duration;

/// Emits the events of one call that takes a lock.
pub(super) struct EventRecorder<'a> {
    client: &'a LockClient,
    resource: Name<'a>,
    began: Time,
    attempts: u64,
    attempt_began: Time,
    /// The latest attempt, until it is emitted: how long it took, and the votes.
    unemitted: Option<(Duration, Ballot)>,
    /// When the quarantine ends that was emitted last.
    quarantined_until: Time,
}

/// Servers before Redis 7 report their uptime in whole seconds. A quarantine that ends later than
/// the one that was emitted, by less than this, is the same one, and the attempt came a moment too
/// early.
const SAME_QUARANTINE: Duration = Duration::from_secs(2);

impl<'a> EventRecorder<'a> {
    pub(super) fn begin(client: &'a LockClient, resource: Name<'a>) -> Self {
        let now = clock::now();
        Self {
            client,
            resource,
            began: now,
            attempts: 0,
            attempt_began: now,
            unemitted: None,
            quarantined_until: Time::ZERO,
        }
    }

    pub(super) fn run(&mut self, acquire: Acquire) -> (Acquired, LastRound) {
        let client = self.client;
        let recorded = RecordedAcquire { acquire, recorder: self };
        client.core.run_observed(recorded, |recorded, last| recorded.recorder.emit_pause(last))
    }

    /// Emits the attempt before a pause, and the reason if the pause is a long one. Only now: the
    /// removal of the attempt's keys was sent, so nothing is left undone if the callback panics.
    /// Returns an outcome if the call must not go on.
    fn emit_pause(&mut self, last: &LastRound) -> Option<Acquired> {
        let (_, ballot) = self.unemitted.as_ref()?;
        let left = ballot.quarantine;
        self.emit_attempt(failure);
        let (resource, reports, until) = (self.resource, &*last.reports, clock::now().after(left));
        if !left.is_zero() && until > self.quarantined_until.after(SAME_QUARANTINE) {
            self.quarantined_until = until;
            self.client.core.emit(|| Event::Quarantined { resource, left, reports });
        }
        // If the callback has forked, the call goes on in the parent only.
        self.client.core.is_known_forked().then_some(Acquired::Contended)
    }

    /// Emits the result of the call. The guard is complete: if the callback panics, dropping the
    /// guard releases the lock.
    pub(super) fn emit_result(mut self, result: &Result<Option<LockGuard>, LockError>) {
        let outcome = match result {
            Ok(Some(_)) => AttemptOutcome::Granted,
            Ok(None) => AttemptOutcome::Contended,
            Err(LockError::TooSlow { .. }) => AttemptOutcome::TooSlow,
            Err(LockError::SameServer { .. }) => AttemptOutcome::SameServer,
            Err(_) => AttemptOutcome::NoQuorum,
        };
        self.emit_attempt(|_| outcome);
        let (resource, attempts) = (self.resource, self.attempts);
        let waited = clock::now().since(self.began);
        self.client.core.emit(|| match result {
            Ok(Some(guard)) => {
                Event::Acquired { resource, attempts, waited, validity: guard.remaining() }
            }
            Ok(None) => Event::Contended { resource, attempts, waited },
            Err(error) => Event::Failed { resource, attempts, waited, error },
        });
    }

    fn emit_attempt(&mut self, outcome: impl FnOnce(&Ballot) -> AttemptOutcome) {
        if let Some((took, ballot)) = self.unemitted.take() {
            let (resource, number, outcome) = (self.resource, self.attempts, outcome(&ballot));
            self.client.core.emit(|| Event::Attempt { resource, number, outcome, took });
        }
    }
}

/// An acquisition whose steps are recorded.
struct RecordedAcquire<'a, 'b> {
    acquire: Acquire,
    recorder: &'a mut EventRecorder<'b>,
}

impl Operation for RecordedAcquire<'_, '_> {
    type Outcome = Acquired;

    fn handle(&mut self, now: Time, input: Input) {
        match &input {
            Input::Attempt(_) => self.recorder.attempt_began = now,
            Input::Ballot(ballot) => {
                self.recorder.unemitted = Some((now.since(self.recorder.attempt_began), *ballot));
            }
            Input::NoEntropy => {}
        }
        self.acquire.handle(now, input);
    }

    fn poll(&mut self) -> Step<Acquired> {
        let step = self.acquire.poll();
        // The second round of a fenced lock is not a second attempt.
        if matches!(&step, Step::Send(request) if request.verb().is_acquisition()) {
            self.recorder.attempts += 1;
        }
        step
    }
}

/// How an attempt failed that was not the last.
fn failure(ballot: &Ballot) -> AttemptOutcome {
    if ballot.same_server {
        AttemptOutcome::SameServer
    } else if ballot.tally.granted_by_majority() == Verdict::Won {
        AttemptOutcome::TooSlow
    } else if ballot.tally.answered_by_majority() == Verdict::Won {
        AttemptOutcome::Contended
    } else {
        AttemptOutcome::NoQuorum
    }
}
