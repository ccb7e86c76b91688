//! The events of a client, emitted to its listener if it has one, and the record of one call that
//! acquires a lock.

use crate::clock::{self, Time};
use crate::config::is_reserved;
use crate::engine::{Acquire, Verdict, Votes};
use crate::error::{Error, LossReason};
use crate::event::{AttemptOutcome, Event, Listener};
use crate::inspect::NotALock;
use crate::name::Name;
use crate::node::NodeReport;
use crate::owner_process::OwnerProcess;
use std::sync::Arc;
use std::time::Duration;

/// The listener of a client, if it has one.
pub(crate) struct Events {
    listener: Option<Listener>,
    owner_process: Arc<OwnerProcess>,
}

impl Events {
    pub(crate) fn new(listener: Option<Listener>, owner_process: &Arc<OwnerProcess>) -> Self {
        Self {
            listener,
            owner_process: Arc::clone(owner_process),
        }
    }

    /// The listener, if there is one and this thread may call it.
    pub(crate) fn listener(&self) -> Option<&Listener> {
        let listener = self.listener.as_ref()?;
        let may_call = !Listener::is_in_callback() && !self.owner_process.is_known_forked();
        may_call.then_some(listener)
    }

    pub(crate) fn has_listener(&self) -> bool {
        self.listener().is_some()
    }

    /// Is this called by a callback of this client's listener?
    pub(crate) fn is_in_callback(&self) -> bool {
        self.listener.is_some() && Listener::is_in_callback()
    }

    /// The time, if there is a listener: without one, no clock is read.
    pub(crate) fn now_if_listened(&self) -> Option<Time> {
        self.has_listener().then(clock::now)
    }

    /// Emits an event, if there is a listener. What the event reports must be complete: the
    /// callback may use this client, and may panic.
    pub(crate) fn emit<'a>(&self, event: impl FnOnce() -> Event<'a>) {
        if let Some(listener) = self.listener() {
            let event = event();
            let resource = event.resource();
            // A register's turn is a lock of the library's own.
            if !resource.is_some_and(|name| is_reserved(name.as_bytes())) {
                listener.emit(&event);
            }
        }
    }

    /// Emits the loss of a lock that was requested at `since`, if there is a listener.
    pub(crate) fn emit_lost(&self, resource: Name<'_>, since: Time, reason: LossReason) {
        self.emit(|| Event::Lost {
            resource,
            held: clock::now().since(since),
            reason,
        });
    }
}

/// Emits the events of one call that acquires a lock.
pub(crate) struct EventRecorder<'a> {
    events: &'a Events,
    resource: Name<'a>,
    began: Time,
    attempts: u64,
    attempt_began: Time,
    /// The latest attempt, until its event is emitted.
    pending: Option<Attempt>,
    /// When the quarantine ends that was reported last.
    quarantined_until: Time,
    /// Were the place in the queue of the nodes, and its turn, reported?
    is_queued: bool,
    is_woken: bool,
    /// What was found under a name, and why it is not a lock, until its event is emitted.
    other_data: Option<(Vec<u8>, NotALock)>,
}

struct Attempt {
    took: Duration,
    /// What the votes say: it is granted if a majority has granted it, even if that was too late.
    votes: AttemptOutcome,
    quarantine: Duration,
}

/// Servers before Redis 6.2 report their uptime in whole seconds: a quarantine that ends less than
/// this later than reported is the same one, and an attempt came a moment too early.
const SAME_QUARANTINE: Duration = Duration::from_secs(2);

impl<'a> EventRecorder<'a> {
    pub(crate) fn begin(events: &'a Events, resource: Name<'a>) -> Self {
        let now = clock::now();
        Self {
            events,
            resource,
            began: now,
            attempts: 0,
            attempt_began: now,
            pending: None,
            quarantined_until: Time::ZERO,
            is_queued: false,
            is_woken: false,
            other_data: None,
        }
    }

    /// An attempt begins, before its first byte is written.
    pub(crate) fn begin_attempt(&mut self, now: Time) {
        self.attempt_began = now;
    }

    /// A request that takes the lock is sent. A fenced lock may take a second round, and that is no
    /// second attempt.
    pub(crate) fn count_attempt(&mut self) {
        self.attempts += 1;
    }

    /// The attempt has ended so.
    pub(crate) fn end_attempt(&mut self, now: Time, votes: AttemptOutcome) {
        let took = now.since(self.attempt_began);
        self.pending = Some(Attempt {
            took,
            votes,
            quarantine: Duration::ZERO,
        });
    }

    /// A round of the attempt has ended with these votes.
    pub(crate) fn end_round(&mut self, now: Time, votes: &Votes) {
        self.end_attempt(now, outcome(votes));
        if let Some(attempt) = &mut self.pending {
            attempt.quarantine = votes.quarantine;
        }
    }

