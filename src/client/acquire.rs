//! Acquiring a lock: one implementation for all methods, alone or together with other readers, and
//! what a lock that is kept alive needs before and after that.

use super::LockClient;
#[cfg(feature = "zookeeper")]
use super::contend::Contest;
use super::event_recorder::EventRecorder;
use super::request::{LockRequest, OWNER_MAX, RequestSettings};
use crate::clock::{self, Time};
use crate::core::{Backend, Call, Caller, Core, Granted, LastRound, Member, Redlock, draw};
use crate::engine::{Acquire, Acquired, HeldLock, Jitter, LockAttributes};
use crate::engine::{PERMITS_MAX, Share, TTL_LIMIT, Ttl, Wait};
use crate::error::{Error, NoQuorum, ResourceError, TtlError};
use crate::event::Listener;
use crate::guard::LockGuard;
use crate::name::Name;
use crate::wait_queue::{Joined, QueueHead, WaitQueues};
use crate::watchdog::{MAX_HOLD, shortest_ttl};
use std::mem;
use std::sync::Arc;
use std::time::Duration;

/// A call that acquires a lock: what it asks for, how long it waits, and what cancels it.
pub(super) struct Acquisition<'a> {
    pub(super) client: &'a LockClient,
    pub(super) settings: &'a RequestSettings,
    pub(super) key: &'a Arc<[u8]>,
    pub(super) attributes: Option<&'a Arc<LockAttributes>>,
    pub(super) ttl: Ttl,
    /// How much validity must be left when it is granted.
    pub(super) least: Duration,
    pub(super) wait: Wait,
    pub(super) call: &'a Call<'a>,
}

impl LockRequest<'_> {
    /// All ways to acquire the lock. Emits events if there is a listener.
    pub(super) fn acquire(mut self, wait: Wait) -> Result<Option<LockGuard>, Error> {
        let attributes = self.attributes().map_err(Error::Resource)?.unless_plain();
        let Self { client, keys, settings } = &self;
        let (core, key) = (&client.core, &keys.as_ref().map_err(|it| Error::Resource(*it))?.first);
        if core.is_forked() {
            return Err(Error::OtherProcess);
        }
        let call = &core.cancellation.call(settings.cancelled_by.as_ref());
        if call.is_cancelled() {
            return Err(Error::Cancelled);
        }
        let (ttl, least) = self.checked_ttl()?;
        let attributes = attributes.as_ref();
        let acquisition = Acquisition { client, settings, key, attributes, ttl, least, wait, call };
        if !core.has_listener() {
            return acquisition.run(None);
        }
        let mut recorder = EventRecorder::begin(client, Name::new(&key[core.key_prefix.len()..]));
        let result = acquisition.run(Some(&mut recorder));
        if !matches!(result, Err(Error::Ttl(_) | Error::HeldByThisThread)) {
            recorder.emit_result(&result);
        }
        result
    }

    /// What the lock has besides its first key, which takes the other keys out of the request.
    fn attributes(&mut self) -> Result<LockAttributes, ResourceError> {
        let keys = self.keys.as_mut().map_err(|error| *error)?;
        let (length, most) = (self.settings.owner.len(), OWNER_MAX);
        if length > most {
            return Err(ResourceError::OwnerTooLong { length, most });
        }
        let share = self.settings.share;
        match share {
            Some(_) if !keys.more.is_empty() => return Err(ResourceError::SharedSet),
            Some(Share::Permit { of: count, .. }) if !(1..=PERMITS_MAX).contains(&count) => {
                return Err(ResourceError::Permits { count, most: PERMITS_MAX });
            }
            _ => {}
        }
        let fence = self.settings.is_fenced.then_some(self.client.core.fencing_expiry);
        let (more_keys, owner) = (mem::take(&mut keys.more), mem::take(&mut self.settings.owner));
        Ok(LockAttributes { more_keys, owner, fence, share })
    }

    /// The ttl and the least validity, if the lock may have this ttl and may be held for as long as
    /// the request wants it to be held at least.
    pub(super) fn checked_ttl(&self) -> Result<(Ttl, Duration), Error> {
        let (core, settings) = (&self.client.core, &self.settings);
        let least = settings.min_validity.unwrap_or(core.rules.min_validity);
        let ttl = core.ttl(settings.ttl, least).map_err(Error::Ttl)?;
        // Longer than max_ttl as well: nobody works under a lock that was given up, and so a
        // restarted node need not wait until it has ended.
        let longest = settings.longest_hold(core).min(TTL_LIMIT);
        let longest = core.backend.longest_linger().map_or(longest, |it| it.min(longest));
        let hold_at_least = settings.hold_at_least;
        if hold_at_least > longest {
            return Err(Error::Ttl(TtlError::HoldTooLong { hold_at_least, longest }));
        }
        Ok((ttl, least))
    }
}

