//! Taking a lock: attempts, each with a token of its own, until one wins or the wait is over.
//!
//! ```text
//!               Attempt               majority, in time
//!   Resting ───────────────▶ Asking ────────────────────▶ Done(Held)
//!    ▲ ▲                      │ │ ▲
//!    │ └─ Send(undo), Pause ──┘ │ │ Attempt: a majority reserves the lock
//!    │    no majority,          │ │ NotCalled: there is something to ask
//!    │    or too late           ▼ │
//!    └─────────────────────▶ Waiting, in the nodes' queue: see `queueing`
//!      too early to ask,
//!      and back by Attempt
//! ```
//!
//! From each of them, `Send(undo)` and `Done` with the reason follow when the wait is over, or when
//! no attempt can succeed any more.

mod attempts;
mod place;
mod queueing;
mod sets;

use super::Wait;
use super::{Backoff, Before, Entropy, HeldLock, Input, Jitter, LockAttributes, Votes};
use super::{Command, NodeSet, Predecessor, QueueWait, Request, Rules, Step, Token, Ttl, Verdict};
use crate::time::Time;
use place::Place;
use std::sync::Arc;
use std::time::Duration;

/// The outcome of trying to take a lock.
#[derive(Clone, Debug)]
pub enum Acquired {
    /// The lock was granted to this client.
    Held(HeldLock),
    /// A majority answered, and other clients hold the lock or wait for it.
    Contended,
    /// Too few nodes answered to know, or too many are in quarantine.
    Unanswered,
    /// A majority granted it, but this much time had passed since the request, and too little
    /// validity was left.
    TooSlow(Duration),
    /// Two of the nodes are one server, so no majority is possible.
    SameServer,
    /// There were no random numbers for a token.
    NoEntropy,
}

/// The state machine that takes a lock.
#[derive(Debug)]
pub struct Acquire {
    rules: Arc<Rules>,
    key: Arc<[u8]>,
    attributes: Option<Arc<LockAttributes>>,
    ttl: Ttl,
    wait: Wait,
    min_validity: Duration,
    backoff: Option<Backoff>,
    /// When the first attempt began.
    began: Option<Time>,
    /// When a round ended that had to wait for connections. The time of a single attempt begins
    /// again then.
    connected: Option<Time>,
    /// How many attempts have been made.
    attempts: u32,
    /// The outcome of the last attempt.
    failure: Option<Acquired>,
    /// A failed attempt's undo, which is sent before anything else.
    undo: Option<Request>,
    /// The undo of the predecessor, if a handoff failed.
    undo_before: Option<Request>,
    /// The lock to take over in a handoff, until the handoff was tried.
    predecessor: Option<HeldLock>,
    /// The place in the nodes' queue, if the caller has joined it.
    place: Option<Place>,
    /// Have enough nodes a queue, as far as is known?
    may_queue: bool,
    /// The wall clock of the first attempt, in microseconds since 1970.
    wall: u64,
    state: State,
}

#[derive(Debug)]
enum State {
    /// Waiting for the time to begin an attempt.
    Resting(Time),
    /// An attempt has begun: its request is to be sent, or has been. If the lock was granted, a
    /// majority must still confirm its fencing token.
    Asking {
        request: Request,
        granted: Option<HeldLock>,
        is_sent: bool,
    },
    /// Waiting in the nodes' queue until they tell something, or it is time to ask.
    Waiting(QueueWait),
    /// The operation has an outcome.
    Over(Option<Acquired>),
}

impl Acquire {
    /// Takes `key` for `ttl`, and waits for it as `wait` says.
    pub fn new(rules: Arc<Rules>, key: Arc<[u8]>, ttl: Ttl, wait: Wait) -> Self {
        Self {
            min_validity: rules.min_validity,
            rules,
            key,
            attributes: None,
            ttl,
            wait,
            backoff: None,
            began: None,
            connected: None,
            attempts: 0,
            failure: None,
            undo: None,
            undo_before: None,
            predecessor: None,
            place: None,
            may_queue: true,
            wall: 0,
            state: State::Resting(Time::ZERO),
        }
    }

