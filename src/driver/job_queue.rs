//! What the thread is told that goes on with started calls, and how it is woken for that.
//!
//! Not a channel: one that spins before it sleeps gives the processor away by that, and where many
//! threads want it the next job then waits for a turn. Here the thread sleeps at once.
//!
//! What must stay true: whoever adds a job finds the thread working, which looks at its jobs before
//! it waits for anything, or wakes it.

use crate::clock::{self, Time};
use std::mem;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

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

    /// Sleeps until there is a job, or until this time.
    pub(super) fn sleep(&self, until: Option<Time>) {
        let mut state = self.lock();
        if !state.jobs.is_empty() {
            return;
        }
        state.thread = ThreadState::Sleeps;
        // Woken early, the thread finds nothing to do and sleeps again.
        state = match until {
            None => self
                .has_job
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner),
            Some(until) => {
                let left = until.since(clock::now());
                let woken = self.has_job.wait_timeout(state, left);
                woken.unwrap_or_else(PoisonError::into_inner).0
            }
        };
        state.thread = ThreadState::Works;
    }

    fn lock(&self) -> MutexGuard<'_, State<J>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::thread;

    #[test]
    fn a_thread_that_collects_is_nudged_for_the_first_job_and_one_that_works_for_none() {
        let queue = JobQueue::new();
        let mut jobs = Vec::new();
        assert!(!queue.push(1));
        assert!(queue.begin_collecting(), "there is one");
        assert!(queue.push(2));
        assert!(!queue.push(3), "it is on its way");
        queue.take(&mut jobs);
        assert_eq!(jobs, [1, 2, 3]);
        jobs.clear();
        assert!(!queue.begin_collecting());
        queue.take(&mut jobs);
        assert!(!queue.push(4), "it works");
        queue.sleep(None);
        queue.take(&mut jobs);
        assert_eq!(jobs, [4]);
    }

    #[test]
    fn no_job_is_lost_between_a_look_and_a_sleep() {
        const JOBS: usize = 10_000;
        let queue = Arc::new(JobQueue::new());
        let sender = Arc::clone(&queue);
        let thread = thread::spawn(move || {
            for job in 0..JOBS {
                assert!(!sender.push(job), "nobody collects");
            }
        });
        let mut seen = Vec::new();
        let mut jobs = Vec::new();
        while seen.len() < JOBS {
            queue.sleep(None);
            queue.take(&mut jobs);
            seen.append(&mut jobs);
        }
        thread.join().expect("no panic");
        assert!(seen.iter().copied().eq(0..JOBS));
    }
}
