//! Cancelling the calls of a client that acquire locks.
//!
//! Each call has the client's token, and perhaps one of its own. A thread that waits for a lock is
//! in a wait queue, waits in the nodes' queue, or pauses between two attempts. Cancelling wakes the
//! threads whose call is cancelled, and none of them begins a wait after that. What must stay true:
//! nothing is left on the nodes. A thread that is woken leaves the nodes' queue, and one whose
//! round is under way lets it end.

use super::Backend;
use crate::cancel_token::{ByToken, CancelToken, WakeCancelled};
use crate::engine::Token;
use crate::owner_process::OwnerProcess;
use crate::wait_queue::WaitQueues;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::Waker;

/// Wakes the calls of a client.
pub(crate) struct Cancellation {
    /// Every call has this one.
    token: CancelToken,
    waits: Mutex<Waits>,
    wait_queues: [Arc<WaitQueues>; 3],
    /// Where threads wait in the nodes' queues. This keeps no connection open.
    backend: Weak<dyn Backend>,
    owner_process: Arc<OwnerProcess>,
    /// Itself, for the tokens.
    this: Weak<Self>,
}

/// What calls wait for outside the wait queues.
#[derive(Default)]
struct Waits {
    /// Calls without a token of their own have the client's, and it ends all.
    by_token: ByToken<CancellableWait>,
    /// How many calls have ever waited: their numbers, from 1.
    calls: usize,
}

#[derive(Clone)]
enum CancellableWait {
    /// The call's waiter stands in the nodes' queue.
    InNodesQueue(Token),
    /// The call pauses between two attempts, or waits for room for one.
    Pausing(Waker),
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
            waits: Mutex::default(),
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
            number: AtomicUsize::new(0),
            is_dropped: None,
        }
    }

    fn weak(&self) -> Weak<dyn WakeCancelled> {
        let this: Weak<Self> = Weak::clone(&self.this);
        this
    }

    fn lock(&self) -> MutexGuard<'_, Waits> {
        self.waits.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The waits that this token ends.
    fn waits_of(&self, token: &CancelToken) -> Vec<CancellableWait> {
        let waits = self.lock();
        if token.is(&self.token) {
            return waits.by_token.all().cloned().collect();
        }
        waits.by_token.of(token).cloned().collect()
    }
}

impl WakeCancelled for Cancellation {
    /// Does nothing in a forked child, where the mutexes may be held by threads that do not exist.
    fn wake_cancelled(&self, token: &CancelToken) {
        if self.owner_process.is_forked() {
            return;
        }
        let mut waiters = Vec::new();
        for wait in self.waits_of(token) {
            match wait {
                CancellableWait::InNodesQueue(waiter) => waiters.push(waiter),
                CancellableWait::Pausing(waker) => waker.wake(),
            }
        }
        for queues in &self.wait_queues {
            queues.wake_cancelled(token);
        }
        let Some(backend) = self.backend.upgrade() else {
            return;
        };
        if token.is(&self.token) {
            return backend.end_waits(None);
        }
        for waiter in waiters {
            backend.end_waits(Some(waiter));
        }
    }
}

/// A call that acquires a lock, and the tokens that cancel it.
pub(crate) struct CancellableCall<'a> {
    client: &'a Cancellation,
    own: Option<&'a CancelToken>,
    /// Its number among those that have waited, or 0. A call that has no thread of its own moves
    /// between threads.
    number: AtomicUsize,
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

    /// Notes the call's waiter in the nodes' queue, before it waits there. The client's token ends
    /// all waits there without this.
    pub(crate) fn set_waiter(&self, waiter: Option<Token>) {
        match waiter.filter(|_| self.own.is_some()) {
            Some(waiter) => self.begin_wait(CancellableWait::InNodesQueue(waiter)),
            None => self.end_wait(),
        }
    }

    /// The call pauses, and this wakes it if it is cancelled from now on.
    pub(crate) fn begin_pause(&self, waker: &Waker) {
        self.begin_wait(CancellableWait::Pausing(waker.clone()));
    }

    fn begin_wait(&self, wait: CancellableWait) {
        let mut waits = self.client.lock();
        let mut number = self.number.load(Ordering::Relaxed);
        if number == 0 {
            waits.calls += 1;
            number = waits.calls;
            self.number.store(number, Ordering::Relaxed);
        }
        waits.by_token.insert(self.token(), number, wait);
    }

    /// Its pause is over, or it has no waiter.
    pub(crate) fn end_wait(&self) {
        let number = self.number.load(Ordering::Relaxed);
        if number != 0 {
            self.client.lock().by_token.remove(self.token(), number);
        }
    }

    /// With which its waits are found.
    fn token(&self) -> &CancelToken {
        self.own.unwrap_or(&self.client.token)
    }
}

