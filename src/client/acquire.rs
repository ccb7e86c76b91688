//! Acquiring a lock: one implementation for all methods, alone or together with other readers, and
//! what a lock that is kept alive needs before and after that.

use super::LockClient;
use super::request::LockRequest;
use crate::backend::{EventRecorder, LockSpec, Start, ThisThread, Waiting, at_once};
use crate::clock::{self, Time};
use crate::config::OWNER_MAX;
use crate::core::{Core, Granted, JointShares, ShareMember, name_of_set};
use crate::engine::{HeldLock, Jitter, LockAttributes, PERMITS_MAX, Share, TTL_LIMIT, Ttl, Wait};
use crate::entropy::draw;
use crate::error::{Error, ResourceError, TtlError};
use crate::event::Event;
use crate::guard::LockGuard;
use crate::inspect::OwnHolder;
use crate::name::Name;
use crate::wait_queue::{Joined, QueueHead, WaitQueues};
use crate::watchdog::{MAX_HOLD, shortest_ttl};
use std::mem;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

impl LockRequest<'_> {
    /// All ways to acquire the lock in this thread.
    pub(super) fn acquire(self, wait: Wait) -> Result<Option<LockGuard>, Error> {
        at_once(pin!(self.acquire_by(&ThisThread, wait)))
    }

    /// All ways to acquire the lock, whoever waits. Emits events if there is a listener.
    pub(super) async fn acquire_by(
        mut self,
        waiting: &impl Waiting,
        wait: Wait,
    ) -> Result<Option<LockGuard>, Error> {
        let attributes = self.attributes().map_err(Error::Resource)?;
        let mut spec = self.spec(attributes, wait)?;
        spec.call.set_started(waiting.is_dropped());
        let core = &self.client.core;
        let acquisition = Acquisition {
            core,
            spec,
            waiting,
        };
        if !core.events.has_listener() {
            return acquisition.run(None).await;
        }
        let resource = Name::new(&acquisition.spec.key[core.key_prefix.len()..]);
        let mut recorder = EventRecorder::begin(&core.events, resource);
        let result = acquisition.run(Some(&mut recorder)).await;
        if !matches!(result, Err(Error::Ttl(_) | Error::HeldByThisThread)) {
            recorder.emit_result(result.as_ref().map(Option::as_ref), LockGuard::remaining);
        }
        result
    }

    /// What the lock has besides its first key, which takes the other keys out of the request.
    fn attributes(&mut self) -> Result<LockAttributes, ResourceError> {
        let keys = self.keys.as_mut().map_err(|error| *error)?;
        let given = self.settings.owner.take();
        let owner = given.unwrap_or_else(|| self.client.core.owner.clone());
        let length = owner.len();
        let most = OWNER_MAX;
        if length > most {
            return Err(ResourceError::OwnerTooLong { length, most });
        }
        let share = self.settings.share;
        match share {
            Some(_) if !keys.more.is_empty() => return Err(ResourceError::SharedSet),
            Some(Share::Permit { of: count, .. }) if !(1..=PERMITS_MAX).contains(&count) => {
                return Err(ResourceError::Permits {
                    count,
                    most: PERMITS_MAX,
                });
            }
            _ => {}
        }
        let fence = self
            .settings
            .is_fenced
            .then_some(self.client.core.fencing_expiry);
        let more_keys = mem::take(&mut keys.more);
        Ok(LockAttributes {
            more_keys,
            owner,
            fence,
            share,
            counts_in_quarantine: self.settings.counts_in_quarantine,
        })
    }

    /// The request with all settings checked.
    pub(super) fn spec(
        &self,
        attributes: LockAttributes,
        wait: Wait,
    ) -> Result<LockSpec<'_>, Error> {
        let Self {
            client: LockClient { core },
            keys,
            settings,
        } = self;
        let key = &keys
            .as_ref()
            .map_err(|error| Error::Resource(*error))?
            .first;
        if core.is_forked() {
            return Err(Error::OtherProcess);
        }
        let call = core.cancellation.call(settings.cancelled_by.as_ref());
        if call.is_cancelled() {
            return Err(Error::Cancelled);
        }
        let min_validity = settings.min_validity.unwrap_or(core.rules.min_validity);
        let ttl = core.ttl(settings.ttl, min_validity).map_err(Error::Ttl)?;
        let max_hold = core.max_hold(settings.max_hold);
        // Longer than max_ttl as well: nobody works under a lock that was given up, and so a
        // restarted node need not wait until it has ended.
        let longest = max_hold.unwrap_or(MAX_HOLD).min(TTL_LIMIT);
        let session = core.backend.session_limits();
        let longest = session.map_or(longest, |session| session.keep_for.min(longest));
        let hold_at_least = settings.hold_at_least;
        if hold_at_least > longest {
            return Err(Error::Ttl(TtlError::HoldTooLong {
                hold_at_least,
                longest,
            }));
        }
        check_hold(ttl.as_duration(), max_hold, settings.keep_alive).map_err(Error::Ttl)?;
        let key = Arc::clone(key);
        let attributes = attributes.unless_plain();
        Ok(LockSpec {
            key,
            attributes,
            ttl,
            min_validity,
            keep_alive: settings.keep_alive,
            max_hold,
            hold_at_least,
            wait,
            thread: self.thread(),
            call,
        })
    }
}