    /// This key has data that is not a lock. The key of the call's own name has `length` bytes.
    pub(crate) fn note_other_data(&mut self, key: &[u8], length: usize, reason: NotALock) {
        let prefix = length - self.resource.as_bytes().len();
        self.other_data = Some((key[prefix..].to_vec(), reason));
    }

    fn emit_other_data(&mut self) {
        if let Some((name, reason)) = self.other_data.take() {
            self.events.emit(|| Event::NotALock {
                resource: Name::new(&name),
                reason,
            });
        }
    }

    /// Emits the attempt before, the quarantine if that is why it failed, and the place in the
    /// queue of the nodes, or that they call the waiter. The keys of the attempt have been removed,
    /// and nothing is pending if the callback panics.
    pub(crate) fn emit_progress(
        &mut self,
        acquire: &Acquire,
        reports: &[NodeReport],
        is_called: bool,
    ) {
        if let Some(attempt) = self.pending.take() {
            let resource = self.resource;
            let left = attempt.quarantine;
            let is_granted = attempt.votes == AttemptOutcome::Granted;
            let outcome = if is_granted {
                AttemptOutcome::TooSlow
            } else {
                attempt.votes
            };
            self.emit_attempt(attempt.took, outcome);
            let until = clock::now().after(left);
            if !left.is_zero() && until > self.quarantined_until.after(SAME_QUARANTINE) {
                self.quarantined_until = until;
                self.events.emit(|| Event::Quarantined {
                    resource,
                    left,
                    reports,
                });
            }
        }
        self.emit_other_data();
        if let Some(place) = acquire.place() {
            self.emit_queued(place);
            if is_called {
                self.emit_woken();
            }
        }
    }

    /// Emits, once, that this many are before the caller.
    pub(crate) fn emit_queued(&mut self, place: u64) {
        let resource = self.resource;
        if !std::mem::replace(&mut self.is_queued, true) {
            self.events.emit(|| Event::Queued {
                resource,
                ahead: place,
            });
        }
    }

    /// Emits, once, that it is the turn of a caller that has a place in the queue.
    pub(crate) fn emit_woken(&mut self) {
        let resource = self.resource;
        let waited = clock::now().since(self.began);
        if self.is_queued && !std::mem::replace(&mut self.is_woken, true) {
            self.events.emit(|| Event::Woken { resource, waited });
        }
    }

    /// Emits the result of the call. The guard is complete: if the callback panics, dropping it
    /// releases the lock. Its validity is read last: the callback of the attempt may take its time.
    pub(crate) fn emit_result<G>(
        mut self,
        result: Result<Option<&G>, &Error>,
        validity: impl FnOnce(&G) -> Duration,
    ) {
        if let Some(Attempt { took, votes, .. }) = self.pending.take() {
            let outcome = match result {
                Ok(Some(_)) => AttemptOutcome::Granted,
                Ok(None) => AttemptOutcome::Contended,
                Err(Error::TooSlow { .. }) => AttemptOutcome::TooSlow,
                Err(Error::SameServer { .. }) => AttemptOutcome::SameServer,
                Err(Error::NotALock { .. }) => AttemptOutcome::Contended,
                // A cancelled call returns the same error whatever the outcome of its last attempt.
                // A lock that was granted is released again.
                Err(Error::Cancelled) => votes,
                Err(_) => AttemptOutcome::NoQuorum,
            };
            self.emit_attempt(took, outcome);
        }
        self.emit_other_data();
        let resource = self.resource;
        let attempts = self.attempts;
        let waited = clock::now().since(self.began);
        self.events.emit(|| match result {
            Ok(Some(guard)) => Event::Acquired {
                resource,
                attempts,
                waited,
                validity: validity(guard),
            },
            Ok(None) => Event::Contended {
                resource,
                attempts,
                waited,
            },
            Err(error) => Event::Failed {
                resource,
                attempts,
                waited,
                error,
            },
        });
    }

    fn emit_attempt(&self, took: Duration, outcome: AttemptOutcome) {
        let resource = self.resource;
        let number = self.attempts;
        self.events.emit(|| Event::Attempt {
            resource,
            number,
            outcome,
            took,
        });
    }
}

fn outcome(votes: &Votes) -> AttemptOutcome {
    if votes.same_server {
        AttemptOutcome::SameServer
    } else if votes.tally.granted_by_majority() == Verdict::Won {
        AttemptOutcome::Granted
    } else if votes.quarantine.is_zero() && votes.tally.answered_by_majority() == Verdict::Won {
        AttemptOutcome::Contended
    } else {
        AttemptOutcome::NoQuorum
    }
}
