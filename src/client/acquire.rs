//! Acquiring a lock: one implementation for all methods, alone or together with other readers, and
//! what a lock that is kept alive needs before and after that. A call whose thread waits is here;
//! one that was started differs from it only in how it waits, in `started`.
//!
//! What both call is `#[inline(always)]`, or a call whose thread waits moves more in memory than it
//! needs.

mod joint;
mod started;

use super::LockClient;
use super::request::LockRequest;
use crate::backend::{EventRecorder, LockSpec, Start};
use crate::clock;
use crate::config::OWNER_MAX;
use crate::core::{Core, name_of_set};
use crate::engine::{HeldLock, Jitter, LockAttributes, PERMITS_MAX, Share, TTL_LIMIT, Ttl, Wait};
use crate::entropy::draw;
use crate::error::{Error, ResourceError, TtlError};
use crate::event::Event;
use crate::guard::LockGuard;
use crate::inspect::OwnHolder;
use crate::name::Name;
use crate::wait_queue::{Caller, Joined, QueueHead, WaitQueues};
use crate::watchdog::{MAX_HOLD, shortest_ttl};
use std::borrow::Cow;
use std::mem;
use std::sync::Arc;
use std::time::Duration;

impl LockRequest<'_> {
    /// All ways to acquire the lock in this thread. Emits events if there is a listener.
    pub(super) fn acquire(mut self, wait: Wait) -> Result<Option<LockGuard>, Error> {
        let attributes = self.attributes().map_err(Error::Resource)?;
        let spec = self.spec(attributes, wait)?;
        let core = &self.client.core;
        let acquisition = Acquisition { core, spec };
        let mut recorder = acquisition.recorder();
        let result = acquisition.run(recorder.as_mut());
        if let Some(recorder) = recorder {
            emit_result(recorder, &result);
        }
        result
    }

    /// What the lock has besides its first key, which takes the other keys out of the request.
    #[inline(always)]
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
            client: LockClient { core, .. },
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

/// The key of a lock, or what the keys of a set are in order.
type QueueName<'a> = Cow<'a, Arc<[u8]>>;

/// A call that acquires a lock.
pub(super) struct Acquisition<'a> {
    pub(super) core: &'a Arc<Core>,
    pub(super) spec: LockSpec<'a>,
}

impl Acquisition<'_> {
    fn run(&self, recorder: Option<&mut EventRecorder<'_>>) -> Result<Option<LockGuard>, Error> {
        let Self { core, spec } = self;
        self.prepare_keeping()?;
        self.check_own_hold()?;
        let start = match self.queue() {
            Some((queues, name)) => self.start(self.join(queues, &name))?,
            None => Some(Start::default()),
        };
        let Some(mut start) = start else {
            return Ok(None);
        };
        if let Some(kind) = spec.share().and_then(|_| self.kind_of_share()) {
            return self.acquire_joint(&kind, recorder);
        }
        let result = core.backend.acquire(spec, &mut start, recorder);
        self.conclude(start.head, result)
    }

    /// What emits the call's events, if there is a listener.
    #[inline(always)]
    fn recorder(&self) -> Option<EventRecorder<'_>> {
        let Self { core, spec } = self;
        if !core.events.has_listener() {
            return None;
        }
        let resource = Name::new(&spec.key[core.key_prefix.len()..]);
        Some(EventRecorder::begin(&core.events, resource))
    }

    /// Checks whether the lock can be kept alive, if the request asks for that, and starts the
    /// watchdog. Before anything is sent.
    pub(super) fn prepare_keeping(&self) -> Result<(), Error> {
        let Self { core, spec } = self;
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
        let Self { core, spec } = self;
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

impl Acquisition<'_> {
    /// The queues of this process in one of which the call stands before it asks for its lock, and
    /// the name of that.
    #[inline(always)]
    fn queue(&self) -> Option<(&Arc<WaitQueues>, QueueName<'_>)> {
        let Self { core, spec } = self;
        if core.events.is_in_callback() {
            // The call that this callback belongs to may be ahead of this one in the queue.
            return None;
        }
        if spec.share().is_some() {
            // Threads of this client can have the lock at the same time.
            return None;
        }
        let attributes = spec.attributes.as_ref();
        if attributes.is_some_and(|it| !it.more_keys.is_empty()) {
            let name = name_of_set(spec.keys());
            return Some((&core.set_wait_queues, Cow::Owned(name)));
        }
        Some((&core.wait_queues, Cow::Borrowed(&spec.key)))
    }

    /// Waits in a queue until this thread is its head, or has left it.
    #[inline(always)]
    fn join(&self, queues: &Arc<WaitQueues>, name: &Arc<[u8]>) -> Joined {
        let caller = Caller {
            token: self.spec.call.own(),
            thread: self.spec.thread,
            started: None,
        };
        queues.join(name, self.spec.wait, self.round(), caller)
    }

    /// How long it takes at most to ask the nodes.
    fn round(&self) -> Duration {
        self.core.rules.node_timeout
    }

    /// How a call begins that has stood in the queue of this process. `None` if the deadline has
    /// passed and another thread holds the lock; an error if that thread is this one.
    #[inline(always)]
    fn start(&self, joined: Joined) -> Result<Option<Start>, Error> {
        let (head, held) = match joined {
            Joined::Head(head, held) => (head, held),
            Joined::NotQueued => return Ok(Some(Start::default())),
            Joined::TimedOut => return Ok(None),
            Joined::HeldByThisThread => return Err(Error::HeldByThisThread),
            Joined::Cancelled => return Err(Error::Cancelled),
        };
        let deadline = self.spec.wait.deadline();
        let mut not_before = None;
        if let Some(held) = &held {
            if self.spec.call.is_cancelled() {
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
    #[inline(always)]
    fn check_own_hold(&self) -> Result<(), Error> {
        let Self { core, spec } = self;
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

/// Emits how a call has ended, unless it has asked for nothing.
fn emit_result(recorder: EventRecorder<'_>, result: &Result<Option<LockGuard>, Error>) {
    if !matches!(result, Err(Error::Ttl(_) | Error::HeldByThisThread)) {
        recorder.emit_result(result.as_ref().map(Option::as_ref), LockGuard::remaining);
    }
}
