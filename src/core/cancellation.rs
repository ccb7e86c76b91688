//! Cancelling the waits for locks: one flag for all threads of a client.
//!
//! A thread that waits for a lock is in a wait queue, waits in the nodes' queue, or pauses between
//! two attempts. Cancelling wakes all, and no thread begins a wait after that. What must stay true:
//! nothing is left on the nodes. A thread that is woken leaves the nodes' queue, and one whose
//! round is under way lets it end.

use crate::clock::{self, Time};
use crate::engine::{Action, Request, Rules};
use crate::net::Net;
use crate::owner_process::OwnerProcess;
use crate::wait_queue::WaitQueues;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError, Weak};

pub(crate) struct Cancellation {
    is_cancelled: AtomicBool,
    /// Held while the flag is set, so that no thread misses it between its check and its sleep.
    mutex: Mutex<()>,
    wake_up: Condvar,
    wait_queues: [Arc<WaitQueues>; 2],
    /// Where threads wait in the nodes' queues. This keeps no connection open.
    net: Weak<Net>,
    rules: Arc<Rules>,
    owner_process: Arc<OwnerProcess>,
}

impl Cancellation {
    pub(super) fn new(
        wait_queues: [Arc<WaitQueues>; 2],
        (net, rules): (Weak<Net>, Arc<Rules>),
        owner_process: Arc<OwnerProcess>,
    ) -> Self {
        let (is_cancelled, mutex) = (AtomicBool::new(false), Mutex::new(()));
        let wake_up = Condvar::new();
        Self { is_cancelled, mutex, wake_up, wait_queues, net, rules, owner_process }
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        self.is_cancelled.load(Ordering::SeqCst)
    }

    /// Ends all waits, now and from now on. Does nothing in a forked child, where the mutexes may
    /// be held by threads that do not exist.
    pub(crate) fn cancel(&self) {
        if self.owner_process.is_forked() {
            return;
        }
        let guard = self.mutex.lock().unwrap_or_else(PoisonError::into_inner);
        self.is_cancelled.store(true, Ordering::SeqCst);
        drop(guard);
        self.wake_up.notify_all();
        self.wait_queues.iter().for_each(|queues| queues.cancel());
        if let Some(net) = self.net.upgrade() {
            net.post(Request::to_all(&self.rules, clock::now(), Action::EndWaits));
        }
    }

    /// Pauses until `time`. Returns `true`, and early, if the waits are cancelled.
    pub(crate) fn pause_until(&self, time: Time) -> bool {
        let mut pause = time.since(clock::now());
        if pause.is_zero() {
            return self.is_cancelled();
        }
        let mut guard = self.mutex.lock().unwrap_or_else(PoisonError::into_inner);
        while !pause.is_zero() {
            if self.is_cancelled() {
                return true;
            }
            let woken = self.wake_up.wait_timeout(guard, pause);
            guard = woken.unwrap_or_else(PoisonError::into_inner).0;
            pause = time.since(clock::now());
        }
        false
    }
}