/// May a lock with this ttl be held for so long? Zero allows no extension of one that is not kept
/// alive, which then ends with its ttl.
fn check_hold(
    ttl: Duration,
    max_hold: Option<Duration>,
    is_kept_alive: bool,
) -> Result<(), TtlError> {
    let max_hold = match max_hold {
        Some(Duration::ZERO) | None if !is_kept_alive => return Ok(()),
        max_hold => max_hold.unwrap_or(MAX_HOLD),
    };
    if ttl > max_hold {
        return Err(TtlError::BeyondHold { ttl, max_hold });
    }
    Ok(())
}

/// A call that acquires a lock.
pub(super) struct Acquisition<'a, W = ThisThread> {
    pub(super) core: &'a Arc<Core>,
    pub(super) spec: LockSpec<'a>,
    /// How it waits.
    pub(super) waiting: &'a W,
}

impl<W: Waiting> Acquisition<'_, W> {
    async fn run(
        &self,
        recorder: Option<&mut EventRecorder<'_>>,
    ) -> Result<Option<LockGuard>, Error> {
        let core = self.core;
        let spec = &self.spec;
        self.prepare_keeping()?;
        self.check_own_hold()?;
        let start = match spec
            .attributes
            .as_ref()
            .filter(|it| !it.more_keys.is_empty())
        {
            Some(_) => {
                let name = name_of_set(spec.keys());
                self.enqueue(&core.set_wait_queues, &name).await
            }
            None => self.enqueue(&core.wait_queues, &spec.key).await,
        };
        let Some(mut start) = start? else {
            return Ok(None);
        };
        let kind = spec.share().and_then(|_| JointShares::kind(spec));
        if let Some(kind) = kind.filter(|_| !core.events.is_in_callback()) {
            return self.acquire_joint(&kind, recorder).await;
        }
        let backend = &*core.backend;
        let result = self
            .waiting
            .acquire(backend, spec, &mut start, recorder)
            .await;
        self.conclude(start.head, result)
    }

    /// Checks whether the lock can be kept alive, if the request asks for that, and starts the
    /// watchdog. Before anything is sent.
    pub(super) fn prepare_keeping(&self) -> Result<(), Error> {
        let Self { core, spec, .. } = self;
        if !spec.keep_alive {
            return Ok(());
        }
        let ttl = spec.ttl.as_duration();
        let Some(watchdog) = core.backend.watchdog() else {
            return Ok(());
        };
        let shortest = shortest_ttl(&core.rules).map_or(Duration::MAX, Ttl::as_duration);
        if ttl < shortest {
            return Err(Error::Ttl(TtlError::TooShortToKeep { ttl, shortest }));
        }
        let key_bytes = spec.keys().map(|key| key.len()).sum();
        watchdog.load().admit(core.demand(spec.ttl, key_bytes))?;
        watchdog.start().map_err(Error::Spawn)
    }

    /// The result of a call to which the backend has answered so.
    fn conclude(
        &self,
        head: Option<QueueHead>,
        result: Result<Option<HeldLock>, Error>,
    ) -> Result<Option<LockGuard>, Error> {
        if self.core.is_known_forked() {
            return Err(Error::OtherProcess);
        }
        if self.spec.call.is_cancelled() {
            if let Ok(Some(held)) = result {
                self.give_back(held, head.as_ref());
            }
            return Err(Error::Cancelled);
        }
        let Some(held) = result? else { return Ok(None) };
        if let Some(head) = &head {
            head.set_key_expiry(held.expires_at(&self.core.rules));
        }
        self.guard(held, head).map(Some)
    }

    /// The guard of a lock that was granted, kept alive if the request asks for that.
    pub(super) fn guard(
        &self,
        held: HeldLock,
        head: Option<QueueHead>,
    ) -> Result<LockGuard, Error> {
        let Self { core, spec, .. } = self;
        let mut guard = LockGuard::new(Arc::clone(core), held, head, spec.max_hold);
        guard.note_taker(spec.thread);
        guard.watch();
        if spec.keep_alive {
            guard = guard.keep_alive()?;
        }
        guard.set_hold_at_least(spec.hold_at_least);
        Ok(guard)
    }

    /// Gives up a lock that the caller does not get: it goes to the next thread that waits for it,
    /// or is removed.
    fn give_back(&self, held: HeldLock, head: Option<&QueueHead>) {
        let refused = match head {
            Some(head) => {
                head.set_key_expiry(held.expires_at(&self.core.rules));
                head.hand_off(held).err()
            }
            None => Some(held),
        };
        if let Some(held) = refused {
            self.core.backend.give_up(&held, None);
        }
    }
}