impl RequestSettings {
    /// For how long a lock is kept alive at most.
    pub(super) fn longest_hold(&self, core: &Core) -> Duration {
        core.max_hold(self.max_hold).unwrap_or(MAX_HOLD)
    }
}

impl LockClient {
    /// Checks whether a lock with keys of so many bytes can be kept alive, if the request asks for
    /// that, and starts the watchdog. Before anything is sent.
    pub(super) fn prepare_keeping(
        &self,
        settings: &RequestSettings,
        ttl: Ttl,
        key_bytes: usize,
    ) -> Result<(), Error> {
        if !settings.keep_alive {
            return Ok(());
        }
        let (whole, max_hold) = (ttl.as_duration(), settings.longest_hold(&self.core));
        if whole > max_hold {
            return Err(Error::Ttl(TtlError::BeyondHold { ttl: settings.ttl, max_hold }));
        }
        match &self.core.backend {
            Backend::Redlock(Redlock { watchdog, .. }) => {
                let shortest = shortest_ttl(&self.core.rules);
                let shortest = shortest.map_or(Duration::MAX, Ttl::as_duration);
                if whole < shortest {
                    let error = TtlError::TooShortToKeep { ttl: settings.ttl, shortest };
                    return Err(Error::Ttl(error));
                }
                watchdog.load().admit(self.core.demand(ttl, key_bytes))?;
                watchdog.start().map_err(Error::Spawn)
            }
            // The session keeps it alive.
            #[cfg(feature = "zookeeper")]
            Backend::ZooKeeper(_) => Ok(()),
        }
    }

    /// The guard of a lock that was granted, kept alive if the request asks for that.
    pub(super) fn guard(
        &self,
        held: HeldLock,
        head: Option<QueueHead>,
        settings: &RequestSettings,
    ) -> Result<LockGuard, Error> {
        let max_hold = self.core.max_hold(settings.max_hold);
        let mut guard = LockGuard::new(Arc::clone(&self.core), held, head, max_hold);
        guard.watch();
        if settings.keep_alive {
            guard = guard.keep_alive()?;
        }
        guard.set_hold_at_least(settings.hold_at_least);
        Ok(guard)
    }
}

