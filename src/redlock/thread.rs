//! A thread that blocks, and asks the nodes.
//!
//! At most [`UNDER_WAY_MAX`] attempts of a client's threads are under way at a time; the others
//! stand in line, where the time of an attempt does not run. Otherwise, of thousands of threads
//! that ask at once on a busy machine, most find their round late, and come back a moment later
//! with all the others. A thread whose turn has come, or to which a lock is handed over, does not
//! stand in line: others wait for it. None stands there for so long that its call would end without
//! an attempt.

use super::call::NodesCaller;
use crate::backend::{Blocking, Caller, CancellableCall, PausingThread};
use crate::clock::{self, Time};
use crate::driver::{Line, UNDER_WAY_MAX};
use crate::engine::{QueueWait, Request, Wait};
use crate::net::{Net, RoundOutcome};
use crate::owner_process::OwnerProcess;
use std::cell::Cell;
use std::future::{Future, pending, ready};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Wake, Waker};
use std::time::Duration;

thread_local! {
    /// Does this thread have room for an attempt? A callback of the listener may take a lock
    /// meanwhile: if that stood in line, so many callbacks would wait for each other.
    static HAS_ROOM: Cell<bool> = const { Cell::new(false) };
}

/// The attempts of a client's threads that are under way, and the threads in line.
#[derive(Debug)]
pub(super) struct AttemptLine {
    threads: Mutex<Line<Arc<WaitingThread>>>,
    owner_process: Arc<OwnerProcess>,
}

/// A thread in line. Both flags change only while the line is locked.
#[derive(Debug, Default)]
struct WaitingThread {
    thread: Arc<PausingThread>,
    has_room: AtomicBool,
    has_left: AtomicBool,
}

impl AttemptLine {
    pub(super) fn new(owner_process: &Arc<OwnerProcess>) -> Self {
        Self {
            threads: Mutex::new(Line::new(UNDER_WAY_MAX)),
            owner_process: Arc::clone(owner_process),
        }
    }

    /// Begins an attempt, if there is room and nobody stands in line.
    fn begin(&self) -> bool {
        self.lock().begin_new()
    }

    /// Stands in line until this time at most, or until the call is cancelled. Returns whether
    /// there is room.
    fn wait(&self, until: Time, call: &CancellableCall<'_>) -> bool {
        let own = Arc::new(WaitingThread::default());
        call.begin_pause(&Waker::from(Arc::clone(&own.thread)));
        let mut line = self.lock();
        line.push(Arc::clone(&own));
        Self::give(&mut line);
        drop(line);
        if !call.is_cancelled() {
            own.thread.sleep_until(until);
        }
        call.end_wait();
        // It may have been given room since it was woken.
        let _line = self.lock();
        own.has_left.store(true, Ordering::Relaxed);
        own.has_room.load(Ordering::Relaxed)
    }

    /// Does nothing in a child that a callback has forked, where the line may be locked by a thread
    /// that does not exist.
    fn leave(&self) {
        if self.owner_process.is_known_forked() {
            return;
        }
        let mut line = self.lock();
        line.end();
        Self::give(&mut line);
    }

