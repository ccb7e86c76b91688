//! What a guard does without a thread that waits.

use super::LockGuard;
use crate::driver::Driven;
use crate::error::Error;
use crate::pending::{Call, Pending};
use std::ops::ControlFlow;
use std::sync::Arc;

impl LockGuard {
    /// As [`release`](Self::release), without a thread that waits for the answers: in a task of any
    /// executor, or with a [callback](Pending::then).
    ///
    /// It begins when it is first polled, or by `then`. Dropped before that, it drops the guard,
    /// which releases the lock as well. Dropped later, it goes on, and nobody is told its result.
    ///
    /// ```no_run
    /// # async fn charge(order: u32) {}
    /// # async fn example(client: redlatch::LockClient) -> Result<(), redlatch::Error> {
    /// let lock = client.request("orders:42").keep_alive().lock_async().await?;
    /// charge(42).await;
    /// lock.release_async().await?; // an error if the lock was lost before
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`release`](Self::release). [`Error::Spawn`]: the thread that goes on with such calls
    /// could not be started. Then the lock is released without waiting for an answer.
    pub fn release_async(self) -> Pending<()> {
        let core = Arc::clone(&self.core);
        let call = Box::new(move |driven| {
            let call: Call<()> = Box::pin(self.release_started(driven));
            call
        });
        Pending::new(&core, call, Box::new(Ok))
    }

    /// As [`release`](Self::release), in whichever thread polls it.
    async fn release_started(mut self, driven: Driven) -> Result<(), Error> {
        let result = match self.leave_or_hand_off() {
            ControlFlow::Break(released) => Ok(released),
            ControlFlow::Continue(closed) => {
                let backend = &self.core.backend;
                backend.start_release(&driven, closed.release()).await
            }
        };
        self.report(result)
    }
}
