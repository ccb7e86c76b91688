//! Tokens that cancel calls which acquire locks: one call, several, or all calls of a client.
//!
//! A token is a flag, and it knows the clients whose calls have it now. Cancelling sets the flag
//! and wakes these clients. A client that is woken wakes those of its calls that are cancelled,
//! wherever they wait, and each call looks at the flags of its tokens whenever it would go on
//! waiting.

use crate::owner_process::OwnerProcess;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// Cancels calls that acquire locks. A call gets one by
/// [`LockRequest::cancelled_by`](crate::LockRequest::cancelled_by), and every call of a client has
/// the client's own, [`LockClient::cancel_token`](crate::LockClient::cancel_token).
///
/// ```no_run
/// # use redlatch::{CancelToken, Error};
/// # fn on_hang_up(callback: impl Fn() + Send + 'static) {}
/// # fn charge_the_card() {}
/// # let client = redlatch::LockClient::new("redis://localhost")?;
/// let hung_up = CancelToken::new();
/// let token = hung_up.clone();
/// on_hang_up(move || token.cancel()); // called by the thread that watches the connection
///
/// match client.request("orders:42").cancelled_by(&hung_up).lock() {
///     Ok(lock) => {
///         charge_the_card();
///         drop(lock);
///     }
///     Err(Error::Cancelled) => {} // nobody waits for the answer any more
///     Err(error) => return Err(error),
/// }
/// # Ok::<(), redlatch::Error>(())
/// ```
///
/// Clones are the same token. One token may be given to any number of calls, of any clients. It
/// keeps no connection open, and remembers nothing of calls that have returned. A token belongs to
/// the process that made it: in a forked child it cancels nothing.
#[derive(Clone)]
pub struct CancelToken {
    shared: Arc<Shared>,
}

struct Shared {
    is_cancelled: AtomicBool,
    /// The clients to wake, each with the number of reasons for that: its calls that have this
    /// token, or that it is the client's own.
    clients: Mutex<Vec<(Weak<dyn WakeCancelled>, usize)>>,
    owner_process: OwnerProcess,
}

/// Wakes calls that may be cancelled, wherever they wait.
pub(crate) trait WakeCancelled: Send + Sync {
    /// Called without any lock held, once this token is cancelled.
    fn wake_cancelled(&self, token: &CancelToken);
}

/// Which token it is: clones have the same, and no other token does while one of them exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct CancelTokenId(usize);

/// What waits, by the token that ends its wait and by its number: where thousands wait, cancelling
/// one does not look at the others.
#[derive(Debug)]
pub(crate) struct ByToken<T>(BTreeMap<(CancelTokenId, usize), T>);

impl<T> Default for ByToken<T> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<T> ByToken<T> {
    /// In place of what waited with this token and number before.
    pub(crate) fn insert(&mut self, token: &CancelToken, number: usize, waiting: T) {
        self.0.insert((token.id(), number), waiting);
    }

    pub(crate) fn remove(&mut self, token: &CancelToken, number: usize) {
        self.0.remove(&(token.id(), number));
    }

    pub(crate) fn of(&self, token: &CancelToken) -> impl Iterator<Item = &T> {
        let of_token = (token.id(), 0)..=(token.id(), usize::MAX);
        self.0.range(of_token).map(|(_, waiting)| waiting)
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = &T> {
        self.0.values()
    }
}

impl CancelToken {
    /// A token that no call has yet.
    #[must_use]
    pub fn new() -> Self {
        let is_cancelled = AtomicBool::new(false);
        let clients = Mutex::new(Vec::new());
        let owner_process = OwnerProcess::here();
        Self {
            shared: Arc::new(Shared {
                is_cancelled,
                clients,
                owner_process,
            }),
        }
    }

