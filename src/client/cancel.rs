//! Cancelling the waits for locks, for programs that shut down.

use super::LockClient;
use crate::core::Cancellation;
use std::fmt;
use std::sync::Arc;

/// Cancels the waits of a client, for a program that shuts down: made by
/// [`LockClient::cancel_handle`].
///
/// It may be cloned, sent to other threads and kept for longer than the client. It keeps no
/// connection open.
#[derive(Clone)]
pub struct CancelHandle {
    cancellation: Arc<Cancellation>,
}

impl LockClient {
    /// A handle that cancels the waits of this client and all its clones.
    ///
    /// ```no_run
    /// # use redlatch::{LockClient, LockError};
    /// # use std::time::Duration;
    /// # fn wait_for_the_signal_to_stop() {}
    /// # fn work() {}
    /// # fn example(client: LockClient) -> Result<(), LockError> {
    /// let handle = client.cancel_handle();
    /// std::thread::spawn(move || {
    ///     wait_for_the_signal_to_stop();
    ///     handle.cancel();
    /// });
    /// loop {
    ///     match client.lock("queue", Duration::from_secs(10)) {
    ///         Ok(lock) => {
    ///             work();
    ///             drop(lock);
    ///         }
    ///         Err(LockError::Cancelled) => break,
    ///         Err(error) => return Err(error),
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn cancel_handle(&self) -> CancelHandle {
        CancelHandle { cancellation: Arc::clone(&self.core.cancellation) }
    }
}

impl CancelHandle {
    /// Makes every call of the client that acquires a lock return
    /// [`LockError::Cancelled`](crate::LockError::Cancelled): those that wait now, at once, and all
    /// later ones, also those that do not wait. It cannot be undone, and cancelling twice is the
    /// same as once.
    ///
    /// A call that is asking the nodes at this moment ends that round first, which takes up to
    /// [`node_timeout`](crate::Builder::node_timeout). If they grant the lock, it is released again
    /// and the call is cancelled too: no key is left on the nodes.
    ///
    /// Locks that are held stay held: releasing and extending them, automatically too, goes on, and
    /// a body that runs under a lock is not interrupted. [`inspect`](LockClient::inspect) and
    /// [`nodes`](LockClient::nodes) work as before. To acquire locks again, build another client.
    ///
    /// It waits for nothing and may be called from any thread. It is *not* async-signal-safe, as it
    /// takes mutexes: do not call it in a signal handler, but in a thread that the handler wakes,
    /// through a pipe for instance. In a forked child it does nothing.
    pub fn cancel(&self) {
        self.cancellation.cancel();
    }

    /// Whether the client's waits are cancelled.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.cancellation.is_cancelled()
    }
}

impl fmt::Debug for CancelHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CancelHandle").field("is_cancelled", &self.is_cancelled()).finish()
    }
}