    /// Takes a lock that has these attributes besides a key and a token.
    #[inline] // or it moves the machine, in every pair
    pub fn with(mut self, attributes: Option<Arc<LockAttributes>>) -> Self {
        self.attributes = attributes;
        self
    }

    /// Is it a share of the lock that is taken, and not all of it?
    pub fn is_shared(&self) -> bool {
        self.attributes
            .as_ref()
            .is_some_and(|attributes| attributes.share.is_some())
    }

    /// Takes the lock over from `predecessor`, which its holder has given up: in the first attempt,
    /// each node replaces the predecessor's token by the new one in one step. If that fails, the
    /// predecessor's keys are removed as well, and the next attempts are ordinary ones.
    pub fn taking_over(mut self, predecessor: HeldLock) -> Self {
        self.predecessor = Some(predecessor);
        // The predecessor held the lock until now. This is the outcome if the caller's deadline
        // cuts the round short.
        self.failure = Some(Acquired::Contended);
        self
    }

    /// Takes the lock only if this much validity is left, instead of the rules' `min_validity`.
    pub fn min_validity(mut self, min_validity: Duration) -> Self {
        self.min_validity = min_validity;
        self
    }

    /// Delays the first attempt until this time.
    pub fn pausing(mut self, until: Time) -> Self {
        self.state = State::Resting(until);
        self
    }

    /// The waiter in the nodes' queue, if the caller has queued.
    pub fn waiter(&self) -> Option<Token> {
        self.place.as_ref().map(|place| place.entry.waiter)
    }

    /// Has the caller queued, or is a lock handed over to it? Then others wait for it, and it must
    /// not wait for those that only begin.
    pub fn is_awaited(&self) -> bool {
        self.place.is_some() || self.predecessor.is_some()
    }

    /// Until when it counts that another client holds the lock, as the nodes said last: until they
    /// have answered the next renewal. `None` before the waiter has a place in the queue, and if
    /// too few nodes answered last.
    pub fn held_elsewhere_until(&self) -> Option<Time> {
        let place = self.place.as_ref().filter(|place| place.entry.number > 0)?;
        let is_contended = matches!(self.failure, Some(Acquired::Contended));
        is_contended.then(|| place.renew_at.after(self.rules.node_timeout))
    }

    /// May what keeps a majority from this caller stay for ever? The nodes' queue tells how long it
    /// lasts, unless it has no ttl. Nothing else tells it.
    pub fn may_last(&self) -> bool {
        self.place
            .as_ref()
            .is_none_or(|place| place.state.left.is_none())
    }

    /// The pause is over: begins an attempt, or waits on where the caller has a place in the nodes'
    /// queue.
    ///
    /// The validity counts from `now`, which must have been read before the first byte is written.
    /// The token must be of this attempt alone: the undo of an earlier one may still be on its way,
    /// and would remove the key of a second with the same token. Once there is a reason to report,
    /// no attempt begins after the end of the wait.
    fn begin(&mut self, now: Time, entropy: Entropy) {
        if let Some(failure) = self.failure.clone().filter(|_| now >= self.end()) {
            // The thread that should have begun the last attempt woke up too late. Another attempt
            // would not end in time.
            self.give_up(now, failure);
            self.give_up_predecessor(now, NodeSet::EMPTY);
            return;
        }
        if self.place.is_some() {
            return self.wait_in_queue();
        }
        let base = self.rules.retry_base;
        let cap = self.rules.retry_cap;
        self.backoff
            .get_or_insert_with(|| Backoff::new(base, cap, Jitter::from_seed(entropy.seed)));
        if self.began.is_none() {
            self.began = Some(now);
            self.wall = entropy.wall;
        }
        self.attempts += 1;
        let before = self.predecessor.as_ref().map_or(Before::Nothing, |before| {
            Before::Predecessor(Predecessor {
                token: before.token,
                attributes: before.attributes.clone(),
                waiter: before.waiter,
                ttl_longest: self.ttl.max(before.ttl_longest),
            })
        });
        let claim = self.claim(entropy, before);
        let deadline = self.deadline(now, now).min(self.end_of_single());
        self.send(now, deadline, Command::Claim(claim));
    }

