//! A lock that is held, as its guard and the watchdog's threads use it.
//!
//! ```text
//!      begin_extension, finish_extension
//!          ┌───────────┐
//!          ▼           │      close (release, drop, let_expire, handoff)
//!   new ─▶ Held ───────┴──────────────────────────────────────▶ Released
//!            │
//!            └── validity passed, or the nodes say it is gone ─▶ Lost ─▶ watchers, each once
//! ```
//!
//! What must stay true:
//!
//! * The first transition out of `Held` decides, under one mutex, and nothing leads back. Any call
//!   that finds that the validity has passed makes the transition to `Lost`: a confirmation that
//!   comes later brings nothing back.
//! * The watchdog sends an extension under that mutex ([`GuardedLock::begin_extension`]), and a
//!   release is sent only after [`GuardedLock::close`]. So on every node the release comes after
//!   all extensions, and none begins later. A thread that extends borrows the guard for the whole
//!   time, so no release can begin meanwhile: of several guards that have one share, the last one
//!   to leave releases it, and the one that extends has not left. An extension that was started may
//!   outlast its guard's use: it is sent as the watchdog's.
//! * While there are watchers, callbacks or tasks that wait for the loss, the lock is in the
//!   notifier's schedule, under the end of its validity: the first puts it there
//!   ([`GuardedLock::on_lost`]), and it stays until the lock is lost or released, so that a task
//!   that waits again and again is in the schedule once. Code that ends the lock earlier, because
//!   of what the nodes say, has the notifier check it at once.
//! * A waker is a user's code: it is called and dropped outside the mutex.

use super::sync::{Condvar, Mutex, MutexGuard, PoisonError, wait};
use crate::clock::Time;
use crate::engine::{Extended, Extension, HeldLock, NodeSet, Rules, Ttl};
use crate::error::LossReason;
use std::fmt;
use std::mem;
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

pub(crate) type LossCallback = Box<dyn FnOnce(LossReason) + Send>;

/// A lock that several threads use.
pub(crate) struct GuardedLock {
    /// The lock as it was granted. What extensions change of it is in the state.
    granted: HeldLock,
    state: Mutex<State>,
    lost: Condvar,
}

struct State {
    phase: LockPhase,
    valid_until: Time,
    /// The latest ttl that was confirmed.
    ttl: Ttl,
    /// The longest ttl that was ever sent.
    ttl_longest: Ttl,
    /// The nodes that may hold the key.
    nodes: NodeSet,
    extensions: usize,
    watchers: Vec<Watcher>,
    /// Does the notifier check the lock when its validity ends?
    is_watched: bool,
}

/// Who is told of the loss.
struct Watcher {
    /// The number of the guard.
    guard: usize,
    told: Told,
}

