//! The notifier, a thread: it calls the callbacks of lost locks and wakes the tasks that wait for
//! their loss, and emits the events that belong to no call.
//!
//! It sleeps until the validity of the first lock with callbacks ends, or until it is
//! [notified](Notifier::notify). Callbacks run one after another, so one that blocks delays the
//! others and nothing else: the keep-alive loop has a thread of its own, and checking a lock needs
//! none. A panic ends the callback and not the thread. A callback may drop the last clone of the
//! client: this thread holds no reference to the connections, and no thread waits for its end.
//!
//! A callback may fork. The child has a copy of this thread and no other, and its parent calls the
//! remaining callbacks: in the child the thread ends, and drops nothing.

use super::guarded_lock::{GuardedLock, HoldStatus};
use super::schedule::Schedule;
use crate::callback::contain;
use crate::clock;
use crate::error::{Error, SpawnError};
use crate::owner_process::OwnerProcess;
use crossbeam_channel::{Receiver, RecvError, RecvTimeoutError, Sender, unbounded};
use std::fmt;
use std::mem;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// The most events that wait to be emitted. While a callback blocks, later events than these are
/// left out; losses never are.
pub(super) const EVENTS_MAX: usize = 16 * 1024;

pub(crate) type Emit = Box<dyn Fn(&BackgroundEvent) + Send + Sync>;

/// Something that happened outside any call, apart from losses.
#[derive(Debug)]
pub(crate) enum BackgroundEvent {
    /// A request was sent to the nodes: their state may have changed.
    Nodes,
    /// An automatic extension was confirmed, or was not.
    AutoExtension {
        key: Arc<[u8]>,
        took: Duration,
        validity: Duration,
        error: Option<Error>,
    },
}

pub(super) enum Notice {
    /// Check this lock, now and when its validity ends.
    CheckLock(Arc<GuardedLock>),
    Emit(BackgroundEvent),
    /// Call this: a started call has ended.
    Call(Callback),
}

pub(crate) type Callback = Box<dyn FnOnce() + Send>;

/// The sending side: starts the thread and gives it work.
pub(crate) struct Notifier {
    emit: Option<Arc<Emit>>,
    owner_process: Arc<OwnerProcess>,
    thread: Mutex<Option<NotifierThread>>,
}

struct NotifierThread {
    inbox: Sender<Notice>,
    handle: JoinHandle<()>,
}

impl Notifier {
    pub(crate) fn new(emit: Option<Emit>, owner_process: Arc<OwnerProcess>) -> Self {
        Self {
            emit: emit.map(Arc::new),
            owner_process,
            thread: Mutex::new(None),
        }
    }

    pub(super) fn has_listener(&self) -> bool {
        self.emit.is_some()
    }

    /// Starts the thread, if it does not run.
    pub(crate) fn start(&self) -> Result<(), SpawnError> {
        let mut thread = self.lock();
        let is_running = thread.as_ref().is_some_and(|it| !it.handle.is_finished());
        if is_running {
            return Ok(());
        }
        let (inbox, outbox) = unbounded();
        let notifier_loop = NotifierLoop {
            inbox: outbox,
            schedule: Schedule::new(),
            emit: self.emit.clone(),
            owner_process: Arc::clone(&self.owner_process),
        };
        let builder = thread::Builder::new().name("redlatch-notify".to_owned());
        let handle = builder
            .spawn(|| notifier_loop.run())
            .map_err(|error| SpawnError::new(&error))?;
        *thread = Some(NotifierThread { inbox, handle });
        Ok(())
    }

    /// Gives the thread something to do, if it was started. If not, there is no callback and no
    /// listener.
    pub(super) fn notify(&self, notice: Notice) {
        if let Some(NotifierThread { inbox, .. }) = &*self.lock() {
            if !matches!(notice, Notice::Emit(_)) || inbox.len() < EVENTS_MAX {
                // It fails only if the thread has ended, which it does only with this notifier.
                let _ = inbox.send(notice);
            }
        }
    }

