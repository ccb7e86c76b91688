//! Learning that a lock was lost: by a callback, or by waiting for it.

use super::LockGuard;
use crate::clock;
use crate::error::{Error, LockLost, LossReason};
use std::sync::Arc;
use std::time::Duration;

impl LockGuard {
    /// Calls `callback` when the lock is lost: exactly once, within milliseconds after its validity
    /// has passed, or as soon as the nodes say that it is gone. At once if it is lost already.
    /// Never if the lock is released, dropped, left or handed off before that.
    ///
    /// The callbacks of all locks of a client run one after another on one thread, the notifier,
    /// which starts with the first callback and ends with the client. It also emits the
    /// [events](crate::Builder::on_event) that belong to no call. So a callback that blocks delays
    /// other callbacks and these events, and nothing else: another thread extends locks, and
    /// [`ensure_held`](Self::ensure_held) and [`wait_lost`](Self::wait_lost) need no thread. A
    /// callback may panic, drop the guard or the client, and use the client; but it must not wait
    /// for another callback. Leave long work, such as taking the same lock again, to a thread of
    /// your own. A lock may have several callbacks; each is called.
    ///
    /// This does not extend the lock: see [`keep_alive`](crate::LockRequest::keep_alive). The timer
    /// behind it stands still while the machine is suspended. After that, the call may be late by
    /// as long as the machine slept, but [`ensure_held`](Self::ensure_held) is right at once.
    ///
    /// ```no_run
    /// # use redlatch::{LockClient, Error};
    /// # use std::sync::Arc;
    /// # use std::sync::atomic::{AtomicBool, Ordering};
    /// # fn work_step() {}
    /// # fn example(client: &LockClient) -> Result<(), Box<dyn std::error::Error>> {
    /// let request = client.request("orders:42").keep_alive();
    /// let lock = request.lock()?;
    /// let stop = Arc::new(AtomicBool::new(false));
    /// let on_lost = Arc::clone(&stop);
    /// lock.on_lost(move |lost| {
    ///     eprintln!("stopping: {lost}");
    ///     on_lost.store(true, Ordering::Relaxed);
    /// })?;
    /// while !stop.load(Ordering::Relaxed) {
    ///     work_step();
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Spawn`]: the notifier's thread could not be started, and `callback` will not be
    /// called. A forked child has none ([`Error::OtherProcess`]).
    pub fn on_lost(&self, callback: impl FnOnce(LockLost) + Send + 'static) -> Result<(), Error> {
        if self.core.is_forked() {
            return Err(Error::OtherProcess);
        }
        self.core.start_notifier()?;
        let resource: Arc<[u8]> = self.resource().as_bytes().into();
        let callback = move |reason| callback(LockLost::new(resource, reason));
        if self.held.on_lost(self.number(), Box::new(callback)) {
            self.core.watch_for_loss(Arc::clone(&self.held));
        }
        Ok(())
    }

    /// Waits until the lock is lost, for up to `timeout`. `None` if it is still held then.
    ///
    /// It needs no thread but the caller's. If the caller overslept the end, it returns `Some`.
    ///
    /// ```no_run
    /// # use std::time::Duration;
    /// # fn example(lock: redlatch::LockGuard) {
    /// # let mut worker = std::process::Command::new("true").spawn().unwrap();
    /// // A child process does the work.
    /// while worker.try_wait().is_ok_and(|status| status.is_none()) {
    ///     if lock.wait_lost(Duration::from_millis(100)).is_some() {
    ///         let _ = worker.kill();
    ///     }
    /// }
    /// # }
    /// ```
    #[must_use]
    pub fn wait_lost(&self, timeout: Duration) -> Option<LockLost> {
        if self.core.is_forked() {
            return Some(self.loss(LossReason::OtherProcess));
        }
        self.held.wait_lost(clock::now, timeout).map(|reason| self.loss(reason))
    }
}
