//! Acquiring a lock: one implementation for all methods.

use super::LockClient;
#[cfg(feature = "zookeeper")]
use super::contend::Contest;
use super::event_recorder::EventRecorder;
use super::request::RequestSettings;
use crate::clock::{self, Time};
use crate::core::{Backend, Call, Caller, LastRound, draw};
use crate::engine::{Acquire, Acquired, HeldLock, Jitter, LockAttributes, Ttl, Wait};
use crate::error::{LockError, NoQuorum};
use crate::event::Listener;
use crate::guard::LockGuard;
use crate::name::Name;
use crate::wait_queue::{Joined, QueueHead, WaitQueues};
use std::sync::Arc;
use std::time::Duration;

/// The longest pause of the head of a wait queue before it asks the nodes, when the handoff limit
/// is reached: other processes ask now and then, and should find the lock free once.
const PAUSE_AFTER_LIMIT: Duration = Duration::from_millis(20);

/// What a call asks for, how long it waits, and what cancels it.
struct Terms<'a> {
    settings: &'a RequestSettings,
    wait: Wait,
    call: &'a Call<'a>,
}

/// The lock that a call asks for.
pub(super) struct Wanted<'a> {
    pub(super) key: &'a Arc<[u8]>,
    pub(super) attributes: Option<&'a Arc<LockAttributes>>,
    pub(super) ttl: Ttl,
    /// How much validity must be left when it is granted.
    pub(super) least: Duration,
}

/// The place of a call in the wait queue of this process, if it has one.
#[derive(Default)]
struct Place {
    head: Option<QueueHead>,
    /// The lock, if another thread has handed it over.
    held: Option<HeldLock>,
    /// Other processes may have it first.
    not_before: Option<Time>,
}

impl LockClient {
    /// Acquires the lock, and emits events if there is a listener.
    pub(super) fn acquire(
        &self,
        key: &Arc<[u8]>,
        attributes: Option<&Arc<LockAttributes>>,
        settings: &RequestSettings,
        wait: Wait,
    ) -> Result<Option<LockGuard>, LockError> {
        if self.core.is_forked() {
            return Err(LockError::OtherProcess);
        }
        let call = &self.core.cancellation.call(settings.cancelled_by.as_ref());
        if call.is_cancelled() {
            return Err(LockError::Cancelled);
        }
        let terms = &Terms { settings, wait, call };
        if !self.core.has_listener() {
            return self.take(key, attributes, terms, None);
        }
        let resource = Name::new(&key[self.core.key_prefix.len()..]);
        let mut recorder = EventRecorder::begin(self, resource);
        let result = self.take(key, attributes, terms, Some(&mut recorder));
        if !matches!(result, Err(LockError::Ttl(_) | LockError::HeldByThisThread)) {
            recorder.emit_result(&result);
        }
        result
    }

    fn take(
        &self,
        key: &Arc<[u8]>,
        attributes: Option<&Arc<LockAttributes>>,
        terms: &Terms<'_>,
        recorder: Option<&mut EventRecorder<'_>>,
    ) -> Result<Option<LockGuard>, LockError> {
        let Terms { settings, call, .. } = *terms;
        let rules = &self.core.rules;
        let least = settings.min_validity.unwrap_or(rules.min_validity);
        let ttl = self.core.ttl(settings.ttl, least).map_err(LockError::Ttl)?;
        self.check_hold_at_least(settings).map_err(LockError::Ttl)?;
        let more = attributes.iter().flat_map(|attributes| &attributes.more_keys);
        let key_bytes = key.len() + more.map(|key| key.len()).sum::<usize>();
        self.prepare_keeping(settings, ttl, key_bytes)?;
        let is_shared = attributes.is_some_and(|attributes| attributes.share.is_some());
        let place = match attributes.filter(|it| !it.more_keys.is_empty()) {
            Some(attributes) => {
                let name = name_of_set(key, &attributes.more_keys);
                self.enqueue(&self.core.set_wait_queues, &name, terms, is_shared)
            }
            None => self.enqueue(&self.core.wait_queues, key, terms, is_shared),
        };
        let Some(place) = place? else { return Ok(None) };
        let wanted = Wanted { key, attributes, ttl, least };
        let (head, (outcome, last)) = self.ask(&wanted, terms, place, recorder)?;
        if self.core.is_known_forked() {
            return Err(LockError::OtherProcess);
        }
        if call.is_cancelled() {
            if let Acquired::Held(held) = outcome {
                self.give_back(held, head.as_ref());
            }
            return Err(LockError::Cancelled);
        }
        match outcome {
            Acquired::Held(held) => {
                if let Some(head) = &head {
                    head.set_key_expiry(held.expires_at(rules));
                }
                self.guard(held, head, settings).map(Some)
            }
            Acquired::Contended => Ok(None),
            Acquired::Unanswered => {
                let error = NoQuorum::new(last.reports);
                if error.quarantine().is_some() && self.is_held(key, attributes) {
                    return Ok(None);
                }
                Err(LockError::NoQuorum(error))
            }
            Acquired::TooSlow(took) => Err(LockError::TooSlow { took, ttl: ttl.as_duration() }),
            Acquired::NoEntropy => Err(LockError::NoEntropy),
            Acquired::SameServer => {
                let same = last.same_server();
                let (first, second) = same.expect("a report names the two nodes");
                Err(LockError::SameServer { first, second })
            }
        }
    }