    /// Makes every call that has this token return [`Error::Cancelled`](crate::Error::Cancelled):
    /// those that wait now, at once, and all later ones without asking a node, also those that do
    /// not wait. It cannot be undone, and cancelling twice is the same as once.
    ///
    /// A call that is asking the nodes at this moment ends that round first, which takes up to
    /// [`node_timeout`](crate::Builder::node_timeout); or ten times as long if too many nodes are
    /// silent, and the token is not the client's. If they grant the lock, it goes to the next
    /// thread of the client that waits for it, or is released, and the call is cancelled too. Only
    /// a call that was just about to return its guard returns it. Nothing else is left on the
    /// nodes, neither a key nor a place in their queue, and other threads that wait for the lock
    /// keep their order.
    ///
    /// Locks that are held stay held: releasing and extending them, automatically too, goes on, and
    /// a body that runs under a lock is not interrupted. [`inspect`](crate::LockClient::inspect)
    /// and [`nodes`](crate::LockClient::nodes) work as before.
    ///
    /// It waits for nothing and may be called from any thread. It is *not* async-signal-safe, as it
    /// takes mutexes: do not call it in a signal handler, but in a thread that the handler wakes,
    /// through a pipe for instance.
    pub fn cancel(&self) {
        // In a forked child, the mutex may be held by a thread that does not exist.
        if self.shared.owner_process.is_forked() {
            return;
        }
        self.shared.is_cancelled.store(true, Ordering::SeqCst);
        let clients: Vec<_> = self
            .clients()
            .iter()
            .filter_map(|it| it.0.upgrade())
            .collect();
        clients
            .iter()
            .for_each(|client| client.wake_cancelled(self));
    }

    /// Was it cancelled?
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.shared.is_cancelled.load(Ordering::SeqCst)
    }

    fn id(&self) -> CancelTokenId {
        CancelTokenId(Arc::as_ptr(&self.shared) as usize)
    }

    /// Is it the same token, or a clone of it?
    pub(crate) fn is(&self, other: &Self) -> bool {
        self.id() == other.id()
    }

    /// Wakes this client too when the token is cancelled. A call asks whether it is cancelled
    /// *after* this: then it sees the flag, or it is woken.
    pub(crate) fn attach(&self, client: &Weak<dyn WakeCancelled>) {
        if self.shared.owner_process.is_forked() {
            return;
        }
        let mut clients = self.clients();
        match clients.iter_mut().find(|(other, _)| other.ptr_eq(client)) {
            Some((_, reasons)) => *reasons += 1,
            None => clients.push((Weak::clone(client), 1)),
        }
    }

    /// Undoes one [`attach`](Self::attach).
    pub(crate) fn detach(&self, client: &Weak<dyn WakeCancelled>) {
        if self.shared.owner_process.is_forked() {
            return;
        }
        let mut clients = self.clients();
        let Some(index) = clients.iter().position(|(other, _)| other.ptr_eq(client)) else {
            return;
        };
        clients[index].1 -= 1;
        if clients[index].1 == 0 {
            clients.swap_remove(index);
        }
    }

    fn clients(&self) -> MutexGuard<'_, Vec<(Weak<dyn WakeCancelled>, usize)>> {
        self.shared
            .clients
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for CancelToken {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for CancelToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CancelToken")
            .field("is_cancelled", &self.is_cancelled())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU32;

    #[derive(Default)]
    struct Client(AtomicU32);

    impl WakeCancelled for Client {
        fn wake_cancelled(&self, token: &CancelToken) {
            assert!(token.is_cancelled());
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    fn weak(client: &Arc<Client>) -> Weak<dyn WakeCancelled> {
        let weak: Weak<Client> = Arc::downgrade(client);
        weak
    }

    #[test]
    fn each_client_with_a_call_is_woken_once_and_nothing_is_kept_of_calls_that_returned() {
        let token = CancelToken::new();
        let [busy, done, gone] = [(); 3].map(|()| Arc::new(Client::default()));
        for _ in 0..3 {
            [&busy, &done, &gone]
                .iter()
                .for_each(|client| token.attach(&weak(client)));
        }
        (0..2).for_each(|_| token.detach(&weak(&busy)));
        (0..3).for_each(|_| token.detach(&weak(&done)));
        token.detach(&weak(&done)); // one time too many
        assert_eq!(token.clients().len(), 2);
        drop(gone);
        assert!(!token.is_cancelled());
        token.clone().cancel();
        assert!(token.is_cancelled());
        assert_eq!(
            [&busy, &done].map(|client| client.0.load(Ordering::SeqCst)),
            [1, 0]
        );
        assert_eq!(format!("{token:?}"), "CancelToken { is_cancelled: true }");
    }
}
