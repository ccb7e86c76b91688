//! The guard of a lock that is held: how long it is valid, extending it, giving it up.

mod extension;
mod joint;
mod lost;
mod release;
mod started;
mod token;

use super::clock::{self, Time};
use super::core::{Core, ListedGuard, ShareMember};
use super::engine::HeldLock;
use super::error::{Error, LockLost, LossReason};
use super::event::{Event, Released};
use super::fencing::FencingToken;
use super::name::Name;
use super::wait_queue::{QueueHead, Taker};
use super::watchdog::{GuardedLock, ReservedCapacity};
pub use extension::Extending;
pub use lost::Lost;
use std::cell::Cell;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;
use std::thread::ThreadId;
use std::time::Duration;
pub use token::LockToken;

/// A lock that is held until it is released, until its guard is dropped, or until its validity has
/// passed.
///
/// When [`remaining`](Self::remaining) is zero, another client may hold the lock, whatever this
/// process is doing. Nothing can stop a thread that was just about to write:
/// [`guide::limits`](crate::guide::limits#a-late-write-is-possible) says what to do about that.
///
/// It is not extended automatically unless the request [says so](crate::LockRequest::keep_alive). A
/// leaked guard does not release its lock: the lock ends with its validity, or, if it is extended
/// automatically, with its [`max_hold`](crate::LockRequest::max_hold). A guard belongs to the
/// process that took the lock: a forked child has a copy, which [does not
/// hold](LossReason::OtherProcess) the lock, and dropping that does nothing.
///
/// Dropping a guard releases the lock as [`release`](Self::release) does, but waits for nothing:
/// the lock is handed to the next waiting thread of this client, or the release is written to the
/// nodes at once, and to nodes that are unreachable now with the next call that reaches them. While
/// other threads of the client wait for answers, one of these may have to write it: a process that
/// ends in the same millisecond leaves the key to its ttl.
#[must_use = "the lock is released when this is dropped"]
pub struct LockGuard {
    core: Arc<Core>,
    /// Its place among the guards that are not the heads of their wait queues. Dropped before the
    /// lock, whose memory nobody else has then.
    listed: Option<Box<ListedGuard>>,
    held: ReusedLock,
    /// When the lock was asked for.
    since: Time,
    /// Its part in a share that other threads of this client may have too.
    member: Option<ShareMember>,
    /// The watchdog's capacity that is reserved for it, if it is extended automatically.
    capacity: Option<Arc<ReservedCapacity>>,
    /// For how long extensions may keep the lock.
    max_hold: Option<Duration>,
    /// For how long after the request the lock stays taken, even if it is given up earlier.
    hold_at_least: Duration,
    is_given_up: bool,
    /// Was the loss of the lock emitted, or will the notifier emit it?
    is_loss_emitted: bool,
    /// The place at the head of the wait queue. Dropped last: that promotes the next waiter, which
    /// must come after the release was written.
    head: Option<QueueHead>,
}

impl LockGuard {
    pub(crate) fn new(
        core: Arc<Core>,
        granted: HeldLock,
        head: Option<QueueHead>,
        max_hold: Option<Duration>,
    ) -> Self {
        Self::of(core, ReusedLock::new(granted), head, max_hold)
    }

    fn of(
        core: Arc<Core>,
        held: ReusedLock,
        head: Option<QueueHead>,
        max_hold: Option<Duration>,
    ) -> Self {
        Self {
            since: held.granted().since,
            core,
            listed: None,
            held,
            member: None,
            capacity: None,
            max_hold,
            hold_at_least: Duration::ZERO,
            is_given_up: false,
            is_loss_emitted: false,
            head,
        }
    }

    /// From now on its loss is noticed.
    pub(crate) fn watch(&self) {
        self.core.backend.watch(&self.held, self.head.as_ref());
    }