    /// Calls this in the thread, which was [started](Self::start).
    pub(crate) fn call(&self, callback: Callback) {
        self.notify(Notice::Call(callback));
    }

    /// Checks a lock now and when its validity ends, and calls its callbacks once it is lost.
    pub(crate) fn watch_for_loss(&self, held: Arc<GuardedLock>) {
        self.notify(Notice::CheckLock(held));
    }

    fn lock(&self) -> MutexGuard<'_, Option<NotifierThread>> {
        self.thread.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct NotifierLoop {
    inbox: Receiver<Notice>,
    /// Locks with callbacks, by the end of their validity as far as it is known.
    schedule: Schedule<Arc<GuardedLock>>,
    emit: Option<Arc<Emit>>,
    owner_process: Arc<OwnerProcess>,
}

impl NotifierLoop {
    /// Runs until the last clone of the client and the last guard are dropped.
    fn run(mut self) {
        while let Ok(first) = self.sleep() {
            // The events of a lock come before its loss: for locks that are lost by now, all of
            // them are in the inbox by now.
            let now = clock::now();
            let more = self.inbox.len();
            let rest = (0..more).map_while(|_| self.inbox.try_recv().ok());
            let notices: Vec<Notice> = first.into_iter().chain(rest).collect();
            if self.each(notices, Self::handle).is_break() {
                return mem::forget(self);
            }
            let ended = self.schedule.take_due(now, Duration::ZERO);
            if self.each(ended, Self::check_lock).is_break() {
                return mem::forget(self);
            }
        }
        // No lock is held any more, but one may have been lost a moment ago.
        let rest: Vec<_> = self.schedule.drain().collect();
        if self.each(rest, Self::check_lock).is_break() {
            mem::forget(self);
        }
    }

    /// Runs `step` with one after another. If one finds that this is a forked child, the rest is
    /// forgotten.
    fn each<T>(
        &mut self,
        all: Vec<T>,
        mut step: impl FnMut(&mut Self, T) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let mut all = all.into_iter();
        while let Some(one) = all.next() {
            if step(self, one).is_break() {
                mem::forget(all);
                return ControlFlow::Break(());
            }
        }
        ControlFlow::Continue(())
    }

    /// Sleeps until there is a notice, or until a lock may have expired. An error when there will
    /// never be a notice again.
    fn sleep(&self) -> Result<Option<Notice>, RecvError> {
        let Some(at) = self.schedule.next_at() else {
            return self.inbox.recv().map(Some);
        };
        match self.inbox.recv_timeout(at.since(clock::now())) {
            Ok(notice) => Ok(Some(notice)),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => Err(RecvError),
        }
    }

    fn handle(&mut self, notice: Notice) -> ControlFlow<()> {
        match (notice, self.emit.clone()) {
            (Notice::CheckLock(held), _) => self.check_lock(held),
            (Notice::Emit(event), Some(emit)) => self.call(|| emit(&event)),
            (Notice::Emit(_), None) => ControlFlow::Continue(()),
            (Notice::Call(callback), _) => self.call(callback),
        }
    }

    /// Calls the callbacks of a lost lock, or puts a held one into the schedule.
    fn check_lock(&mut self, held: Arc<GuardedLock>) -> ControlFlow<()> {
        match held.take_status(clock::now()) {
            HoldStatus::Held(end) => self.schedule.insert(end, Duration::ZERO, held),
            HoldStatus::Lost(lost, callbacks) => {
                return self.each(callbacks, |this, callback| this.call(|| callback(lost)));
            }
            HoldStatus::Released => {}
        }
        ControlFlow::Continue(())
    }

    /// Calls user callbacks. Breaks if that has forked and this is the child.
    fn call(&self, call: impl FnOnce()) -> ControlFlow<()> {
        contain(call);
        let is_child = self.owner_process.is_forked();
        if is_child {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }
}

impl fmt::Debug for Notifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Notifier")
            .field("has_listener", &self.has_listener())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::LossReason;
    use crate::watchdog::fixture::lock_until;
    use std::sync::mpsc::{channel, sync_channel};
    use std::task::Waker;

