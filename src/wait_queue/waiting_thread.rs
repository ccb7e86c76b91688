//! A thread that waits in a queue, or a call without one, and how it is woken. The simulator
//! compiles this file too: its threads do not sleep.

use super::taker::Caller;
use crate::cancel_token::CancelToken;
use crate::clock::{self, Time};
use crate::engine::HeldLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::thread::ThreadId;
use std::time::Duration;

pub(super) struct WaitingThread {
    /// No other thread that waits in the same client has it, and those that came before have
    /// smaller ones.
    pub(super) number: usize,
    wake_up: WakeUp,
    /// Does nobody wait for the call any more? Of calls without a thread.
    is_dropped: Option<Arc<AtomicBool>>,
    /// A token that cancels its wait, besides the client's.
    pub(super) own: Option<CancelToken>,
    pub(super) thread: Option<ThreadId>,
    /// When it began to wait.
    pub(super) since: Time,
    /// Read and written only under the mutex of all queues.
    promotion: Mutex<Option<Promotion>>,
}

enum WakeUp {
    Thread(Condvar),
    /// A call without a thread.
    Call(Waker),
}

impl WakeUp {
    fn condvar(&self) -> Option<&Condvar> {
        match self {
            Self::Thread(condvar) => Some(condvar),
            Self::Call(_) => None,
        }
    }
}

/// A caller that waits in a queue.
pub(crate) struct WaitingCaller {
    pub(super) key: Arc<[u8]>,
    pub(super) waiter: Arc<WaitingThread>,
    pub(super) deadline: Option<Time>,
    /// When it leaves to ask the nodes at the latest.
    pub(super) latest: Option<Time>,
    /// How long it takes at most to ask the nodes.
    pub(super) round: Duration,
    /// Did another thread hold the lock when it last looked?
    pub(super) was_held: bool,
}

/// What a waiter gets when it becomes the head of its queue.
pub(super) struct Promotion {
    pub(super) number: usize,
    pub(super) held: Option<HeldLock>,
    /// The handoff limit is reached: other processes first.
    pub(super) is_after_limit: bool,
}

impl WaitingThread {
    pub(super) fn new(number: usize, caller: Caller<'_>, since: Time) -> Self {
        Self {
            number,
            wake_up: match caller.started {
                Some(started) => WakeUp::Call(started.waker.clone()),
                None => WakeUp::Thread(Condvar::new()),
            },
            is_dropped: caller.started.map(|it| Arc::clone(it.is_dropped)),
            own: caller.token.cloned(),
            thread: caller.thread,
            since,
            promotion: Mutex::new(None),
        }
    }

    pub(super) fn is_cancelled(&self) -> bool {
        let dropped = self.is_dropped.as_ref();
        self.own.as_ref().is_some_and(CancelToken::is_cancelled)
            || dropped.is_some_and(|dropped| dropped.load(Ordering::SeqCst))
    }

    pub(super) fn promote(&self, promotion: Promotion) {
        *self.lock() = Some(promotion);
        self.wake();
    }

    pub(super) fn take_promotion(&self) -> Option<Promotion> {
        self.lock().take()
    }

    fn lock(&self) -> MutexGuard<'_, Option<Promotion>> {
        let promotion = self.promotion.lock();
        promotion.unwrap_or_else(PoisonError::into_inner)
    }

    /// Has it look at the queue and the clock again.
    pub(super) fn wake(&self) {
        match &self.wake_up {
            WakeUp::Thread(condvar) => condvar.notify_one(),
            WakeUp::Call(waker) => waker.wake_by_ref(),
        }
    }

    pub(super) fn sleep<'a, T>(
        &self,
        queues: MutexGuard<'a, T>,
        until: Option<Time>,
    ) -> MutexGuard<'a, T> {
        let condvar = self.wake_up.condvar().expect("only threads sleep");
        let Some(until) = until else {
            return condvar.wait(queues).unwrap_or_else(PoisonError::into_inner);
        };
        let left = until.since(clock::now());
        condvar
            .wait_timeout(queues, left)
            .unwrap_or_else(PoisonError::into_inner)
            .0
    }
}