    /// The name of the locked resource; the first of them, if there are [several](Self::resources).
    #[must_use]
    pub fn resource(&self) -> Name<'_> {
        Name::new(&self.held.granted().key[self.core.key_prefix.len()..])
    }

    /// The names of the locked resources, in the order of their bytes: more than one if they were
    /// [requested together](crate::LockClient::request_all).
    pub fn resources(&self) -> impl Iterator<Item = Name<'_>> {
        self.held
            .granted()
            .keys()
            .map(|key| Name::new(&key[self.core.key_prefix.len()..]))
    }

    /// The number that grows with every grant of the lock, if the request asked for
    /// [one](crate::LockRequest::fenced). Extending the lock keeps it. A
    /// [reader](crate::LockRequest::shared) gets a number that is at least that of the last grant
    /// to a writer, and less than that of the next.
    ///
    /// ```no_run
    /// # fn write(order: u64, fence: i64) {}
    /// # let client = redlatch::LockClient::new("redis://localhost")?;
    /// let lock = client.request("orders:42").fenced().lock()?;
    /// let fence = lock.fencing_token().expect("the request asked for one");
    /// write(42, fence.into()); // the database refuses a number below the last one it has seen
    /// # Ok::<(), redlatch::Error>(())
    /// ```
    #[must_use]
    pub fn fencing_token(&self) -> Option<FencingToken> {
        self.held.granted().fence.map(FencingToken::new)
    }

    /// Which of the [permits](crate::LockRequest::one_of) it is: a number from 0 to one below their
    /// count. No other holder has this slot as long as [`remaining`](Self::remaining) is above
    /// zero, and extending the lock keeps it. `None` for a reader and for the exclusive lock.
    #[must_use]
    pub fn slot(&self) -> Option<u32> {
        self.held.granted().attributes.as_ref()?.share?.permit()
    }

    /// The time left in which work under the lock may go on: zero when the lock is lost.
    ///
    /// It is measured by the clock of this machine, which also counts suspended time. Clock drift
    /// is already subtracted. On ZooKeeper it is not more than what is left of the [proven
    /// validity](crate::guide::guarantees#until-when-a-session-may-be-relied-on) of the session.
    #[must_use]
    pub fn remaining(&self) -> Duration {
        if self.core.is_forked() {
            return Duration::ZERO;
        }
        let now = clock::now();
        self.held
            .check(now)
            .map_or(Duration::ZERO, |valid_until| valid_until.since(now))
    }

    /// Checks that the lock is still held: for the line before the one that must not run twice.
    ///
    /// It asks no node: the answer is what this client knows.
    ///
    /// ```no_run
    /// # use redlatch::{Error, LockGuard};
    /// # fn orders() -> Vec<u32> { Vec::new() }
    /// # fn charge(order: u32) {}
    /// # fn example(lock: LockGuard) -> Result<(), Error> {
    /// for order in orders() {
    ///     lock.ensure_held()?;
    ///     charge(order);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Lost`], with how it was lost. A lock that was lost does not come back.
    pub fn ensure_held(&self) -> Result<(), Error> {
        self.check().map_err(Error::Lost)
    }

    pub(crate) fn check(&self) -> Result<(), LockLost> {
        if self.core.is_forked() {
            return Err(self.loss(LossReason::OtherProcess));
        }
        self.held
            .check(clock::now())
            .map(drop)
            .map_err(|reason| self.loss(reason))
    }

    fn loss(&self, reason: LossReason) -> LockLost {
        LockLost::new(self.resource().as_bytes(), reason)
    }

    /// How long ago the lock was asked for.
    pub(crate) fn age(&self, now: Time) -> Duration {
        now.since(self.since)
    }

    /// This thread gives the lock up after the work that it is about to do, and no other thread
    /// can.
    pub(crate) fn bind_to_this_thread(&self) {
        if let Some(head) = &self.head {
            head.handle().bind_to_this_thread();
        }
        if let Some(listed) = &self.listed {
            listed.bind_to_this_thread();
        }
    }

    /// The lock was taken for this thread, if for one in particular. The wait queue of a plain lock
    /// knows that by itself.
    pub(crate) fn note_taker(&mut self, thread: Option<ThreadId>) {
        if self.head.is_none() || self.held.granted().keys().nth(1).is_some() {
            let taker = Taker {
                thread,
                is_bound: false,
            };
            self.listed = Some(Box::new(ListedGuard::new(&self.core, &self.held, taker)));
        }
    }

    /// The next waiter may have the lock, and no thread of this client holds it by this guard.
    fn leave_queue(&mut self) {
        self.listed = None;
        drop(self.head.take());
    }
}

impl fmt::Debug for LockGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LockGuard")
            .field("resource", &self.resource())
            .field("remaining", &self.remaining())
            .finish_non_exhaustive()
    }
}

