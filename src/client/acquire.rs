//! Acquiring a lock: one implementation for all methods, alone or together with other readers.

use super::LockClient;
#[cfg(feature = "zookeeper")]
use super::contend::Contest;
use super::event_recorder::EventRecorder;
use super::request::RequestSettings;
use crate::clock::{self, Time};
use crate::core::{Backend, Call, Caller, Granted, LastRound, Member, draw};
use crate::engine::{Acquire, Acquired, HeldLock, Jitter, LockAttributes, Share, Ttl, Wait};
use crate::error::{Error, NoQuorum};
use crate::event::Listener;
use crate::guard::LockGuard;
use crate::name::Name;
use crate::wait_queue::{Joined, QueueHead, WaitQueues};
use std::sync::Arc;
use std::time::Duration;

/// What a call asks for, how long it waits, and what cancels it.
pub(super) struct Terms<'a> {
    pub(super) settings: &'a RequestSettings,
    pub(super) wait: Wait,
    pub(super) call: &'a Call<'a>,
}

/// The lock that a call asks for.
pub(super) struct Wanted<'a> {
    pub(super) key: &'a Arc<[u8]>,
    pub(super) attributes: Option<&'a Arc<LockAttributes>>,
    pub(super) ttl: Ttl,
    /// How much validity must be left when it is granted.
    pub(super) least: Duration,
}

impl LockClient {
    /// Acquires the lock, and emits events if there is a listener.
    pub(super) fn acquire(
        &self,
        key: &Arc<[u8]>,
        attributes: Option<&Arc<LockAttributes>>,
        settings: &RequestSettings,
        wait: Wait,
    ) -> Result<Option<LockGuard>, Error> {
        if self.core.is_forked() {
            return Err(Error::OtherProcess);
        }
        let call = &self.core.cancellation.call(settings.cancelled_by.as_ref());
        if call.is_cancelled() {
            return Err(Error::Cancelled);
        }
        let terms = &Terms { settings, wait, call };
        if !self.core.has_listener() {
            return self.take(key, attributes, terms, None);
        }
        let resource = Name::new(&key[self.core.key_prefix.len()..]);
        let mut recorder = EventRecorder::begin(self, resource);
        let result = self.take(key, attributes, terms, Some(&mut recorder));
        if !matches!(result, Err(Error::Ttl(_) | Error::HeldByThisThread)) {
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
    ) -> Result<Option<LockGuard>, Error> {
        let settings = terms.settings;
        let rules = &self.core.rules;
        let least = settings.min_validity.unwrap_or(rules.min_validity);
        let ttl = self.core.ttl(settings.ttl, least).map_err(Error::Ttl)?;
        self.check_hold_at_least(settings).map_err(Error::Ttl)?;
        let more = attributes.iter().flat_map(|attributes| &attributes.more_keys);
        let key_bytes = key.len() + more.map(|key| key.len()).sum::<usize>();
        self.prepare_keeping(settings, ttl, key_bytes)?;
        let is_shared = attributes.is_some_and(|attributes| attributes.share.is_some());
        let wanted = &Wanted { key, attributes, ttl, least };
        let place = match attributes.filter(|it| !it.more_keys.is_empty()) {
            Some(attributes) => {
                let name = name_of_set(key, &attributes.more_keys);
                self.enqueue(&self.core.set_wait_queues, &name, terms, is_shared)
            }
            None => self.enqueue(&self.core.wait_queues, key, terms, is_shared),
        };
        let Some(place) = place? else { return Ok(None) };
        match kind_of_share(wanted, settings).filter(|_| !self.is_in_callback()) {
            Some(kind) => self.take_jointly(wanted, terms, &kind, recorder),
            None => self.take_alone(wanted, terms, place, recorder),
        }
    }

    /// Takes the lock for this call only.
    pub(super) fn take_alone(
        &self,
        wanted: &Wanted<'_>,
        terms: &Terms<'_>,
        place: Place,
        recorder: Option<&mut EventRecorder<'_>>,
    ) -> Result<Option<LockGuard>, Error> {
        let (head, (outcome, last)) = self.ask(wanted, terms, place, recorder)?;
        self.settle(wanted, terms, head, outcome, last)
    }

    /// The result of a call whose last attempt has ended so.
    pub(super) fn settle(
        &self,
        &Wanted { key, attributes, ttl, .. }: &Wanted<'_>,
        &Terms { settings, call, .. }: &Terms<'_>,
        head: Option<QueueHead>,
        outcome: Acquired,
        last: LastRound,
    ) -> Result<Option<LockGuard>, Error> {
        let rules = &self.core.rules;
        if self.core.is_known_forked() {
            return Err(Error::OtherProcess);
        }
        if call.is_cancelled() {
            if let Acquired::Held(held) = outcome {
                self.give_back(held, head.as_ref());
            }
            return Err(Error::Cancelled);
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
                Err(Error::NoQuorum(error))
            }
            Acquired::TooSlow(took) => Err(Error::TooSlow { took, ttl: ttl.as_duration() }),
            Acquired::NoEntropy => Err(Error::NoEntropy),
            Acquired::SameServer => {
                let same = last.same_server();
                let (first, second) = same.expect("a report names the two nodes");
                Err(Error::SameServer { first, second })
            }
        }
    }