// The place of a call in the wait queue of this process.

/// The longest pause of the head of a wait queue before it asks the nodes, when the handoff limit
/// is reached: other processes ask now and then, and should find the lock free once.
const PAUSE_AFTER_LIMIT: Duration = Duration::from_millis(20);

impl<W: Waiting> Acquisition<'_, W> {
    /// Waits in the queue of this process until this thread is its head. `None` if the deadline
    /// passes first and another thread holds the lock; an error if that thread is this one.
    async fn enqueue(
        &self,
        wait_queues: &Arc<WaitQueues>,
        key: &Arc<[u8]>,
    ) -> Result<Option<Start>, Error> {
        let wait = self.spec.wait;
        let call = &self.spec.call;
        if self.core.events.is_in_callback() {
            // The call that this callback belongs to may be ahead of this one in the queue.
            return Ok(Some(Start::default()));
        }
        if self.spec.share().is_some() {
            // Threads of this client can have the lock at the same time.
            return Ok(Some(Start::default()));
        }
        let round = self.core.rules.node_timeout;
        let joined = self.waiting.stand(wait_queues, key, round, &self.spec);
        let (head, held) = match joined.await {
            Joined::Head(head, held) => (head, held),
            Joined::NotQueued => return Ok(Some(Start::default())),
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
        Ok(Some(Start {
            head: Some(head),
            held,
            not_before,
        }))
    }

    /// Reports that the thread waits for a lock that it has taken itself.
    ///
    /// # Errors
    ///
    /// No other thread can give that lock up.
    fn check_own_hold(&self) -> Result<(), Error> {
        let Self { core, spec, .. } = self;
        if spec.wait == Wait::No || core.events.is_in_callback() {
            return Ok(());
        }
        // Of a plain lock, the wait queue knows as much as makes an error.
        let is_plain = spec.share().is_none() && spec.keys().nth(1).is_none();
        let is_wanted = !is_plain || core.guard_list.is_used() || core.events.has_listener();
        let deadline = spec.wait.deadline();
        if !is_wanted || deadline.is_some_and(|deadline| deadline <= clock::now()) {
            return Ok(());
        }
        let Some(own) = core.own_hold(spec.keys().map(|key| &**key), spec.share(), spec.thread)
        else {
            return Ok(());
        };
        if own.holder == OwnHolder::ThisThread {
            if own.is_bound {
                return Err(Error::HeldByThisThread);
            }
            let resource = Name::new(&own.key[core.key_prefix.len()..]);
            core.events.emit(|| Event::HeldByThisThread { resource });
            if core.is_known_forked() {
                return Err(Error::OtherProcess);
            }
        }
        Ok(())
    }
}