    /// The round of an attempt is over. `now` was read after the answer that decided it.
    ///
    /// The lock is held only if a majority granted it, no two nodes are one server, and enough of
    /// the validity is left at `now`, which counts from before the request; a fenced one only when
    /// a majority knows its token, too. Its release goes to every node to which the request was
    /// written, since each may have the key, now or later. What is not held is removed before
    /// another attempt begins.
    fn conclude(&mut self, now: Time, request: &Request, votes: &Votes) {
        let lock = request.lock().expect("an acquisition names a lock").clone();
        let started = request.started;
        let valid_until = started.after(self.rules.drift.validity(self.ttl));
        let granted = votes.tally.granted_by_majority() == Verdict::Won;
        if granted && self.is_in_time(now, valid_until) && !votes.same_server {
            // On nodes that refused, the predecessor's waiter may still be queued.
            let before = self.predecessor.as_ref().and_then(|before| before.waiter);
            self.give_up_predecessor(now, votes.sent);
            let lock = lock.with_permit(votes.permit);
            let held = HeldLock {
                key: Arc::clone(&lock.key),
                token: lock.token,
                attributes: lock.attributes.clone(),
                fence: None,
                valid_until,
                since: started,
                ttl: self.ttl,
                ttl_longest: self.ttl,
                nodes: votes.sent,
                waiter: self.waiter().or(before),
                is_awaited: votes.queue.is_awaited,
                session: None,
            };
            self.state = self.granted(now, held, lock, votes);
            return;
        }

        // The undo goes to every node to which the request was written, granted or not, answered or
        // not: a node that did not answer may have set the key, and the undo follows the request on
        // the same connection.
        self.fail(now, started, request, votes.sent, votes);
    }

    /// Is the grant in time? `now < valid_until` is not enough: `min_validity` must be left.
    fn is_in_time(&self, now: Time, valid_until: Time) -> bool {
        now < valid_until && valid_until.since(now) >= self.min_validity
    }

    /// Takes in what has happened since the last step.
    pub fn handle(&mut self, now: Time, input: Input) {
        match (std::mem::replace(&mut self.state, State::Over(None)), input) {
            (State::Resting(_), Input::Attempt(entropy)) => self.begin(now, entropy),
            (State::Waiting(_), Input::Attempt(entropy)) => self.called(now, entropy),
            (State::Waiting(_), Input::NotCalled) => self.not_called(now),
            (State::Resting(_) | State::Waiting(_), Input::NoEntropy) => {
                self.give_up_predecessor(now, NodeSet::EMPTY);
                self.give_up(now, Acquired::NoEntropy);
            }
            (
                State::Asking {
                    request,
                    granted,
                    is_sent: true,
                },
                Input::Votes(votes),
            ) => match granted {
                Some(held) => self.confirmed(now, held, &request, &votes),
                None if request.queue_entry().is_some() => self.asked(now, &request, &votes),
                None => self.conclude(now, &request, &votes),
            },
            (_, Input::Cancelled) => self.abandon(now),
            (state, input) => {
                debug_assert!(false, "{input:?} in {state:?}");
                self.state = state;
            }
        }
    }

    /// What to do next.
    pub fn poll(&mut self) -> Step {
        if let Some(undo) = self.undo.take().or_else(|| self.undo_before.take()) {
            return Step::Send(undo);
        }
        match &mut self.state {
            State::Resting(until) => Step::Pause(*until),
            State::Asking {
                request, is_sent, ..
            } => {
                debug_assert!(!*is_sent, "polled while the nodes are being asked");
                *is_sent = true;
                Step::Send(request.clone())
            }
            State::Waiting(wait) => Step::Wait(wait.clone()),
            State::Over(outcome) => {
                let outcome = outcome.take();
                Step::Done(outcome.expect("the outcome is taken once, and nothing polled after it"))
            }
        }
    }
}

#[cfg(test)]
mod tests;