    /// Asks the backend for the lock. Returns the caller's place too, which the guard gets.
    pub(super) fn ask(
        &self,
        wanted: &Wanted<'_>,
        terms: &Terms<'_>,
        Place { head, held, not_before }: Place,
        recorder: Option<&mut EventRecorder<'_>>,
    ) -> Result<(Option<QueueHead>, (Acquired, LastRound)), Error> {
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

    /// Gives up a lock that the caller does not get: it goes to the next thread that waits for it,
    /// or is removed.
    pub(super) fn give_back(&self, held: HeldLock, head: Option<&QueueHead>) {
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

// The place of a call in the wait queue of this process.

/// The longest pause of the head of a wait queue before it asks the nodes, when the handoff limit
/// is reached: other processes ask now and then, and should find the lock free once.
const PAUSE_AFTER_LIMIT: Duration = Duration::from_millis(20);

/// The place of a call in the wait queue of this process, if it has one.
#[derive(Default)]
pub(super) struct Place {
    pub(super) head: Option<QueueHead>,
    /// The lock, if another thread has handed it over.
    pub(super) held: Option<HeldLock>,
    /// Other processes may have it first.
    pub(super) not_before: Option<Time>,
}

impl LockClient {
    /// Waits in the queue of this process until this thread is its head. `None` if the deadline
    /// passes first and another thread holds the lock; an error if that thread is this one.
    pub(super) fn enqueue(
        &self,
        wait_queues: &Arc<WaitQueues>,
        key: &Arc<[u8]>,
        &Terms { wait, call, .. }: &Terms<'_>,
        is_shared: bool,
    ) -> Result<Option<Place>, Error> {
        if self.is_in_callback() {
            // The call that this callback belongs to may be ahead of this one in the queue.
            return Ok(Some(Place::default()));
        }
        let node_timeout = self.core.rules.node_timeout;
        if is_shared {
            if wait_queues.waits_for_itself(key, wait) {
                return Err(Error::HeldByThisThread);
            }
            // Threads of this client can have the lock at the same time.
            return Ok(Some(Place::default()));
        }
        let (head, held) = match wait_queues.join(key, wait, node_timeout, call.own()) {
            Joined::Head(head, held) => (head, held),
            Joined::NotQueued => return Ok(Some(Place::default())),
            Joined::TimedOut => return Ok(None),
            Joined::HeldByThisThread => return Err(Error::HeldByThisThread),
            Joined::Cancelled => return Err(Error::Cancelled),
        };
        let deadline = wait.deadline();
        let mut not_before = None;
        if let Some(held) = &held {
            if call.is_cancelled() {
                self.give_back(held.clone(), Some(&head));
                return Err(Error::Cancelled);
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

    /// Is this called by a callback of this client's listener?
    pub(super) fn is_in_callback(&self) -> bool {
        self.core.listener.is_some() && Listener::is_in_callback()
    }
}

/// The name of a set of keys in the wait queues: no two sets have the same name.
pub(super) fn name_of_set(first: &Arc<[u8]>, more: &[Arc<[u8]>]) -> Arc<[u8]> {
    let keys = std::iter::once(first).chain(more);
    keys.flat_map(|key| key.len().to_le_bytes().into_iter().chain(key.iter().copied())).collect()
}

// Readers of one client that take one share of a lock together.

impl LockClient {
    /// Takes part in a share that another thread takes or has taken with the same settings, or
    /// takes one in which others can take part.
    pub(super) fn take_jointly(
        &self,
        wanted: &Wanted<'_>,
        terms: &Terms<'_>,
        kind: &Arc<[u8]>,
        recorder: Option<&mut EventRecorder<'_>>,
    ) -> Result<Option<LockGuard>, Error> {
        let began = clock::now();
        let member = Member::enter(&self.core, kind, began, wanted.least);
        if let Some(granted) = member.usable(began, wanted.least) {
            return self.guard_of_member(member, granted, terms, began);
        }
        let (queues, round) = (&self.core.joint_shares.queues, self.core.rules.node_timeout);
        let head = match queues.join(member.queue_name(), terms.wait, round, terms.call.own()) {
            Joined::Head(head, _) => head,
            Joined::NotQueued | Joined::HeldByThisThread => {
                drop(member);
                return self.take_alone(wanted, terms, Place::default(), recorder);
            }
            Joined::TimedOut => return Ok(None),
            Joined::Cancelled => return Err(Error::Cancelled),
        };
        if terms.call.is_cancelled() {
            return Err(Error::Cancelled);
        }
        if let Some(granted) = member.usable(clock::now(), wanted.least) {
            drop(head); // The next one has it too.
            return self.guard_of_member(member, granted, terms, began);
        }
        if member.is_granted() {
            // It was lost, or less of it is left than this thread needs.
            drop((member, head));
            return self.take_alone(wanted, terms, Place::default(), recorder);
        }
        let place = Place { head: Some(head), ..Place::default() };
        let (head, (outcome, last)) = self.ask(wanted, terms, place, recorder)?;
        let guard = self.settle(wanted, terms, None, outcome, last)?;
        let guard = guard.map(|mut guard| {
            guard.share_with(member);
            guard
        });
        drop(head);
        Ok(guard)
    }

    fn guard_of_member(
        &self,
        member: Member,
        granted: Granted,
        &Terms { settings, .. }: &Terms<'_>,
        began: Time,
    ) -> Result<Option<LockGuard>, Error> {
        let max_hold = self.core.max_hold(settings.max_hold);
        let guard = LockGuard::of_member(&self.core, member, granted, began, max_hold);
        if settings.keep_alive { guard.kept_with_others() } else { Ok(guard) }.map(Some)
    }
}

/// What two requests have in common that can take one share together: the lock, and all settings
/// that show on the nodes or in how it is extended. `None` for requests that take one alone:
/// permits have numbers, and a lock that stays taken after its release does so for its own reasons.
pub(super) fn kind_of_share(wanted: &Wanted<'_>, settings: &RequestSettings) -> Option<Arc<[u8]>> {
    let attributes = wanted.attributes?;
    if attributes.share != Some(Share::Reader) || !settings.hold_at_least.is_zero() {
        return None;
    }
    let max_hold = settings.max_hold.map_or([u8::MAX; 16], |it| it.as_nanos().to_le_bytes());
    let fence = attributes.fence.map_or(0, Ttl::as_millis).to_le_bytes();
    let ttl = wanted.ttl.as_millis().to_le_bytes();
    let key_length = wanted.key.len().to_le_bytes();
    let is_kept = [u8::from(settings.keep_alive)];
    // One that asks for much validity may ask the nodes for longer than others have to wait.
    let least = wanted.least.as_nanos().to_le_bytes();
    let parts: [&[u8]; 8] =
        [&max_hold, &fence, &ttl, &least, &is_kept, &key_length, wanted.key, &attributes.owner];
    Some(parts.concat().into())
}