enum Told {
    Callback(LossCallback),
    /// A task that waits for the loss is woken.
    Task {
        number: u64,
        waker: Waker,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LockPhase {
    Held,
    Lost(LossReason),
    Released,
}

/// What the notifier finds when it checks a lock.
pub(crate) enum HoldStatus {
    Held(Time),
    /// Lost, with the callbacks that have not been called.
    Lost(LossReason, Vec<LossCallback>),
    Released,
}

impl GuardedLock {
    pub(crate) fn new(granted: HeldLock) -> Self {
        let state = State {
            phase: LockPhase::Held,
            valid_until: granted.valid_until,
            ttl: granted.ttl,
            ttl_longest: granted.ttl_longest,
            nodes: granted.nodes,
            extensions: 0,
            watchers: Vec::new(),
            is_watched: false,
        };
        Self {
            granted,
            state: Mutex::new(state),
            lost: Condvar::new(),
        }
    }

    /// The lock as it was granted: only its validity, ttl and nodes may have changed.
    pub(crate) fn granted(&self) -> &HeldLock {
        &self.granted
    }

    /// Until when the lock is held, or was held when it was released, or how it was lost.
    pub(crate) fn check(&self, now: Time) -> Result<Time, LossReason> {
        let mut state = self.lock();
        self.expire(&mut state, now);
        state
            .valid_until()
            .map(|valid_until| self.end_of(valid_until))
    }

    /// The same for the notifier, which tells the watchers of a lost lock: it calls what it takes.
    pub(crate) fn take_status(&self, now: Time) -> HoldStatus {
        let mut state = self.lock();
        self.expire(&mut state, now);
        match state.phase {
            LockPhase::Held => HoldStatus::Held(self.end(&state)),
            LockPhase::Lost(lost) => {
                state.is_watched = false;
                let watchers = mem::take(&mut state.watchers);
                HoldStatus::Lost(
                    lost,
                    watchers.into_iter().map(Watcher::into_callback).collect(),
                )
            }
            LockPhase::Released => HoldStatus::Released,
        }
    }

    /// Until when the lock is held, if it is neither lost nor released.
    pub(super) fn held_until(&self, now: Time) -> Option<Time> {
        let mut state = self.lock();
        self.expire(&mut state, now);
        (state.phase == LockPhase::Held).then(|| self.end(&state))
    }

    /// Until when it is valid, or was.
    pub(crate) fn valid_until(&self) -> Time {
        self.lock().valid_until
    }

    /// When its key will have expired on the nodes.
    pub(crate) fn key_expires_at(&self, rules: &Rules) -> Time {
        self.current(&self.lock()).expires_at(rules)
    }

    /// Until when it stays taken if it is left to its ttl now.
    pub(crate) fn stays_until(&self, now: Time, rules: &Rules) -> Time {
        self.current(&self.lock()).stays_until(now, rules)
    }

    pub(crate) fn key_bytes(&self) -> usize {
        self.granted.keys().map(<[u8]>::len).sum()
    }

    /// Was it closed before it was lost?
    pub(super) fn is_released(&self) -> bool {
        self.lock().phase == LockPhase::Released
    }

    /// Begins an extension to `ttl`, if the lock is held. `send` posts the request to the nodes
    /// without waiting, and says whether it has. If it has,
    /// [`finish_extension`](Self::finish_extension) must follow; if not, nothing has changed.
    pub(crate) fn begin_extension(
        &self,
        now: Time,
        ttl: Ttl,
        send: impl FnOnce(HeldLock) -> bool,
    ) -> Result<(), LossReason> {
        let mut state = self.lock();
        self.expire(&mut state, now);
        match state.phase {
            LockPhase::Held => {}
            LockPhase::Lost(lost) => return Err(lost),
            LockPhase::Released => return Err(LossReason::Expired),
        }
        if send(self.current(&state)) {
            // Whether or not it is confirmed: a release must know for how long the key may live,
            // and another extension what it must not shorten.
            state.ttl_longest = state.ttl_longest.max(ttl);
            state.extensions += 1;
        }
        Ok(())
    }

    /// Begins an extension that the caller sends: one that borrows the guard until then.
    /// [`finish_extension`](Self::finish_extension) must follow.
    pub(crate) fn extension(&self, now: Time, ttl: Ttl) -> Result<Extension, LossReason> {
        let mut begun = None;
        self.begin_extension(now, ttl, |held| begun.replace(held).is_none())?;
        Ok(Extension {
            held: begun.expect("an extension that began without an error is there"),
            ttl,
            began: now,
            is_resumed: false,
        })
    }

    /// Records the outcome of an extension, and says until when the lock is held now.
    pub(crate) fn finish_extension(&self, now: Time, end: Extended) -> Result<Time, LossReason> {
        let mut state = self.lock();
        state.extensions -= 1;
        self.expire(&mut state, now);
        match end {
            Extended::Confirmed(held) => {
                if state.phase == LockPhase::Held {
                    state.valid_until = state.valid_until.max(held.valid_until);
                    state.ttl = held.ttl;
                }
                state.merge_reach(&held);
            }
            Extended::Unanswered(held) => state.merge_reach(&held),
            Extended::Lost(held) => {
                // If the validity that the extension began with has not passed, the nodes have
                // denied the lock. If it has, another extension may have been confirmed meanwhile.
                if state.phase == LockPhase::Held && now < held.valid_until {
                    self.lose(&mut state, now, LossReason::Gone);
                }
                state.merge_reach(&held);
            }
            Extended::HeldTooLong(_) => {}
        }
        state.valid_until()
    }

    /// Ends the use of the lock. From here on no extension begins, and watchers are dropped unless
    /// the lock was lost before. The caller may send a release for the returned lock.
    pub(crate) fn close(&self, now: Time, all: NodeSet) -> HeldLock {
        let mut state = self.lock();
        self.expire(&mut state, now);
        let mut held = self.current(&state);
        if state.extensions > 0 {
            // An extension under way may put the key back on any node.
            held.nodes = all;
        }
        let watchers = if state.phase == LockPhase::Held {
            state.phase = LockPhase::Released;
            mem::take(&mut state.watchers)
        } else {
            Vec::new()
        };
        drop(state);
        // Not under the mutex: dropping what they own may call into this lock.
        drop(watchers);
        held
    }

    /// Adds a callback of this guard for the loss of the lock. Says whether the caller must have
    /// the notifier [check](Self::take_status) this lock: with an earlier watcher, it does already.
    #[must_use]
    pub(crate) fn on_lost(&self, guard: usize, callback: LossCallback) -> bool {
        let mut state = self.lock();
        if state.phase == LockPhase::Released {
            drop(state); // First: the callback, which is dropped here, may own anything.
            return false;
        }
        let told = Told::Callback(callback);
        state.watchers.push(Watcher { guard, told });
        !mem::replace(&mut state.is_watched, true)
    }

    /// From now on this task of this guard is woken by `waker` when the lock is lost, and by no
    /// waker that it gave before. Says what [`on_lost`](Self::on_lost) does.
    #[must_use]
    pub(crate) fn wake_when_lost(&self, guard: usize, task: u64, waker: Waker) -> bool {
        let mut state = self.lock();
        let before = state.take_task(task);
        let told = Told::Task {
            number: task,
            waker,
        };
        state.watchers.push(Watcher { guard, told });
        let is_first = !mem::replace(&mut state.is_watched, true);
        drop(state);
        drop(before);
        is_first
    }

    /// This task waits no more.
    pub(crate) fn forget_task(&self, task: u64) {
        let before = self.lock().take_task(task);
        drop(before);
    }

    /// Waits until the lock is lost, for up to `limit`, by `clock`.
    pub(crate) fn wait_lost(&self, clock: fn() -> Time, limit: Duration) -> Option<LossReason> {
        let deadline = clock().after(limit);
        let mut state = self.lock();
        loop {
            let now = clock();
            self.expire(&mut state, now);
            if let LockPhase::Lost(lost) = state.phase {
                return Some(lost);
            }
            if now >= deadline {
                return None;
            }
            let until = self.end(&state).min(deadline);
            state = wait(&self.lost, state, until.since(now));
        }
    }

    /// Frees the memory of its keys, so that the rest can be kept for another lock.
    pub(crate) fn clear_keys(&mut self) {
        self.granted.key = Arc::default();
        self.granted.attributes = None;
        self.granted.session = None;
    }

    fn current(&self, state: &State) -> HeldLock {
        let mut held = self.granted.clone();
        held.valid_until = state.valid_until;
        held.ttl = state.ttl;
        held.ttl_longest = state.ttl_longest;
        held.nodes = state.nodes;
        held
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn valid_until(&self) -> Result<Time, LossReason> {
        match self.phase {
            LockPhase::Lost(lost) => Err(lost),
            LockPhase::Held | LockPhase::Released => Ok(self.valid_until),
        }
    }

    fn take_task(&mut self, task: u64) -> Option<Watcher> {
        let is_it = |it: &Watcher| matches!(&it.told, Told::Task { number, .. } if *number == task);
        let place = self.watchers.iter().position(is_it)?;
        Some(self.watchers.remove(place))
    }

    /// Takes over from an extension where the key may be, and for how long.
    fn merge_reach(&mut self, held: &HeldLock) {
        self.nodes = self.nodes.union(held.nodes);
        self.ttl_longest = self.ttl_longest.max(held.ttl_longest);
    }
}

impl Watcher {
    /// What tells it.
    fn into_callback(self) -> LossCallback {
        match self.told {
            Told::Callback(callback) => callback,
            Told::Task { waker, .. } => Box::new(move |_| waker.wake()),
        }
    }
}

impl fmt::Debug for GuardedLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "GuardedLock({:?})", self.lock().phase)
    }
}

