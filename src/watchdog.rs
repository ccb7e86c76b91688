//! The watchdog: the one thread in the background, for locks that are kept alive and for those
//! whose loss somebody wants to be told of.
//!
//! A client without such locks has no such thread; it starts with the first, and ends with the
//! client. However many locks there are, it sleeps until the first is to be renewed or ends, and
//! renews together all that are due at about that time: their extensions are left for the one who
//! drives the connections, and written in one batch.
//!
//! | file | what it has |
//! |---|---|
//! | `hold` | one lock, shared with its guard: never renewed once it is given up or lost |
//! | `plan` | when a lock is to be renewed: arithmetic |
//! | `schedule` | all locks, by when something is to be done with them |
//! | `patrol` | what the thread does |
//! | `bell` | telling of a loss |
//!
//! Its alarms go by a clock that stands still while the machine is suspended, as all waiting does.
//! So after that they may come late, by as much as the machine slept at most. Whether a lock is
//! held is not for them to say: that goes by the [clock](crate::clock), and an alarm that comes
//! late renews nothing whose time is over.

mod bell;
mod hold;
mod patrol;
mod plan;
mod schedule;
mod sync;

pub(crate) use hold::Hold;
pub(crate) use plan::{MAX_HOLD, Plan, shortest_ttl};

use crate::engine::Rules;
use crate::error::NoThread;
use crate::line::Tenure;
use crate::net::Net;
use crate::origin::Origin;
use crossbeam_channel::{Sender, unbounded};
use patrol::Patrol;
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

/// A lock that is looked after.
#[derive(Debug)]
pub(crate) struct Watched {
    pub(crate) hold: Arc<Hold>,
    /// How it is kept alive, if it is.
    pub(crate) plan: Option<Box<Plan>>,
    /// Who waits for it in this process.
    pub(crate) tenure: Option<Tenure>,
}

/// The thread, if there is need for one.
#[derive(Debug)]
pub(crate) struct Watchdog {
    net: Arc<Net>,
    rules: Arc<Rules>,
    origin: Arc<Origin>,
    thread: Arc<Mutex<Option<Thread>>>,
}

#[derive(Debug)]
struct Thread {
    inbox: Sender<Watched>,
    handle: JoinHandle<()>,
}

impl Watchdog {
    pub(crate) fn new(net: &Arc<Net>, rules: &Arc<Rules>, origin: &Arc<Origin>) -> Self {
        let (net, rules, origin) = (net.clone(), rules.clone(), origin.clone());
        Self { net, rules, origin, thread: Arc::default() }
    }

    /// Starts the thread, if it does not run.
    pub(crate) fn start(&self) -> Result<(), NoThread> {
        self.start_in(&mut self.lock())
    }

    /// Looks after a lock from now on.
    pub(crate) fn watch(&self, watched: Watched) -> Result<(), NoThread> {
        let mut thread = self.lock();
        self.start_in(&mut thread)?;
        if let Some(thread) = &*thread {
            // It fails only if the thread has ended, and it ends only with this.
            let _ = thread.inbox.send(watched);
        }
        Ok(())
    }

    fn start_in(&self, thread: &mut Option<Thread>) -> Result<(), NoThread> {
        if thread.as_ref().is_some_and(|thread| !thread.handle.is_finished()) {
            return Ok(());
        }
        let (inbox, outbox) = unbounded();
        let patrol = Patrol::new(outbox, Arc::clone(&self.rules), Arc::clone(&self.net));
        let builder = thread::Builder::new().name("redlatch-watch".to_owned());
        let handle = builder.spawn(|| patrol.run()).map_err(|error| NoThread::new(&error))?;
        *thread = Some(Thread { inbox, handle });
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, Option<Thread>> {
        self.thread.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        if self.origin.is_foreign() {
            // In a forked child the thread is not there, and whoever looks for it finds another.
            mem::forget(Arc::clone(&self.thread));
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