    const LIMIT: Duration = Duration::from_secs(20);

    fn soon(millis: u64) -> Arc<GuardedLock> {
        lock_until(clock::now().after(Duration::from_millis(millis)))
    }

    #[test]
    fn events_before_a_loss_come_before_it_and_a_panic_ends_only_its_callback() {
        let (sender, calls) = channel();
        let events = sender.clone();
        let emit: Emit = Box::new(move |_| {
            events.send("event").unwrap();
            panic!("on purpose");
        });
        let notifier = Notifier::new(Some(emit), Arc::new(OwnerProcess::here()));
        notifier.start().unwrap();
        let held = soon(100);
        let last = sender.clone();
        let lost = move |lost| assert_eq!((last.send("lost"), lost), (Ok(()), LossReason::Expired));
        assert!(held.on_lost(0, Box::new(lost)));
        notifier.notify(Notice::CheckLock(Arc::clone(&held)));
        // It is busy until the events are there, and the lock has expired.
        let (enter, entered) = sync_channel::<()>(0);
        let busy = soon(0);
        assert!(busy.on_lost(0, Box::new(move |_| entered.recv().unwrap())));
        notifier.notify(Notice::CheckLock(busy));
        (0..2).for_each(|_| notifier.notify(Notice::Emit(BackgroundEvent::Nodes)));
        assert_eq!(held.wait_lost(clock::now, LIMIT), Some(LossReason::Expired));
        enter.send(()).unwrap();
        let next = || calls.recv_timeout(LIMIT).unwrap();
        assert_eq!([next(), next(), next()], ["event", "event", "lost"]);
        assert!(
            held.on_lost(0, Box::new(move |_| sender.send("again").unwrap())),
            "all were called"
        );
        notifier.notify(Notice::CheckLock(held));
        assert_eq!(next(), "again");
    }

    #[test]
    fn a_lock_is_checked_once_however_often_a_task_waits_for_its_loss() {
        let held = soon(100);
        let waker = Waker::noop();
        assert!(held.wake_when_lost(0, 1, waker.clone()));
        for task in 2..5 {
            assert!(!held.wake_when_lost(0, task, waker.clone()));
            held.forget_task(task);
        }
        held.forget_task(1);
        assert!(!held.wake_when_lost(0, 5, waker.clone()), "nobody waits");
        assert!(!held.on_lost(0, Box::new(|_| {})));
        assert_eq!(held.wait_lost(clock::now, LIMIT), Some(LossReason::Expired));
        let HoldStatus::Lost(_, watchers) = held.take_status(clock::now()) else {
            panic!("it is lost");
        };
        assert_eq!(watchers.len(), 2);
        assert!(
            held.wake_when_lost(0, 6, waker.clone()),
            "all that waited are told"
        );
    }

    #[test]
    fn waiting_events_are_bounded_but_losses_are_not() {
        let notifier = Notifier::new(Some(Box::new(|_| {})), Arc::new(OwnerProcess::here()));
        notifier.notify(Notice::Emit(BackgroundEvent::Nodes));
        notifier.start().unwrap();
        let (enter, entered) = sync_channel::<()>(0);
        let first = soon(0);
        assert!(first.on_lost(0, Box::new(move |_| entered.recv().unwrap())));
        notifier.notify(Notice::CheckLock(first));
        (0..2 * EVENTS_MAX).for_each(|_| notifier.notify(Notice::Emit(BackgroundEvent::Nodes)));
        let waiting = || {
            notifier
                .lock()
                .as_ref()
                .map_or(0, |thread| thread.inbox.len())
        };
        assert!(waiting() <= EVENTS_MAX, "{}", waiting());
        let (sender, calls) = channel();
        let held = soon(0);
        assert!(held.on_lost(0, Box::new(move |lost| sender.send(lost).unwrap())));
        notifier.notify(Notice::CheckLock(held));
        enter.send(()).unwrap();
        assert_eq!(calls.recv_timeout(LIMIT), Ok(LossReason::Expired));
    }
}