impl GuardedLock {
    /// The lock is lost now, if it was held: whoever keeps it says so.
    #[allow(dead_code, reason = "nodes tell of no loss, and ensembles do")]
    pub(crate) fn end_now(&self, now: Time, lost: LossReason) {
        let mut state = self.lock();
        self.expire(&mut state, now);
        if state.phase == LockPhase::Held {
            self.lose(&mut state, now, lost);
        }
    }

    /// One of several guards gives the lock up, and the others go on: its watchers are dropped,
    /// unless the lock was lost before. Returns what [`check`](Self::check) does.
    pub(crate) fn leave(&self, now: Time, guard: usize) -> Result<Time, LossReason> {
        let mut state = self.lock();
        self.expire(&mut state, now);
        let mut dropped = Vec::new();
        if state.phase == LockPhase::Held {
            let all = mem::take(&mut state.watchers);
            (dropped, state.watchers) = all.into_iter().partition(|it| it.guard == guard);
        }
        let held_until = state
            .valid_until()
            .map(|valid_until| self.end_of(valid_until));
        drop(state);
        // Not under the mutex: dropping what they own may call into this lock.
        drop(dropped);
        held_until
    }

    /// The end of its validity: its own, or that of the session that holds it.
    fn end(&self, state: &State) -> Time {
        self.end_of(state.valid_until)
    }

    fn end_of(&self, valid_until: Time) -> Time {
        let session = self.granted.session.as_ref();
        session.map_or(valid_until, |session| valid_until.min(session.get()))
    }

    /// Makes the transition to `Lost` if the validity has passed.
    fn expire(&self, state: &mut State, now: Time) {
        if state.phase == LockPhase::Held && now >= self.end(state) {
            self.lose(state, now, LossReason::Expired);
        }
    }

    fn lose(&self, state: &mut State, now: Time, lost: LossReason) {
        state.phase = LockPhase::Lost(lost);
        state.valid_until = state.valid_until.min(now);
        self.lost.notify_all();
    }
}
