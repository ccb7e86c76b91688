//! Cancelling calls: one, several, or all calls of a client that shuts down.

use super::{LockClient, LockRequest};
use crate::cancel_token::CancelToken;
#[cfg(doc)]
use crate::error::LockError;

impl LockRequest<'_> {
    /// Has the call end as [`LockError::Cancelled`] once this token is
    /// [cancelled](CancelToken::cancel), however long it would wait: for a server whose client has
    /// hung up, for instance. If the token is cancelled before the call, nothing is sent.
    ///
    /// ```no_run
    /// # use redlatch::{CancelToken, LockClient, LockError};
    /// # fn example(client: &LockClient, hung_up: &CancelToken) -> Result<(), LockError> {
    /// let lock = client.request("orders:42").cancelled_by(hung_up).lock()?;
    /// # drop(lock);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// The lock is not given up when the token is cancelled after the call has returned. The
    /// client's own [token](LockClient::cancel_token) cancels the call too; a second call of this
    /// method replaces the first.
    pub fn cancelled_by(mut self, token: &CancelToken) -> Self {
        self.settings.cancelled_by = Some(token.clone());
        self
    }
}

impl LockClient {
    /// The token of all calls of this client and its clones that acquire locks, for a program that
    /// shuts down. Once it is cancelled, the client acquires no more locks: build another one for
    /// that. [`LockRequest::cancelled_by`] is for a single call.
    ///
    /// ```no_run
    /// # use redlatch::{LockClient, LockError};
    /// # use std::time::Duration;
    /// # fn wait_for_the_signal_to_stop() {}
    /// # fn work() {}
    /// # fn example(client: LockClient) -> Result<(), LockError> {
    /// let token = client.cancel_token();
    /// std::thread::spawn(move || {
    ///     wait_for_the_signal_to_stop();
    ///     token.cancel();
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
    pub fn cancel_token(&self) -> CancelToken {
        self.core.cancellation.token().clone()
    }
}