impl Acquisition<'_> {
    fn run(&self, recorder: Option<&mut EventRecorder<'_>>) -> Result<Option<LockGuard>, Error> {
        let (core, settings) = (&self.client.core, self.settings);
        let key_bytes = self.keys().map(|key| key.len()).sum();
        self.client.prepare_keeping(settings, self.ttl, key_bytes)?;
        let place = match self.attributes.filter(|it| !it.more_keys.is_empty()) {
            Some(_) => self.enqueue(&core.set_wait_queues, &self.name_of_set()),
            None => self.enqueue(&core.wait_queues, self.key),
        };
        let Some(place) = place? else { return Ok(None) };
        match self.kind_of_share().filter(|_| !self.is_in_callback()) {
            Some(kind) => self.take_jointly(&kind, recorder),
            None => self.take_alone(place, recorder),
        }
    }

    pub(super) fn keys(&self) -> impl Iterator<Item = &Arc<[u8]>> {
        let more = self.attributes.iter().flat_map(|attributes| &attributes.more_keys);
        std::iter::once(self.key).chain(more)
    }

    pub(super) fn share(&self) -> Option<Share> {
        self.attributes.and_then(|attributes| attributes.share)
    }

    /// Takes the lock for this call only.
    fn take_alone(
        &self,
        mut place: Place,
        recorder: Option<&mut EventRecorder<'_>>,
    ) -> Result<Option<LockGuard>, Error> {
        let (outcome, last) = self.ask(&mut place, recorder)?;
        self.settle(place.head, outcome, last)
    }

    /// The result of a call whose last attempt has ended so.
    fn settle(
        &self,
        head: Option<QueueHead>,
        outcome: Acquired,
        last: LastRound,
    ) -> Result<Option<LockGuard>, Error> {
        let core = &self.client.core;
        if core.is_known_forked() {
            return Err(Error::OtherProcess);
        }
        if self.call.is_cancelled() {
            if let Acquired::Held(held) = outcome {
                self.give_back(held, head.as_ref());
            }
            return Err(Error::Cancelled);
        }
        match outcome {
            Acquired::Held(held) => {
                if let Some(head) = &head {
                    head.set_key_expiry(held.expires_at(&core.rules));
                }
                self.client.guard(held, head, self.settings).map(Some)
            }
            Acquired::Contended => Ok(None),
            Acquired::Unanswered => {
                let error = NoQuorum::new(last.reports);
                if error.quarantine().is_some() && self.is_held() {
                    return Ok(None);
                }
                Err(Error::NoQuorum(error))
            }
            Acquired::TooSlow(took) => Err(Error::TooSlow { took, ttl: self.ttl.as_duration() }),
            Acquired::NoEntropy => Err(Error::NoEntropy),
            Acquired::SameServer => {
                let same = last.same_server();
                let (first, second) = same.expect("a report names the two nodes");
                Err(Error::SameServer { first, second })
            }
        }
    }

    fn ask(
        &self,
        place: &mut Place,
        recorder: Option<&mut EventRecorder<'_>>,
    ) -> Result<(Acquired, LastRound), Error> {
        let (core, held) = (&self.client.core, place.held.take());
        match &core.backend {
            Backend::Redlock(_) => {
                let (rules, key) = (Arc::clone(&core.rules), Arc::clone(self.key));
                let acquire = Acquire::new(rules, key, self.ttl, self.wait);
                let mut acquire = acquire.min_validity(self.least).with(self.attributes.cloned());
                if let Some(held) = held {
                    acquire = acquire.taking_over(held);
                }
                if let Some(time) = place.not_before {
                    acquire = acquire.pausing(time);
                }
                let mut caller = WaitingCaller { call: self.call, head: place.head.as_ref() };
                Ok(match recorder {
                    None => core.run_for(&mut caller, acquire),
                    Some(recorder) => recorder.run(acquire, caller),
                })
            }
            #[cfg(feature = "zookeeper")]
            Backend::ZooKeeper(ensemble) => {
                Contest::new(ensemble, self).run(held, place.not_before, recorder)
            }
        }
    }

    /// Do other clients hold the lock? Nodes in quarantine cannot grant it, and refuse it also if
    /// they only reserve it for a waiter. This needs another round, so nobody else is asked.
    fn is_held(&self) -> bool {
        self.keys().any(|key| {
            let seen = self.client.inspect_key(Arc::clone(key));
            seen.is_ok_and(|seen| seen.state.keeps_out(self.share()))
        })
    }

    /// Gives up a lock that the caller does not get: it goes to the next thread that waits for it,
    /// or is removed.
    fn give_back(&self, held: HeldLock, head: Option<&QueueHead>) {
        let core = &self.client.core;
        let refused = match head {
            Some(head) => {
                head.set_key_expiry(held.expires_at(&core.rules));
                head.hand_off(held).err()
            }
            None => Some(held),
        };
        if let Some(held) = refused {
            core.post(held.undo(clock::now(), &core.rules));
        }
    }
}

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

/// The place of a call in the wait queue of this process, if it has one. The guard gets it.
#[derive(Default)]
struct Place {
    head: Option<QueueHead>,
    /// The lock, if another thread has handed it over.
    held: Option<HeldLock>,
    /// Other processes may have it first.
    not_before: Option<Time>,
}

