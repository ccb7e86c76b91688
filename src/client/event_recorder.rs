//! An acquisition with a listener: the same, with a record of its attempts for the events.

use super::LockClient;
use super::acquire::WaitingCaller;
use crate::clock::{self, Time};
use crate::core::{Caller, Core, LastRound};
use crate::engine::{Acquire, Acquired, Ballot, Input, Operation, Step, Verdict};
use crate::error::Error;
use crate::event::{AttemptOutcome, Event};
use crate::guard::LockGuard;
use crate::name::Name;
use std::time::Duration;

/// Emits the events of one call that acquires a lock.
pub(super) struct EventRecorder<'a> {
    client: &'a LockClient,
    resource: Name<'a>,
    began: Time,
    attempts: u64,
    attempt_began: Time,
    /// The latest attempt, until its event is emitted: how long it took, and its votes.
    pending: Option<(Duration, Ballot)>,
    /// When the quarantine ends that was reported last.
    quarantined_until: Time,
    /// Were the place in the nodes' queue, and its turn, reported?
    is_queued: bool,
    is_woken: bool,
}

/// Servers before Redis 6.2 report their uptime in whole seconds: a quarantine that ends less than
/// this later than reported is the same one, and an attempt came a moment too early.
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
            pending: None,
            quarantined_until: Time::ZERO,
            is_queued: false,
            is_woken: false,
        }
    }

    pub(super) fn run(
        &mut self,
        acquire: Acquire,
        waiting: WaitingCaller<'_>,
    ) -> (Acquired, LastRound) {
        let core = &self.client.core;
        let recorded =
            RecordedAcquire { acquire, recorder: self, is_attempt: false, is_over: false };
        core.run_for(&mut RecordedCaller { core, waiting }, recorded)
    }

    #[cfg(feature = "zookeeper")]
    pub(super) fn begin_attempt(&mut self) {
        self.attempts += 1;
        self.attempt_began = clock::now();
    }

    #[cfg(feature = "zookeeper")]
    pub(super) fn end_attempt(&mut self, ballot: Ballot) {
        if self.is_queued && ballot.tally.granted_by_majority() == Verdict::Won {
            let (resource, waited) = (self.resource, clock::now().since(self.began));
            self.client.core.emit(|| Event::Woken { resource, waited });
        }
        self.pending = Some((clock::now().since(self.attempt_began), ballot));
    }

    /// Emits, once, that so many are before the caller.
    #[cfg(feature = "zookeeper")]
    pub(super) fn emit_queued(&mut self, place: usize) {
        let (resource, place) = (self.resource, place as u64);
        if !std::mem::replace(&mut self.is_queued, true) {
            self.client.core.emit(|| Event::Queued { resource, place });
        }
    }

    /// Emits the attempt before, and the quarantine if that is why it failed. Its keys have been
    /// removed, and nothing is pending if the callback panics.
    fn emit_last_attempt(&mut self, last: &LastRound) {
        let Some((_, ballot)) = &self.pending else { return };
        let left = ballot.quarantine;
        self.emit_attempt(failure);
        let (resource, reports, until) = (self.resource, &*last.reports, clock::now().after(left));
        if !left.is_zero() && until > self.quarantined_until.after(SAME_QUARANTINE) {
            self.quarantined_until = until;
            self.client.core.emit(|| Event::Quarantined { resource, left, reports });
        }
    }

    /// Emits the result of the call. The guard is complete: if the callback panics, dropping the
    /// guard releases the lock.
    pub(super) fn emit_result(mut self, result: &Result<Option<LockGuard>, Error>) {
        let outcome = match result {
            Ok(Some(_)) => AttemptOutcome::Granted,
            Ok(None) => AttemptOutcome::Contended,
            Err(Error::TooSlow { .. }) => AttemptOutcome::TooSlow,
            Err(Error::SameServer { .. }) => AttemptOutcome::SameServer,
            Err(_) => AttemptOutcome::NoQuorum,
        };
        // A cancelled call returns the same error whatever the outcome of its last attempt.
        let is_cancelled = matches!(result, Err(Error::Cancelled));
        self.emit_attempt(|ballot| if is_cancelled { last_of_cancelled(ballot) } else { outcome });
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
        if let Some((took, ballot)) = self.pending.take() {
            let (resource, number, outcome) = (self.resource, self.attempts, outcome(&ballot));
            self.client.core.emit(|| Event::Attempt { resource, number, outcome, took });
        }
    }
}

