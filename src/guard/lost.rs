//! A task that waits until a lock is lost.

use super::LockGuard;
use crate::error::LockLost;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};

/// Is ready when a lock is lost: see [`LockGuard::lost`].
#[must_use = "it does nothing until it is polled"]
pub struct Lost<'a> {
    guard: &'a LockGuard,
    /// Its number, if the lock has a waker of it.
    number: Option<u64>,
}

impl LockGuard {
    /// Is ready when the lock is lost, with what [`on_lost`](Self::on_lost) is given: for a task
    /// that is to end then.
    ///
    /// ```no_run
    /// # use redlatch::{Error, LockClient};
    /// # async fn charge(order: u32) {}
    /// # async fn either(_: impl Future<Output = ()>, _: redlatch::Lost<'_>) -> Result<(), Error> {
    /// #     Ok(())
    /// # }
    /// # async fn example(client: LockClient) -> Result<(), Error> {
    /// let lock = client.request("orders:42").keep_alive().lock_async().await?;
    /// // With tokio, `select!` of the work and `lost = lock.lost() => return Err(lost.into())`.
    /// either(charge(42), lock.lost()).await?;
    /// lock.release_async().await
    /// # }
    /// ```
    ///
    /// The work is dropped where it stands, at its next `.await`: a request that was sent stays
    /// sent. So [`ensure_held`](Self::ensure_held) belongs in the line before the one that must not
    /// run twice, as in a thread.
    ///
    /// It does not extend the lock: one that is not [kept
    /// alive](crate::LockRequest::keep_alive) is lost when its validity ends. It may be made again
    /// and again, as by a `select!` in a loop: each is forgotten when it is dropped. While it is
    /// there, the lock cannot be released.
    ///
    /// Tasks are woken in the thread of [`on_lost`](Self::on_lost), and late if a callback there
    /// blocks, or after the machine was suspended. In a forked child it is ready at once. If the
    /// operating system refuses that thread, the task is woken again and again until the lock is
    /// lost.
    pub fn lost(&self) -> Lost<'_> {
        Lost {
            guard: self,
            number: None,
        }
    }
}

impl Future for Lost<'_> {
    type Output = LockLost;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<LockLost> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let guard = self.guard;
        if let Err(lost) = guard.check() {
            return Poll::Ready(lost);
        }
        let notifier = &guard.core.notifier;
        if notifier.start().is_err() {
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        let number = *self
            .number
            .get_or_insert_with(|| COUNT.fetch_add(1, Ordering::Relaxed));
        let waker = context.waker().clone();
        // If it is lost by now, the notifier finds that.
        if guard.held.wake_when_lost(guard.number(), number, waker) {
            notifier.watch_for_loss(Arc::clone(&guard.held));
        }
        Poll::Pending
    }
}

impl Drop for Lost<'_> {
    fn drop(&mut self) {
        // A thread that does not exist in a forked child may hold the mutex.
        if let Some(number) = self.number.filter(|_| !self.guard.core.is_forked()) {
            self.guard.held.forget_task(number);
        }
    }
}

impl fmt::Debug for Lost<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lost")
            .field("guard", self.guard)
            .finish_non_exhaustive()
    }
}
