//! The watchdog: two threads in the background, each started when there is need for it. One renews
//! the locks that are kept alive, the other tells of losses and of what the first has done.
//!
//! A client without such locks has none of them. However many locks there are, the one that renews
//! sleeps until the first is due, and leaves for whoever drives the connections all that are due at
//! about that time, those first that end first, up to a limit; more follow as answers come. It
//! calls nobody, so no callback holds up a renewal; and it waits for no lock's end, so however many
//! of them lapse, a round has its time.
//!
//! | file | what it has |
//! |---|---|
//! | `hold` | one lock, shared with its guard: never renewed once it is given up or lost |
//! | `plan` | when a lock is to be renewed: arithmetic |
//! | `load` | how many locks can be kept alive |
//! | `schedule` | locks, by when something is to be done with them |
//! | `patrol` | the thread that renews |
//! | `renewal` | one renewal under way |
//! | `notifier` | the thread that tells |
//!
//! Their alarms go by a clock that stands still while the machine is suspended, as all waiting
//! does. So after that they may come late, by as much as the machine slept at most. Whether a lock
//! is held is not for them to say: that goes by the [clock](crate::clock), and an alarm that comes
//! late renews nothing whose time is over.

mod auto_extension;
mod keep_alive_loop;
mod load;
mod notifier;
mod plan;
mod schedule;
mod shared_lease;
mod sync;

pub(crate) use load::{CapacityShare, Demand, Load};
pub(crate) use notifier::{BackgroundEvent, Emit};
pub(crate) use plan::{MAX_HOLD, Plan, period, shortest_ttl};
pub(crate) use shared_lease::SharedLease;

use crate::engine::Rules;
use crate::error::SpawnError;
use crate::net::Net;
use crate::owner_process::OwnerProcess;
use crate::wait_queue::HeadHandle;
use crossbeam_channel::{Sender, unbounded};
use keep_alive_loop::KeepAliveLoop;
use notifier::{Notice, Notifier};
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

/// A lock that is kept alive.
#[derive(Debug)]
pub(crate) struct KeptLock {
    pub(crate) hold: Arc<SharedLease>,
    pub(crate) plan: Box<Plan>,
    pub(crate) share: Arc<CapacityShare>,
    /// Who waits for it in this process.
    pub(crate) tenure: Option<HeadHandle>,
    /// Are its renewals told to those who listen?
    pub(crate) is_told: bool,
}

/// The threads, if there is need for them.
#[derive(Debug)]
pub(crate) struct Watchdog {
    net: Arc<Net>,
    rules: Arc<Rules>,
    load: Arc<Load>,
    owner_process: Arc<OwnerProcess>,
    notifier: Arc<Notifier>,
    thread: Arc<Mutex<Option<Thread>>>,
}

#[derive(Debug)]
struct Thread {
    inbox: Sender<KeptLock>,
    handle: JoinHandle<()>,
}

impl Watchdog {
    /// No threads yet. What happens outside any call is emitted with `emit`.
    pub(crate) fn new(
        net: &Arc<Net>,
        rules: &Arc<Rules>,
        owner_process: &Arc<OwnerProcess>,
        emit: Option<Emit>,
    ) -> Self {
        let notifier = Arc::new(Notifier::new(emit, Arc::clone(owner_process)));
        let (net, rules, owner_process) = (net.clone(), rules.clone(), owner_process.clone());
        Self { net, rules, load: Arc::default(), owner_process, notifier, thread: Arc::default() }
    }

    /// Starts the thread that renews, if it does not run, and the one that tells of it, if anybody
    /// listens.
    pub(crate) fn start(&self) -> Result<(), SpawnError> {
        if self.notifier.has_listener() {
            self.notifier.start()?;
        }
        self.start_in(&mut self.lock())
    }

    /// Starts the thread that tells, if it does not run.
    pub(crate) fn start_notifier(&self) -> Result<(), SpawnError> {
        self.notifier.start()
    }

    /// Keeps a lock alive from now on.
    pub(crate) fn keep(&self, kept: KeptLock) -> Result<(), SpawnError> {
        let mut thread = self.lock();
        self.start_in(&mut thread)?;
        if let Some(thread) = &*thread {
            // It fails only if the thread has ended, and it ends only with this.
            let _ = thread.inbox.send(kept);
        }
        Ok(())
    }

    /// Has those told that want to know when this is lost, then or now.
    pub(crate) fn watch_for_loss(&self, hold: Arc<SharedLease>) {
        self.notifier.notify(Notice::Look(hold));
    }

    /// How many locks are kept alive, and can be.
    pub(crate) fn load(&self) -> &Arc<Load> {
        &self.load
    }

    fn start_in(&self, thread: &mut Option<Thread>) -> Result<(), SpawnError> {
        if thread.as_ref().is_some_and(|thread| !thread.handle.is_finished()) {
            return Ok(());
        }
        let (inbox, outbox) = unbounded();
        let (rules, load) = (Arc::clone(&self.rules), Arc::clone(&self.load));
        let patrol = KeepAliveLoop::new(
            outbox,
            rules,
            Arc::clone(&self.net),
            load,
            Arc::clone(&self.notifier),
        );
        let builder = thread::Builder::new().name("redlatch-watch".to_owned());
        let handle = builder.spawn(|| patrol.run()).map_err(|error| SpawnError::new(&error))?;
        *thread = Some(Thread { inbox, handle });
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, Option<Thread>> {
        self.thread.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        if self.owner_process.is_forked() {
            // In a forked child the threads are not there, and whoever looks for one finds another.
            // They may have been half way through what they are handed, and locks of it stay taken.
            mem::forget((Arc::clone(&self.thread), Arc::clone(&self.notifier)));
            return;
        }
        let Some(Thread { inbox, handle }) = self.lock().take() else { return };
        drop(inbox);
        // It has a share in the connections, and whoever drops the last waits for what was written
        // there. That is the one who drops the client, so the thread must be gone before: it is
        // asleep, or in a round that nobody is interested in any more.
        if handle.thread().id() != thread::current().id() {
            // It fails if the thread panicked, which it has said by itself.
            let _ = handle.join();
        }
    }
}

impl AsRef<SharedLease> for KeptLock {
    fn as_ref(&self) -> &SharedLease {
        &self.hold
    }
}

impl Drop for KeptLock {
    fn drop(&mut self) {
        self.share.end();
    }
}

#[cfg(test)]
mod fixture;
