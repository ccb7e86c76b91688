//! Running a future under a lock.

use super::request::LockRequest;
use crate::error::Error;
use crate::guard::LockGuard;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::Poll;

impl LockRequest<'_> {
    /// As [`with_lock`](Self::with_lock), in a task of any executor: waits for the lock as long as
    /// it takes, runs the future of `body` under it, and releases it. Meanwhile the lock is [kept
    /// alive](Self::keep_alive).
    ///
    /// If the lock is [lost](LockGuard::lost), the future of `body` is dropped where it stands, at
    /// its next `.await`: a request that was sent stays sent, and what must not be cut off goes
    /// into a task of its own. So [`ensure_held`](LockGuard::ensure_held) belongs in the line
    /// before the one that must not run twice, as in a thread. `Ok` means that the lock was held
    /// from beginning to end, as far as the nodes can tell.
    ///
    /// Dropped while it waits, it leaves the queue. Dropped later, it drops the future of `body`,
    /// and releases the lock without waiting for an answer.
    ///
    /// ```no_run
    /// # async fn charge(order: u32) -> std::io::Result<()> { Ok(()) }
    /// # async fn example(client: redlatch::LockClient) -> Result<(), Box<dyn std::error::Error>> {
    /// let body = async |lock: &redlatch::LockGuard| {
    ///     lock.ensure_held()?; // redlatch::Error
    ///     charge(42).await?; // std::io::Error
    ///     Ok(())
    /// };
    /// client.request("orders:42").with_lock_async(body).await
    /// # }
    /// ```
    ///
    /// The lock is not re-entrant, and that is not detected: a `body` that waits for the same lock
    /// waits for its own end.
    ///
    /// # Errors
    ///
    /// The error of `body`. Or, converted, [`Error::Lost`], or as
    /// [`lock_async`](Self::lock_async).
    pub async fn with_lock_async<T, E: From<Error>>(
        self,
        body: impl AsyncFnOnce(&LockGuard) -> Result<T, E>,
    ) -> Result<T, E> {
        let guard = self.keep_alive().lock_async().await?;
        let value = until_lost(&guard, body(&guard)).await?;
        guard.ensure_held()?;
        match guard.release_async().await {
            Err(error @ Error::Lost(_)) => Err(error.into()),
            // Too few nodes have answered: by the clock, it was held.
            _ => Ok(value),
        }
    }
}

/// The result of this work, or that the lock was lost before it was there.
async fn until_lost<T, E: From<Error>>(
    guard: &LockGuard,
    work: impl Future<Output = Result<T, E>>,
) -> Result<T, E> {
    let mut work = pin!(work);
    let mut lost = guard.lost();
    poll_fn(|context| {
        if let Poll::Ready(result) = work.as_mut().poll(context) {
            return Poll::Ready(result);
        }
        let lost = Pin::new(&mut lost).poll(context);
        lost.map(|lost| Err(Error::Lost(lost).into()))
    })
    .await
}
