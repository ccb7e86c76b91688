//! An acquisition that somebody listens to: the same, with an account of its attempts.

use super::LockClient;
use crate::clock::{self, Time};
use crate::core::LastRound;
use crate::engine::{Acquire, Acquired, Ballot, Input, Operation, Step, Verdict};
use crate::error::LockError;
use crate::event::{AttemptOutcome, Event};
use crate::guard::LockGuard;
use crate::name::Name;
use std::time::Duration;

/// What is told about one call.
pub(super) struct EventRecorder<'a> {
    client: &'a LockClient,
    resource: Name<'a>,
    began: Time,
    attempts: u64,
    attempt_began: Time,
    /// The latest attempt, as long as it has not been told: how long it took, and the votes.
    untold: Option<(Duration, Ballot)>,
    /// When the quarantine ends that has been told last.
    quarantined_until: Time,
}

/// Servers before Redis 7 say in whole seconds for how long they have been up: a quarantine that
/// ends later than was told by less than this is the same one, and an attempt came a moment too
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
            untold: None,
            quarantined_until: Time::ZERO,
        }
    }

    pub(super) fn run(&mut self, acquire: Acquire) -> (Acquired, LastRound) {
        let client = self.client;
        let accounted = RecordedAcquire { acquire, account: self };
        client.core.run_paused(accounted, |accounted, last, until| {
            accounted.account.tell_rest(last).or_else(|| client.pause(until))
        })
    }

    /// Tells the attempt after which the caller rests, and why it rests for so long. Only then:
    /// what this attempt left behind has been removed, and nothing is owed if who is told panics.
    /// An outcome if the call does not go on.
    fn tell_rest(&mut self, last: &LastRound) -> Option<Acquired> {
        let (_, ballot) = self.untold.as_ref()?;
        let left = ballot.quarantine;
        self.tell_attempt(failure);
        let (resource, reports, until) = (self.resource, &*last.reports, clock::now().after(left));
        if !left.is_zero() && until > self.quarantined_until.after(SAME_QUARANTINE) {
            self.quarantined_until = until;
            self.client.core.emit(|| Event::Quarantined { resource, left, reports });
        }
        // If who was told has forked, the call goes on in the parent only.
        self.client.core.is_known_forked().then_some(Acquired::Contended)
    }

    /// Tells what the call came to. The guard is complete: if who is told panics, dropping it gives
    /// the lock back.
    pub(super) fn conclude(mut self, result: &Result<Option<LockGuard>, LockError>) {
        let outcome = match result {
            Ok(Some(_)) => AttemptOutcome::Granted,
            Ok(None) => AttemptOutcome::Contended,
            Err(LockError::TooSlow { .. }) => AttemptOutcome::TooSlow,
            Err(LockError::SameServer { .. }) => AttemptOutcome::SameServer,
            Err(_) => AttemptOutcome::NoQuorum,
        };
        // Whatever the attempt came to, a cancelled call returns the same error.
        let is_cancelled = matches!(result, Err(LockError::Cancelled));
        self.tell_attempt(|ballot| if is_cancelled { last_of_cancelled(ballot) } else { outcome });
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

    fn tell_attempt(&mut self, outcome: impl FnOnce(&Ballot) -> AttemptOutcome) {
        if let Some((took, ballot)) = self.untold.take() {
            let (resource, number, outcome) = (self.resource, self.attempts, outcome(&ballot));
            self.client.core.emit(|| Event::Attempt { resource, number, outcome, took });
        }
    }
}

/// An acquisition, and the account of it.
struct RecordedAcquire<'a, 'b> {
    acquire: Acquire,
    account: &'a mut EventRecorder<'b>,
}

impl Operation for RecordedAcquire<'_, '_> {
    type Outcome = Acquired;

    fn handle(&mut self, now: Time, input: Input) {
        match &input {
            Input::Attempt(_) => self.account.attempt_began = now,
            Input::Ballot(ballot) => {
                self.account.untold = Some((now.since(self.account.attempt_began), *ballot));
            }
            Input::NoEntropy => {}
        }
        self.acquire.handle(now, input);
    }

    fn poll(&mut self) -> Step<Acquired> {
        let step = self.acquire.poll();
        // A fenced lock may take a second round, and that is no second attempt.
        if matches!(&step, Step::Send(request) if request.verb.is_acquisition()) {
            self.account.attempts += 1;
        }
        step
    }
}

/// What the last attempt of a cancelled call came to: a lock that was granted is released again.
fn last_of_cancelled(ballot: &Ballot) -> AttemptOutcome {
    let is_granted = ballot.tally.granted_by_majority() == Verdict::Won && !ballot.same_server;
    if is_granted { AttemptOutcome::Granted } else { failure(ballot) }
}

/// What an attempt came to that was not the last: it failed.
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