    /// Asks the backend for the lock. Returns the caller's place too, which the guard gets.
    fn ask(
        &self,
        wanted: &Wanted<'_>,
        terms: &Terms<'_>,
        Place { head, held, not_before }: Place,
        recorder: Option<&mut EventRecorder<'_>>,
    ) -> Result<(Option<QueueHead>, (Acquired, LastRound)), LockError> {
        let Wanted { key, attributes, ttl, least } = *wanted;
        let (rules, wait, call) = (&self.core.rules, terms.wait, terms.call);
        let asked = match &self.core.backend {
            Backend::Redlock(_) => {
                let acquire = Acquire::new(Arc::clone(rules), Arc::clone(key), ttl, wait);
                let mut acquire = acquire.min_validity(least).with(attributes.cloned());
                if let Some(held) = held {
                    acquire = acquire.taking_over(held);
                }
                if let Some(time) = not_before {
                    acquire = acquire.pausing(time);
                }
                let mut caller = WaitingCaller { call, head: head.as_ref() };
                match recorder {
                    None => self.core.run_for(&mut caller, acquire),
                    Some(recorder) => recorder.run(acquire, caller),
                }
            }
            #[cfg(feature = "zookeeper")]
            Backend::ZooKeeper(ensemble) => {
                let hold = self.hold(terms.settings, ttl);
                // A time that has come would end the greeting of a new client as well.
                let is_over = wait.deadline().is_some_and(|end| end <= clock::now());
                let wait = if is_over { Wait::No } else { wait };
                let contest = Contest { ensemble, rules, wanted, hold, wait, call };
                contest.run(held, not_before, recorder)?
            }
        };
        Ok((head, asked))
    }

    /// Do other clients hold the lock? Nodes in quarantine cannot grant it, and refuse it also if
    /// they only reserve it for a waiter. This needs another round, so nobody else is asked.
    fn is_held(&self, key: &Arc<[u8]>, attributes: Option<&Arc<LockAttributes>>) -> bool {
        let more = attributes.iter().flat_map(|attributes| &attributes.more_keys);
        let share = attributes.and_then(|attributes| attributes.share);
        std::iter::once(key).chain(more).any(|key| {
            let seen = self.inspect_key(Arc::clone(key));
            seen.is_ok_and(|seen| seen.state.keeps_out(share))
        })
    }

    /// Waits in the queue of this process until this thread is its head. `None` if the deadline
    /// passes first and another thread holds the lock; an error if that thread is this one.
    fn enqueue(
        &self,
        wait_queues: &Arc<WaitQueues>,
        key: &Arc<[u8]>,
        &Terms { wait, call, .. }: &Terms<'_>,
        is_shared: bool,
    ) -> Result<Option<Place>, LockError> {
        if self.core.listener.is_some() && Listener::is_in_callback() {
            // The call that this callback belongs to may be ahead of this one in the queue.
            return Ok(Some(Place::default()));
        }
        let node_timeout = self.core.rules.node_timeout;
        if is_shared {
            if wait_queues.waits_for_itself(key, wait) {
                return Err(LockError::HeldByThisThread);
            }
            // Threads of this client can have shares at the same time.
            return Ok(Some(Place::default()));
        }
        let (head, held) = match wait_queues.join(key, wait, node_timeout, call.own()) {
            Joined::Head(head, held) => (head, held),
            Joined::NotQueued => return Ok(Some(Place::default())),
            Joined::TimedOut => return Ok(None),
            Joined::HeldByThisThread => return Err(LockError::HeldByThisThread),
            Joined::Cancelled => return Err(LockError::Cancelled),
        };
        let deadline = wait.deadline();
        let mut not_before = None;
        if let Some(held) = &held {
            if call.is_cancelled() {
                self.give_back(held.clone(), Some(&head));
                return Err(LockError::Cancelled);
            }
            if deadline.is_some_and(|deadline| clock::now() >= deadline) {
                self.give_back(held.clone(), Some(&head));
                return Ok(None);
            }
        } else if head.is_after_limit() {
            let now = clock::now();
            let seed = draw().map_or(0, |draw| draw.seed);
            let pause = Jitter::from_seed(seed).below(PAUSE_AFTER_LIMIT);
            // An attempt must fit in before the caller's deadline.
            let left = deadline.map_or(Duration::MAX, |deadline| deadline.since(now));
            not_before = Some(now.after(pause.min(left / 2)));
        }
        Ok(Some(Place { head: Some(head), held, not_before }))
    }

    /// Gives up a lock that the caller does not get: it goes to the next thread that waits for it,
    /// or is removed.
    fn give_back(&self, held: HeldLock, head: Option<&QueueHead>) {
        let rules = &self.core.rules;
        let refused = match head {
            Some(head) => {
                head.set_key_expiry(held.expires_at(rules));
                head.hand_off(held).err()
            }
            None => Some(held),
        };
        if let Some(held) = refused {
            self.core.post(held.undo(clock::now(), rules));
        }
    }
}

/// A thread that waits for a lock.
pub(super) struct WaitingCaller<'a> {
    pub(super) call: &'a Call<'a>,
    pub(super) head: Option<&'a QueueHead>,
}

impl Caller<Acquire> for WaitingCaller<'_> {
    fn note_progress(&mut self, acquire: &mut Acquire, _: &LastRound) {
        if let Some(head) = self.head {
            head.handle().set_held_elsewhere(acquire.held_elsewhere_until());
        }
        self.call.set_waiter(acquire.waiter());
    }

    fn is_cancelled(&self) -> bool {
        self.call.is_cancelled()
    }

    fn pause_until(&self, time: Time) -> bool {
        !self.call.pause_until(time)
    }
}

/// The name of a set of keys in the wait queues: no two sets have the same name.
fn name_of_set(first: &Arc<[u8]>, more: &[Arc<[u8]>]) -> Arc<[u8]> {
    let keys = std::iter::once(first).chain(more);
    keys.flat_map(|key| key.len().to_le_bytes().into_iter().chain(key.iter().copied())).collect()
}
