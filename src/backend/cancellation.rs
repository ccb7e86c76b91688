//! Cancelling the calls of a client that acquire locks.
//!
//! Each call has the client's token, and perhaps one of its own. A thread that waits for a lock is
//! in a wait queue, waits in the nodes' queue, or pauses between two attempts. Cancelling wakes the
//! threads whose call is cancelled, and none of them begins a wait after that. What must stay true:
//! nothing is left on the nodes. A thread that is woken leaves the nodes' queue, and one whose
//! round is under way lets it end.

use super::Backend;
use crate::cancel_token::{CancelToken, CancelTokenId, WakeCancelled};
use crate::clock::{self, Time};
use crate::engine::Token;
use crate::owner_process::OwnerProcess;
use crate::wait_queue::WaitQueues;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::mem;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};

type Waiters = BTreeMap<CancelTokenId, BTreeSet<Token>>;

/// Wakes the calls of a client.
pub(crate) struct Cancellation {
    /// Every call has this one.
    token: CancelToken,
    /// The waiters in the nodes' queues whose call has a token of its own, by that, until it is
    /// cancelled: where thousands wait, cancelling one does not look at the others.
    waiters: Mutex<Waiters>,
    /// For threads that pause.
    wake_up: Condvar,
    wait_queues: [Arc<WaitQueues>; 3],
    /// Where threads wait in the nodes' queues. This keeps no connection open.
    backend: Weak<dyn Backend>,
    owner_process: Arc<OwnerProcess>,
    /// Itself, for the tokens.
    this: Weak<Self>,
}

impl Cancellation {
    pub(crate) fn new(
        token: CancelToken,
        wait_queues: [Arc<WaitQueues>; 3],
        backend: Weak<dyn Backend>,
        owner_process: Arc<OwnerProcess>,
    ) -> Arc<Self> {
        let cancellation = Arc::new_cyclic(|this| Self {
            token,
            waiters: Mutex::new(BTreeMap::new()),
            wake_up: Condvar::new(),
            wait_queues,
            backend,
            owner_process,
            this: Weak::clone(this),
        });
        cancellation.token.attach(&cancellation.weak());
        cancellation
    }

    /// The token that all calls have.
    pub(crate) fn token(&self) -> &CancelToken {
        &self.token
    }

    /// A call begins, perhaps with a token of its own.
    pub(crate) fn call<'a>(&'a self, own: Option<&'a CancelToken>) -> CancellableCall<'a> {
        if let Some(own) = own {
            own.attach(&self.weak());
        }
        CancellableCall {
            client: self,
            own,
            waiter: Mutex::new(None),
            is_dropped: None,
        }
    }

    fn weak(&self) -> Weak<dyn WakeCancelled> {
        let this: Weak<Self> = Weak::clone(&self.this);
        this
    }

    fn lock(&self) -> MutexGuard<'_, Waiters> {
        self.waiters.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl WakeCancelled for Cancellation {
    /// Does nothing in a forked child, where the mutexes may be held by threads that do not exist.
    fn wake_cancelled(&self, token: &CancelToken) {
        if self.owner_process.is_forked() {
            return;
        }
        // With the mutex, no thread is between its check and its sleep. Each waiter is told of
        // once: a token may be cancelled again.
        let cancelled = self.lock().remove(&token.id());
        self.wake_up.notify_all();
        for queues in &self.wait_queues {
            queues.wake_cancelled(token);
        }
        let Some(backend) = self.backend.upgrade() else {
            return;
        };
        backend.driver().poll_pausing();
        if token.id() == self.token.id() {
            return backend.end_waits(None);
        }
        for waiter in cancelled.into_iter().flatten() {
            backend.end_waits(Some(waiter));
        }
    }
}

/// A call that acquires a lock, and the tokens that cancel it.
pub(crate) struct CancellableCall<'a> {
    client: &'a Cancellation,
    own: Option<&'a CancelToken>,
    /// Its waiter in the nodes' queue, if that is to be woken by the token of its own.
    /// A call that has no thread of its own moves between threads.
    waiter: Mutex<Option<Token>>,
    /// Does nobody wait for it any more? Of a call that was started.
    is_dropped: Option<Arc<AtomicBool>>,
}

impl CancellableCall<'_> {
    pub(crate) fn is_cancelled(&self) -> bool {
        let dropped = self.is_dropped.as_ref();
        self.client.token.is_cancelled()
            || self.own.is_some_and(CancelToken::is_cancelled)
            || dropped.is_some_and(|dropped| dropped.load(Ordering::SeqCst))
    }

    /// The call was started, and this is set when nobody waits for it any more.
    pub(crate) fn set_started(&mut self, is_dropped: &Arc<AtomicBool>) {
        self.is_dropped = Some(Arc::clone(is_dropped));
    }

    /// The token that only this call has, and perhaps others with it.
    pub(crate) fn own(&self) -> Option<&CancelToken> {
        self.own
    }

    /// Notes the call's waiter in the nodes' queue, before it waits there.
    pub(crate) fn set_waiter(&self, waiter: Option<Token>) {
        let Some(own) = self.own else { return };
        let mut noted = self.waiter.lock().unwrap_or_else(PoisonError::into_inner);
        if *noted == waiter {
            return;
        }
        let before = mem::replace(&mut *noted, waiter);
        let mut waiters = self.client.lock();
        if let Some(before) = before {
            forget(&mut waiters, own, before);
        }
        if let Some(waiter) = waiter {
            waiters.entry(own.id()).or_default().insert(waiter);
        }
    }

    /// Pauses until `time`. Returns `true`, and early, if the call is cancelled.
    pub(crate) fn pause_until(&self, time: Time) -> bool {
        let mut pause = time.since(clock::now());
        if pause.is_zero() {
            return self.is_cancelled();
        }
        let mut guard = self.client.lock();
        while !pause.is_zero() {
            if self.is_cancelled() {
                return true;
            }
            let woken = self.client.wake_up.wait_timeout(guard, pause);
            guard = woken.unwrap_or_else(PoisonError::into_inner).0;
            pause = time.since(clock::now());
        }
        false
    }
}

impl Drop for CancellableCall<'_> {
    fn drop(&mut self) {
        let Some(own) = self.own else { return };
        if self.client.owner_process.is_known_forked() {
            return;
        }
        self.set_waiter(None);
        own.detach(&self.client.weak());
    }
}

/// A waiter has left.
fn forget(waiters: &mut Waiters, own: &CancelToken, waiter: Token) {
    let Entry::Occupied(mut of_token) = waiters.entry(own.id()) else {
        return;
    };
    of_token.get_mut().remove(&waiter);
    if of_token.get().is_empty() {
        of_token.remove();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::fixture::cancellation;
    use crate::redlock::Redlock;

    #[test]
    fn a_wait_is_ended_once_however_many_others_are_cancelled_after_it() {
        let client = cancellation::<Redlock>();
        let tokens = [(); 3].map(|()| CancelToken::new());
        let calls = tokens.each_ref().map(|own| client.call(Some(own)));
        for (number, call) in (1..).zip(&calls) {
            call.set_waiter(Some(Token::new([number; Token::LEN])));
        }
        for (number, token) in tokens.iter().enumerate() {
            token.cancel();
            let known = client.lock().len();
            assert_eq!(
                known,
                tokens.len() - 1 - number,
                "only those that are not told of yet"
            );
        }
        drop(calls);
    }
}