impl LockGuard {
    /// Emits the result of an extension by a call, if there was a listener when it `began`.
    fn emit_extended(&mut self, began: Option<Time>, result: &Result<(), Error>) {
        let Some(began) = began else { return };
        if let Err(Error::Lost(lost)) = result {
            return self.emit_lost(lost.reason());
        }
        let resource = self.resource();
        let validity = self.remaining();
        let took = clock::now().since(began);
        let automatic = false;
        match result {
            Ok(()) => {
                self.core.events.emit(|| Event::Extended {
                    resource,
                    took,
                    validity,
                    automatic,
                });
            }
            // No node was asked.
            Err(Error::Ttl(_)) => {}
            Err(error) => {
                self.core.events.emit(|| Event::NotExtended {
                    resource,
                    took,
                    validity,
                    error,
                    automatic,
                });
            }
        }
    }

    /// Emits that the lock was released. `outcome` is what is known about that.
    fn emit_released(&mut self, outcome: Option<Released>) {
        if !self.core.events.has_listener() {
            return;
        }
        // The next waiter need not wait for the callback.
        self.leave_queue();
        let is_lost = outcome == Some(Released::TooLate);
        if is_lost {
            // If it was not lost when it was given up, this was not emitted yet.
            self.is_loss_emitted &= self.held.check(clock::now()).is_err();
            self.emit_lost(self.late_reason());
        }
        let now = clock::now();
        let least = if is_lost {
            Duration::ZERO
        } else {
            self.hold_at_least
        };
        let remaining = least.saturating_sub(self.age(now));
        let resource = self.resource();
        let held = self.age(now);
        self.core.events.emit(|| Event::Released {
            resource,
            held,
            outcome,
            remaining,
        });
    }

    fn emit_let_expire(&mut self) {
        // The next waiter asks the nodes from now on.
        self.leave_queue();
        if !self.core.events.has_listener() {
            return;
        }
        let now = clock::now();
        let valid_until = self.held.check(now);
        if let Err(reason) = valid_until {
            self.emit_lost(reason);
        }
        let stays_until = self.held.stays_until(now, &self.core.rules);
        let remaining = valid_until.map_or(Duration::ZERO, |end| end.min(stays_until).since(now));
        let resource = self.resource();
        let held = self.age(now);
        self.core.events.emit(|| Event::LetExpire {
            resource,
            held,
            remaining,
        });
    }

    /// Emits that the lock was lost, once for each guard.
    fn emit_lost(&mut self, reason: LossReason) {
        if !std::mem::replace(&mut self.is_loss_emitted, true) {
            self.core
                .events
                .emit_lost(self.resource(), self.since, reason);
        }
    }

    /// Calls `callback` when the lock is lost: exactly once, within milliseconds after its validity
    /// has passed, or as soon as the nodes say that it is gone. At once if it is lost already.
    /// Never if the lock is released, dropped, left or handed off before that. A lock may have
    /// several callbacks; each is called. This does not extend the lock: see
    /// [`keep_alive`](crate::LockRequest::keep_alive).
    ///
    /// The callbacks of all locks of a client, and the [events](crate::Builder::on_event) that
    /// belong to no call, run one after another on one thread. So a callback that blocks delays
    /// these, and nothing else: another thread extends locks, and
    /// [`ensure_held`](Self::ensure_held) and [`wait_lost`](Self::wait_lost) need none. A callback
    /// may panic, drop the guard or the client, and use the client; but it must not wait for
    /// another callback.
    ///
    /// The timer behind it stands still while the machine is suspended. After that, the call may be
    /// late by as long as the machine slept, but [`ensure_held`](Self::ensure_held) is right at
    /// once.
    ///
    /// ```no_run
    /// # use std::sync::Arc;
    /// # use std::sync::atomic::{AtomicBool, Ordering};
    /// # fn work_step() {}
    /// # let client = redlatch::LockClient::new("redis://localhost")?;
    /// let lock = client.request("orders:42").keep_alive().lock()?;
    /// let stop = Arc::new(AtomicBool::new(false));
    /// let on_lost = Arc::clone(&stop);
    /// lock.on_lost(move |lost| {
    ///     eprintln!("stopping: {lost}");
    ///     on_lost.store(true, Ordering::Relaxed);
    /// })?;
    /// while !stop.load(Ordering::Relaxed) {
    ///     work_step();
    /// }
    /// # Ok::<(), redlatch::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Spawn`]: the notifier's thread could not be started, and `callback` will not be
    /// called. A forked child has none ([`Error::OtherProcess`]).
    pub fn on_lost(&self, callback: impl FnOnce(LockLost) + Send + 'static) -> Result<(), Error> {
        if self.core.is_forked() {
            return Err(Error::OtherProcess);
        }
        self.core.notifier.start()?;
        let resource: Arc<[u8]> = self.resource().as_bytes().into();
        let at_loss = Box::new(move |reason| callback(LockLost::new(resource, reason)));
        if self.held.on_lost(self.number(), at_loss) {
            self.core.notifier.watch_for_loss(Arc::clone(&self.held));
        }
        Ok(())
    }