// Readers of one client that take one share of a lock together.

impl<W: Waiting> Acquisition<'_, W> {
    /// Takes part in a share that another thread takes or has taken with the same settings, or
    /// takes one in which others can take part.
    async fn acquire_joint(
        &self,
        kind: &Arc<[u8]>,
        recorder: Option<&mut EventRecorder<'_>>,
    ) -> Result<Option<LockGuard>, Error> {
        let core = self.core;
        let began = clock::now();
        let least = self.spec.min_validity;
        let call = &self.spec.call;
        let member = ShareMember::enter(core, kind, began, least);
        if let Some(granted) = member.usable(began, least) {
            return self.guard_of_member(member, granted, began);
        }
        let queues = &core.joint_shares.queues;
        let round = core.rules.node_timeout;
        let joined = self
            .waiting
            .stand(queues, member.queue_name(), round, &self.spec);
        let head = match joined.await {
            Joined::Head(head, _) => head,
            Joined::NotQueued | Joined::HeldByThisThread => {
                drop(member);
                return self.acquire_alone(recorder).await;
            }
            Joined::TimedOut => return Ok(None),
            Joined::Cancelled => return Err(Error::Cancelled),
        };
        if call.is_cancelled() {
            return Err(Error::Cancelled);
        }
        if let Some(granted) = member.usable(clock::now(), least) {
            drop(head); // The next one has it too.
            return self.guard_of_member(member, granted, began);
        }
        if member.is_granted() {
            // It was lost, or less of it is left than this thread needs.
            drop((member, head));
            return self.acquire_alone(recorder).await;
        }
        let mut start = Start {
            head: Some(head),
            ..Start::default()
        };
        let backend = &*core.backend;
        let result = self
            .waiting
            .acquire(backend, &self.spec, &mut start, recorder)
            .await;
        let mut guard = self.conclude(None, result)?;
        if let Some(guard) = &mut guard {
            guard.share_with(member);
        }
        drop(start);
        Ok(guard)
    }

    /// Takes a share that no other thread of this client has.
    async fn acquire_alone(
        &self,
        recorder: Option<&mut EventRecorder<'_>>,
    ) -> Result<Option<LockGuard>, Error> {
        let mut start = Start::default();
        let backend = &*self.core.backend;
        let result = self
            .waiting
            .acquire(backend, &self.spec, &mut start, recorder)
            .await;
        self.conclude(None, result)
    }

    fn guard_of_member(
        &self,
        member: ShareMember,
        granted: Granted,
        began: Time,
    ) -> Result<Option<LockGuard>, Error> {
        let Self { core, spec, .. } = self;
        let mut guard = LockGuard::of_member(core, member, granted, began, spec.max_hold);
        guard.note_taker(spec.thread);
        if spec.keep_alive {
            guard.kept_by_others()
        } else {
            Ok(guard)
        }
        .map(Some)
    }
}