impl Acquisition<'_> {
    /// Waits in the queue of this process until this thread is its head. `None` if the deadline
    /// passes first and another thread holds the lock; an error if that thread is this one.
    fn enqueue(
        &self,
        wait_queues: &Arc<WaitQueues>,
        key: &Arc<[u8]>,
    ) -> Result<Option<Place>, Error> {
        let (wait, call) = (self.wait, self.call);
        if self.is_in_callback() {
            // The call that this callback belongs to may be ahead of this one in the queue.
            return Ok(Some(Place::default()));
        }
        if self.share().is_some() {
            if wait_queues.waits_for_itself(key, wait) {
                return Err(Error::HeldByThisThread);
            }
            // Threads of this client can have the lock at the same time.
            return Ok(Some(Place::default()));
        }
        let round = self.client.core.rules.node_timeout;
        let (head, held) = match wait_queues.join(key, wait, round, call.own()) {
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
    fn is_in_callback(&self) -> bool {
        self.client.core.listener.is_some() && Listener::is_in_callback()
    }

    /// The name of a set of keys in the wait queues: no two sets have the same name.
    fn name_of_set(&self) -> Arc<[u8]> {
        let with_length = |key: &Arc<[u8]>| [&key.len().to_le_bytes()[..], &key[..]].concat();
        self.keys().flat_map(with_length).collect()
    }
}

// Readers of one client that take one share of a lock together.

impl Acquisition<'_> {
    /// Takes part in a share that another thread takes or has taken with the same settings, or
    /// takes one in which others can take part.
    fn take_jointly(
        &self,
        kind: &Arc<[u8]>,
        recorder: Option<&mut EventRecorder<'_>>,
    ) -> Result<Option<LockGuard>, Error> {
        let (core, began) = (&self.client.core, clock::now());
        let member = Member::enter(core, kind, began, self.least);
        if let Some(granted) = member.usable(began, self.least) {
            return self.guard_of_member(member, granted, began);
        }
        let (queues, round) = (&core.joint_shares.queues, core.rules.node_timeout);
        let head = match queues.join(member.queue_name(), self.wait, round, self.call.own()) {
            Joined::Head(head, _) => head,
            Joined::NotQueued | Joined::HeldByThisThread => {
                drop(member);
                return self.take_alone(Place::default(), recorder);
            }
            Joined::TimedOut => return Ok(None),
            Joined::Cancelled => return Err(Error::Cancelled),
        };
        if self.call.is_cancelled() {
            return Err(Error::Cancelled);
        }
        if let Some(granted) = member.usable(clock::now(), self.least) {
            drop(head); // The next one has it too.
            return self.guard_of_member(member, granted, began);
        }
        if member.is_granted() {
            // It was lost, or less of it is left than this thread needs.
            drop((member, head));
            return self.take_alone(Place::default(), recorder);
        }
        let mut place = Place { head: Some(head), ..Place::default() };
        let (outcome, last) = self.ask(&mut place, recorder)?;
        let mut guard = self.settle(None, outcome, last)?;
        if let Some(guard) = &mut guard {
            guard.share_with(member);
        }
        drop(place);
        Ok(guard)
    }

    fn guard_of_member(
        &self,
        member: Member,
        granted: Granted,
        began: Time,
    ) -> Result<Option<LockGuard>, Error> {
        let core = &self.client.core;
        let max_hold = core.max_hold(self.settings.max_hold);
        let guard = LockGuard::of_member(core, member, granted, began, max_hold);
        if self.settings.keep_alive { guard.kept_by_others() } else { Ok(guard) }.map(Some)
    }

    /// What two requests have in common that can take one share together: the lock, and all
    /// settings that show on the nodes or in how it is extended. `None` for requests that take one
    /// alone: permits have numbers, and a lock that stays taken after its release does so for its
    /// own reasons.
    fn kind_of_share(&self) -> Option<Arc<[u8]>> {
        let (attributes, settings) = (self.attributes?, self.settings);
        if attributes.share != Some(Share::Reader) || !settings.hold_at_least.is_zero() {
            return None;
        }
        let max_hold = settings.max_hold.map_or([u8::MAX; 16], |it| it.as_nanos().to_le_bytes());
        let fence = attributes.fence.map_or(0, Ttl::as_millis).to_le_bytes();
        let ttl = self.ttl.as_millis().to_le_bytes();
        let key_length = self.key.len().to_le_bytes();
        let is_kept = [u8::from(settings.keep_alive)];
        // One that asks for much validity may ask the nodes for longer than others have to wait.
        let least = self.least.as_nanos().to_le_bytes();
        let parts: [&[u8]; 8] =
            [&max_hold, &fence, &ttl, &least, &is_kept, &key_length, self.key, &attributes.owner];
        Some(parts.concat().into())
    }
}