    /// Waits until the lock is lost, for up to `timeout`. `None` if it is still held then.
    ///
    /// It needs no thread but the caller's. If the caller overslept the end, it returns `Some`.
    ///
    /// ```no_run
    /// # use std::time::Duration;
    /// # fn example(lock: redlatch::LockGuard) {
    /// # let mut worker = std::process::Command::new("true").spawn().unwrap();
    /// // A child process does the work.
    /// while worker.try_wait().is_ok_and(|status| status.is_none()) {
    ///     if lock.wait_lost(Duration::from_millis(100)).is_some() {
    ///         let _ = worker.kill();
    ///     }
    /// }
    /// # }
    /// ```
    #[must_use]
    pub fn wait_lost(&self, timeout: Duration) -> Option<LockLost> {
        if self.core.is_forked() {
            return Some(self.loss(LossReason::OtherProcess));
        }
        self.held
            .wait_lost(clock::now, timeout)
            .map(|reason| self.loss(reason))
    }
}

// Reuse of the memory of locks, so that a lock needs no allocation besides its key's.
//
// Each thread keeps the memory of the last lock that it dropped, without its keys, for the next
// lock that it takes.

thread_local! {
    static SPARE: Cell<Option<Arc<GuardedLock>>> = const { Cell::new(None) };
}

/// A guarded lock whose memory goes back to the thread that drops it last.
struct ReusedLock(Option<Arc<GuardedLock>>);

impl ReusedLock {
    fn new(granted: HeldLock) -> Self {
        // A thread that is about to end has no spare any more.
        let mut spare = SPARE.try_with(Cell::take).ok().flatten();
        let fresh = GuardedLock::new(granted);
        match spare.as_mut().and_then(Arc::get_mut) {
            Some(memory) => *memory = fresh,
            None => spare = Some(Arc::new(fresh)),
        }
        Self(spare)
    }

    /// A lock that other guards have as well.
    fn of_others(held: Arc<GuardedLock>) -> Self {
        Self(Some(held))
    }
}

impl Deref for ReusedLock {
    type Target = Arc<GuardedLock>;

    fn deref(&self) -> &Arc<GuardedLock> {
        self.0
            .as_ref()
            .expect("it is taken only when this is dropped")
    }
}

impl Drop for ReusedLock {
    fn drop(&mut self) {
        // Not if the watchdog still has a reference.
        if let Some(memory) = self.0.as_mut().and_then(Arc::get_mut) {
            memory.clear_keys();
            let _ = SPARE.try_with(|spare| spare.set(self.0.take()));
        }
    }
}

#[cfg(test)]
mod fixture;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::guard::fixture::held_lock;

    #[test]
    fn a_thread_uses_the_memory_of_its_last_lock_again_unless_that_is_still_shared() {
        let first = ReusedLock::new(held_lock(1));
        let address = Arc::as_ptr(&first);
        drop(first);
        let second = ReusedLock::new(held_lock(2));
        assert_eq!(Arc::as_ptr(&second), address);
        assert_eq!(second.granted().token, held_lock(2).token);
        let shared = Arc::clone(&second);
        drop(second);
        let third = ReusedLock::new(held_lock(3));
        assert_ne!(Arc::as_ptr(&third), address);
        assert_eq!(
            shared.granted().token,
            held_lock(2).token,
            "the other reference is good"
        );
    }
}
