//! What the thread is told that goes on with started calls, and how it is woken for that.
//!
//! Not a channel: one that spins before it sleeps gives the processor away by that, and where many
//! threads want it the next job then waits for a turn. Here the thread sleeps at once.
//!
//! What must stay true: whoever adds a job finds the thread working, which looks at its jobs before
//! it waits for anything, or wakes it.

use super::sync::{Condvar, Mutex, MutexGuard, PoisonError, wait_while};
use std::mem;
use std::time::Duration;

#[derive(Debug)]
pub(super) struct JobQueue<J> {
    state: Mutex<State<J>>,
    /// A thread that sleeps waits here.
    has_job: Condvar,
}

#[derive(Debug)]
struct State<J> {
    jobs: Vec<J>,
    thread: ThreadState,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ThreadState {
    /// It looks at its jobs by itself.
    Works,
    /// There is nothing to do.
    Sleeps,
    /// It waits for orders, or is about to.
    Collects,
}

impl<J> JobQueue<J> {
    pub(super) fn new() -> Self {
        Self {
            state: Mutex::new(State {
                jobs: Vec::new(),
                thread: ThreadState::Works,
            }),
            has_job: Condvar::new(),
        }
    }

    /// Adds a job. Returns whether the thread is to be [nudged](crate::net::Nudge).
    #[must_use]
    pub(super) fn push(&self, job: J) -> bool {
        let mut state = self.lock();
        state.jobs.push(job);
        let before = mem::replace(&mut state.thread, ThreadState::Works);
        drop(state);
        if before == ThreadState::Sleeps {
            self.has_job.notify_one();
        }
        before == ThreadState::Collects
    }

    /// Exchanges this empty list for the jobs that there are, in their order. The thread works from
    /// now on.
    pub(super) fn take(&self, jobs: &mut Vec<J>) {
        let mut state = self.lock();
        state.thread = ThreadState::Works;
        mem::swap(&mut state.jobs, jobs);
    }

    /// The thread is about to wait for orders: for each job from now on it is nudged, until it
    /// [takes](Self::take) them. Returns whether there are jobs already.
    pub(super) fn begin_collecting(&self) -> bool {
        let mut state = self.lock();
        state.thread = ThreadState::Collects;
        !state.jobs.is_empty()
    }

    /// Sleeps until there is a job, for at most `limit` if there is one.
    pub(super) fn sleep(&self, limit: Option<Duration>) {
        let mut state = self.lock();
        if !state.jobs.is_empty() {
            return;
        }
        state.thread = ThreadState::Sleeps;
        state = wait_while(&self.has_job, state, limit, |state| state.jobs.is_empty());
        state.thread = ThreadState::Works;
    }

    fn lock(&self) -> MutexGuard<'_, State<J>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