struct RecordedAcquire<'a, 'b> {
    acquire: Acquire,
    recorder: &'a mut EventRecorder<'b>,
    /// Is the request that was sent last an attempt, or a part of one?
    is_attempt: bool,
    is_over: bool,
}

impl RecordedAcquire<'_, '_> {
    /// Emits that the caller has a place in the nodes' queue, and its turn: each once.
    fn emit_place(&mut self) {
        let Some(place) = self.acquire.place() else { return };
        let Self { acquire, recorder, .. } = self;
        let (core, resource) = (&recorder.client.core, recorder.resource);
        if !std::mem::replace(&mut recorder.is_queued, true) {
            core.emit(|| Event::Queued { resource, place });
        }
        if acquire.is_called() && !std::mem::replace(&mut recorder.is_woken, true) {
            let waited = clock::now().since(recorder.began);
            core.emit(|| Event::Woken { resource, waited });
        }
    }
}

struct RecordedCaller<'a> {
    core: &'a Core,
    waiting: WaitingCaller<'a>,
}

impl Caller<RecordedAcquire<'_, '_>> for RecordedCaller<'_> {
    fn note_progress(&mut self, recorded: &mut RecordedAcquire<'_, '_>, last: &LastRound) {
        recorded.recorder.emit_last_attempt(last);
        recorded.emit_place();
        // If a callback has forked, the parent's mutexes may be held here.
        if !self.core.is_known_forked() {
            self.waiting.note_progress(&mut recorded.acquire, last);
        }
    }

    /// If a callback has forked, the call goes on in the parent only.
    fn is_cancelled(&self) -> bool {
        self.core.is_known_forked() || self.waiting.is_cancelled()
    }

    fn pause_until(&self, time: Time) -> bool {
        self.waiting.pause_until(time)
    }
}

/// A callback that panics must not leave the caller in the nodes' queue.
impl Drop for RecordedAcquire<'_, '_> {
    fn drop(&mut self) {
        if std::thread::panicking() && !self.is_over {
            self.acquire.handle(clock::now(), Input::Cancelled);
            while let Step::Send(request) = self.acquire.poll() {
                self.recorder.client.core.post(request);
            }
        }
    }
}

impl Operation for RecordedAcquire<'_, '_> {
    type Outcome = Acquired;

    fn handle(&mut self, now: Time, input: Input) {
        match &input {
            Input::Attempt(_) => self.recorder.attempt_began = now,
            Input::Ballot(ballot) if self.is_attempt => {
                self.recorder.pending =
                    Some((now.since(self.recorder.attempt_began), ballot.clone()));
            }
            _ => {}
        }
        self.acquire.handle(now, input);
    }

    fn poll(&mut self) -> Step<Acquired> {
        let step = self.acquire.poll();
        if let Step::Send(request) = &step {
            self.is_attempt = request.is_answered() && request.queue_entry().is_none();
        }
        // A fenced lock may take a second round, and that is no second attempt.
        if matches!(&step, Step::Send(request) if request.is_claim()) {
            self.recorder.attempts += 1;
        }
        self.is_over = matches!(step, Step::Done(_));
        step
    }
}

/// The outcome of the last attempt of a cancelled call. If it was granted, the lock is released
/// again.
fn last_of_cancelled(ballot: &Ballot) -> AttemptOutcome {
    let is_granted = ballot.tally.granted_by_majority() == Verdict::Won && !ballot.same_server;
    if is_granted { AttemptOutcome::Granted } else { failure(ballot) }
}

fn failure(ballot: &Ballot) -> AttemptOutcome {
    if ballot.same_server {
        AttemptOutcome::SameServer
    } else if ballot.tally.granted_by_majority() == Verdict::Won {
        AttemptOutcome::TooSlow
    } else if ballot.quarantine.is_zero() && ballot.tally.answered_by_majority() == Verdict::Won {
        AttemptOutcome::Contended
    } else {
        AttemptOutcome::NoQuorum
    }
}
