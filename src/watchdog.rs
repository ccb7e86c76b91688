//! The watchdog: two threads in the background, each started when it is first needed. The
//! keep-alive loop extends locks automatically; the notifier calls callbacks of lost locks and
//! emits events that belong to no call.
//!
//! A client without such locks has no such threads. However many locks there are, the keep-alive
//! loop sleeps until the first is due. It then gives the connections' leader all extensions
//! that are due at about that time, those of locks that expire first before the others, up to a
//! limit; more follow as answers come. It calls no user callbacks, so no callback delays an
//! extension.
//!
//! | file | contents |
//! |---|---|
//! | `guarded_lock` | a lock that a guard and the watchdog use; released or lost, it stays so |
//! | `plan` | when a lock is to be extended: arithmetic |
//! | `load` | how many locks can be kept alive: admission control |
//! | `schedule` | locks, by when each is due |
//! | `keep_alive_loop` | the thread that extends |
//! | `notifier` | the thread that calls callbacks |
//!
//! Their timers stand still while the machine is suspended, as all waiting does. So after that they
//! may be late, by at most as long as the machine slept. Timers do not decide whether a lock is
//! held: the [clock](crate::clock) does, and an extension that comes too late is not sent.

mod guarded_lock;
mod keep_alive_loop;
mod load;
mod notifier;
mod plan;
mod schedule;
mod sync;

pub(crate) use guarded_lock::GuardedLock;
pub(crate) use load::{Demand, Load, ReservedCapacity};
pub(crate) use notifier::{BackgroundEvent, Emit, Notifier};
pub(crate) use plan::{MAX_HOLD, Plan, period, shortest_ttl};

use crate::engine::Rules;
use crate::error::SpawnError;
use crate::net::Net;
use crate::wait_queue::HeadHandle;
use crossbeam_channel::{Sender, unbounded};
use keep_alive_loop::KeepAliveLoop;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

#[derive(Debug)]
pub(crate) struct KeptLock {
    pub(crate) held: Arc<GuardedLock>,
    pub(crate) plan: Box<Plan>,
    pub(crate) capacity: Arc<ReservedCapacity>,
    /// Its place in the wait queue of this process.
    pub(crate) head: Option<HeadHandle>,
    /// Are its extensions emitted as events?
    pub(crate) is_emitted: bool,
}

#[derive(Debug)]
pub(crate) struct Watchdog {
    net: Arc<Net>,
    rules: Arc<Rules>,
    load: Arc<Load>,
    notifier: Arc<Notifier>,
    thread: Mutex<Option<WatchdogThread>>,
}

#[derive(Debug)]
struct WatchdogThread {
    inbox: Sender<KeptLock>,
    handle: JoinHandle<()>,
}

impl Watchdog {
    /// Starts no thread.
    pub(crate) fn new(net: &Arc<Net>, rules: &Arc<Rules>, notifier: &Arc<Notifier>) -> Self {
        Self {
            net: Arc::clone(net),
            rules: Arc::clone(rules),
            load: Arc::default(),
            notifier: Arc::clone(notifier),
            thread: Mutex::default(),
        }
    }

    /// Starts the keep-alive loop, if it does not run, and the notifier, if there is a listener.
    pub(crate) fn start(&self) -> Result<(), SpawnError> {
        if self.notifier.has_listener() {
            self.notifier.start()?;
        }
        self.start_in(&mut self.lock())
    }

    /// Extends a lock automatically from now on.
    pub(crate) fn keep(&self, kept: KeptLock) -> Result<(), SpawnError> {
        let mut thread = self.lock();
        self.start_in(&mut thread)?;
        if let Some(thread) = &*thread {
            // It fails only if the thread has ended, which it does only with this watchdog.
            let _ = thread.inbox.send(kept);
        }
        Ok(())
    }

    /// How many locks are kept alive, and how many more can be.
    pub(crate) fn load(&self) -> &Arc<Load> {
        &self.load
    }

    fn start_in(&self, thread: &mut Option<WatchdogThread>) -> Result<(), SpawnError> {
        let is_running = thread.as_ref().is_some_and(|it| !it.handle.is_finished());
        if is_running {
            return Ok(());
        }
        let (inbox, outbox) = unbounded();
        let keep_alive_loop = KeepAliveLoop::new(
            outbox,
            Arc::clone(&self.rules),
            Arc::clone(&self.net),
            Arc::clone(&self.load),
            Arc::clone(&self.notifier),
        );
        let builder = thread::Builder::new().name("redlatch-watch".to_owned());
        let handle = builder
            .spawn(|| keep_alive_loop.run())
            .map_err(|error| SpawnError::new(&error))?;
        *thread = Some(WatchdogThread { inbox, handle });
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, Option<WatchdogThread>> {
        self.thread.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        let Some(WatchdogThread { inbox, handle }) = self.lock().take() else {
            return;
        };
        drop(inbox);
        self.net.end_waits(None);
        // The thread holds a reference to the connections, and dropping the last reference waits
        // for what was written there. The caller that drops the client must be the one that waits,
        // so the thread must end first: it is asleep, or in a round whose result is not needed.
        if handle.thread().id() != thread::current().id() {
            // It fails if the thread panicked, which the panic hook has reported.
            let _ = handle.join();
        }
    }
}

impl AsRef<GuardedLock> for KeptLock {
    fn as_ref(&self) -> &GuardedLock {
        &self.held
    }
}

impl Drop for KeptLock {
    fn drop(&mut self) {
        self.capacity.free();
    }
}

#[cfg(test)]
mod fixture;
#[cfg(test)]
mod session_tests;