    /// Gives room to those that are first in line.
    fn give(line: &mut Line<Arc<WaitingThread>>) {
        while let Some(first) = line.begin() {
            if first.has_left.load(Ordering::Relaxed) {
                line.end();
            } else {
                first.has_room.store(true, Ordering::Relaxed);
                Arc::clone(&first.thread).wake();
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Line<Arc<WaitingThread>>> {
        self.threads.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The caller of a call that blocks.
pub(super) struct AskingThread<'a> {
    blocking: Blocking<'a, Net>,
    line: &'a AttemptLine,
    wait: Wait,
    /// How long a call that makes a single attempt stands in line at most.
    patience: Duration,
    has_room: Cell<bool>,
}

impl<'a> AskingThread<'a> {
    pub(super) fn new(
        blocking: Blocking<'a, Net>,
        line: &'a AttemptLine,
        wait: Wait,
        patience: Duration,
    ) -> Self {
        Self {
            blocking,
            line,
            wait,
            patience,
            has_room: Cell::new(false),
        }
    }

    /// Returns whether the call was cancelled as it stood in line.
    fn enter_line(&self) -> bool {
        if HAS_ROOM.get() {
            return false;
        }
        let call = self.blocking.call;
        let has_room = self.line.begin() || self.line.wait(self.patience_ends(), call);
        self.has_room.set(has_room);
        HAS_ROOM.set(has_room);
        !has_room && call.is_cancelled()
    }

    fn patience_ends(&self) -> Time {
        let now = clock::now();
        match self.wait {
            Wait::No => now.after(self.patience),
            Wait::Until(end) => now.after(end.since(now) / 2),
            Wait::Forever => Time::MAX,
        }
    }

    /// Its attempt is over.
    fn leave_line(&self) {
        if self.has_room.take() {
            HAS_ROOM.set(false);
            self.line.leave();
        }
    }
}

impl Drop for AskingThread<'_> {
    fn drop(&mut self) {
        self.leave_line();
    }
}

impl Caller for AskingThread<'_> {
    fn pause_until(&self, time: Time) -> impl Future<Output = bool> {
        self.leave_line();
        self.blocking.pause_until(time)
    }
}

impl NodesCaller for AskingThread<'_> {
    fn await_room(&self, _end: Option<Time>, is_awaited: bool) -> impl Future<Output = bool> {
        ready(!is_awaited && self.enter_line())
    }

    fn round(&self, request: Request) -> Poll<RoundOutcome> {
        Poll::Ready(self.blocking.net.submit(request))
    }

    fn decision(&self) -> impl Future<Output = RoundOutcome> {
        pending()
    }

    fn wait(&self, wait: QueueWait) -> impl Future<Output = bool> {
        self.leave_line();
        ready(self.blocking.net.wait(wait))
    }

    fn post(&self, request: Request) {
        self.blocking.net.post(request);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::fixture::cancellation;
    use crate::cancel_token::CancelToken;
    use crate::redlock::Redlock;
    use std::sync::mpsc;
    use std::thread;

    fn line_of(limit: usize) -> AttemptLine {
        AttemptLine {
            threads: Mutex::new(Line::new(limit)),
            owner_process: Arc::new(OwnerProcess::here()),
        }
    }

    #[test]
    fn a_thread_in_line_gets_the_room_of_one_that_leaves() {
        let client = cancellation::<Redlock>();
        let line = line_of(1);
        assert!(line.begin());
        thread::scope(|scope| {
            let other = scope.spawn(|| line.wait(Time::MAX, &client.call(None)));
            line.leave();
            assert!(other.join().unwrap());
        });
        assert!(!line.begin(), "the other has it");
    }

    #[test]
    fn a_thread_that_is_late_or_cancelled_leaves_the_line_and_takes_no_room() {
        let client = cancellation::<Redlock>();
        let line = line_of(1);
        assert!(line.begin());
        assert!(!line.wait(clock::now(), &client.call(None)));
        let token = CancelToken::new();
        thread::scope(|scope| {
            let other = scope.spawn(|| line.wait(Time::MAX, &client.call(Some(&token))));
            token.cancel();
            assert!(!other.join().unwrap());
        });
        line.leave();
        assert!(line.begin());
    }

    #[test]
    fn a_forked_child_does_not_wait_for_a_thread_that_does_not_exist() {
        let parent = Arc::new(OwnerProcess::with_id(0));
        assert!(parent.is_forked());
        let line = Arc::new(AttemptLine::new(&parent));
        let locked = line.lock();
        let (sender, has_left) = mpsc::channel();
        let childs = Arc::clone(&line);
        thread::spawn(move || {
            childs.leave();
            sender.send(()).unwrap();
        });
        let limit = Duration::from_secs(20);
        assert_eq!(has_left.recv_timeout(limit), Ok(()));
        drop(locked);
    }
}