impl Drop for CancellableCall<'_> {
    fn drop(&mut self) {
        let Some(own) = self.own else { return };
        if self.client.owner_process.is_known_forked() {
            return;
        }
        self.end_wait();
        own.detach(&self.client.weak());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::fixture::cancellation;
    use crate::redlock::Redlock;
    use std::task::Wake;

    /// Counts how often a call is woken.
    #[derive(Default)]
    struct Pause(AtomicUsize);

    impl Wake for Pause {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    fn woken(pauses: &[Arc<Pause>]) -> Vec<usize> {
        let count = |pause: &Arc<Pause>| pause.0.load(Ordering::SeqCst);
        pauses.iter().map(count).collect()
    }

    #[test]
    fn a_token_wakes_the_pauses_that_have_it_and_the_clients_wakes_all() {
        let client = cancellation::<Redlock>();
        let shared = CancelToken::new();
        let single = CancelToken::new();
        let tokens = [Some(&shared), Some(&single), Some(&shared), None];
        let calls = tokens.map(|own| client.call(own));
        let pauses = [(); 4].map(|()| Arc::new(Pause::default()));
        for (call, pause) in calls.iter().zip(&pauses) {
            call.begin_pause(&Waker::from(Arc::clone(pause)));
        }
        single.cancel();
        assert_eq!(woken(&pauses), [0, 1, 0, 0]);
        calls[1].end_wait();
        shared.cancel();
        assert_eq!(woken(&pauses), [1, 1, 1, 0]);
        calls[0].end_wait();
        client.token().cancel();
        assert_eq!(woken(&pauses), [1, 1, 2, 1]);
        assert!(calls.iter().all(CancellableCall::is_cancelled));
        calls[3].end_wait();
        drop(calls);
        assert_eq!(client.lock().by_token.all().count(), 0);
    }

    #[test]
    fn a_token_ends_the_waits_that_have_it_in_the_nodes_queue_and_no_others() {
        let client = cancellation::<Redlock>();
        let tokens = [(); 3].map(|()| CancelToken::new());
        let calls = tokens.each_ref().map(|own| client.call(Some(own)));
        let waiter = |number| Some(Token::new([number; Token::LEN]));
        for (number, call) in (1..).zip(&calls) {
            call.set_waiter(waiter(number));
        }
        let with_clients = client.call(None);
        with_clients.set_waiter(waiter(9));
        for (number, token) in (1..).zip(&tokens) {
            let ended = client.waits_of(token);
            assert!(matches!(
                ended[..],
                [CancellableWait::InNodesQueue(ended)] if Some(ended) == waiter(number)
            ));
        }
        // One that pauses is woken, and one whose turn has come waits no more.
        calls[0].begin_pause(Waker::noop());
        assert!(matches!(
            client.waits_of(&tokens[0])[..],
            [CancellableWait::Pausing(_)]
        ));
        calls[0].set_waiter(None);
        assert!(client.waits_of(&tokens[0]).is_empty());
        assert_eq!(client.waits_of(client.token()).len(), 2);
        drop(calls);
        assert!(client.waits_of(client.token()).is_empty());
    }
}
