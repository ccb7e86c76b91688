//! Telling of losses and renewals: one thread for all that a client has to tell while nobody calls.
//!
//! It sleeps until the first lock ends whose loss somebody wants to be told of, or until it is
//! [handed](Notifier::notify) something to tell. Callbacks run here, one after another, so one that
//! blocks holds up the others and nothing else: renewals have a thread of their own, and whether a
//! lock is held is known without any. One that panics ends there. One may drop the last clone of
//! the client: this thread has no share in the connections, and nobody waits for its end.
//!
//! One may fork. The child has a copy of this thread and no other, and what is still to be told is
//! for its parent to tell: there the thread ends, and drops nothing.

use super::schedule::Schedule;
use super::shared_lease::{LeaseStatus, SharedLease};
use crate::callback::contain;
use crate::clock;
use crate::error::{ExtendError, SpawnError};
use crate::owner_process::OwnerProcess;
use crossbeam_channel::{Receiver, RecvError, RecvTimeoutError, Sender, unbounded};
use std::fmt;
use std::mem;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// The most news that wait to be told. Beyond that, as long as a callback blocks, the latest are
/// left out; losses never are.
pub(super) const NEWS_MAX: usize = 16 * 1024;

/// Who is told what the thread that renews has done.
pub(crate) type Emit = Box<dyn Fn(&BackgroundEvent) + Send + Sync>;

/// What there is to tell apart from losses.
#[derive(Debug)]
pub(crate) enum BackgroundEvent {
    /// The nodes were asked something: there may be news about them.
    Nodes,
    /// A lock was renewed, or was not.
    AutoExtension {
        /// The lock's key.
        key: Arc<[u8]>,
        /// How long it took.
        took: Duration,
        /// For how long the lock may be relied on.
        validity: Duration,
        /// Why it was not renewed.
        error: Option<ExtendError>,
    },
}

/// Something for the thread.
#[derive(Debug)]
pub(super) enum Notice {
    /// Look at this lock, now and when its validity ends.
    Look(Arc<SharedLease>),
    /// Emit this, if somebody listens.
    Tell(BackgroundEvent),
}

/// What hands the thread its work, and starts it when there is some.
pub(super) struct Notifier {
    tell: Option<Arc<Emit>>,
    owner_process: Arc<OwnerProcess>,
    thread: Mutex<Option<Thread>>,
}

struct Thread {
    inbox: Sender<Notice>,
    handle: JoinHandle<()>,
}

impl Notifier {
    pub(super) fn new(tell: Option<Emit>, owner_process: Arc<OwnerProcess>) -> Self {
        Self { tell: tell.map(Arc::new), owner_process, thread: Mutex::new(None) }
    }

    /// Does somebody listen to news?
    pub(super) fn has_listener(&self) -> bool {
        self.tell.is_some()
    }

    /// Starts the thread, if it does not run.
    pub(super) fn start(&self) -> Result<(), SpawnError> {
        let mut thread = self.lock();
        if thread.as_ref().is_some_and(|thread| !thread.handle.is_finished()) {
            return Ok(());
        }
        let (inbox, outbox) = unbounded();
        let (tell, owner_process) = (self.tell.clone(), Arc::clone(&self.owner_process));
        let desk = Desk { inbox: outbox, ends: Schedule::new(), tell, owner_process };
        let builder = thread::Builder::new().name("redlatch-notify".to_owned());
        let handle = builder.spawn(|| desk.run()).map_err(|error| SpawnError::new(&error))?;
        *thread = Some(Thread { inbox, handle });
        Ok(())
    }

    /// Hands the thread something, if it was started. Otherwise nobody wants to know.
    pub(super) fn notify(&self, notice: Notice) {
        if let Some(Thread { inbox, .. }) = &*self.lock() {
            if matches!(notice, Notice::Look(_)) || inbox.len() < NEWS_MAX {
                // It fails only if the thread has ended, and it ends only with this.
                let _ = inbox.send(notice);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Thread>> {
        self.thread.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The thread's own state.
struct Desk {
    inbox: Receiver<Notice>,
    /// Locks with callbacks, by when they end as far as is known.
    ends: Schedule<Arc<SharedLease>>,
    tell: Option<Arc<Emit>>,
    owner_process: Arc<OwnerProcess>,
}

impl Desk {
    /// Goes on until the last clone of the client is gone, and with it the last guard.
    fn run(mut self) {
        while let Ok(first) = self.sleep() {
            // What was done with a lock before it ended is told before its loss: that was handed in
            // by now, for locks that have ended by now.
            let now = clock::now();
            let more = self.inbox.len();
            let rest = (0..more).map_while(|_| self.inbox.try_recv().ok());
            let notices: Vec<Notice> = first.into_iter().chain(rest).collect();
            if self.each(notices, Self::handle).is_break() {
                return mem::forget(self);
            }
            let ended = self.ends.take(now, Duration::ZERO);
            if self.each(ended, Self::look).is_break() {
                return mem::forget(self);
            }
        }
        // Nothing is held any more, but something may have been lost a moment ago.
        let rest: Vec<_> = self.ends.drain().collect();
        if self.each(rest, Self::look).is_break() {
            mem::forget(self);
        }
    }

    /// Does it with one after another, and leaves all as it is where that shows this to be a child.
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

    /// Sleeps until it is handed something, or until a lock may have ended. An error when there
    /// will not be anything, ever.
    fn sleep(&self) -> Result<Option<Notice>, RecvError> {
        let Some(at) = self.ends.next() else { return self.inbox.recv().map(Some) };
        match self.inbox.recv_timeout(at.since(clock::now())) {
            Ok(notice) => Ok(Some(notice)),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => Err(RecvError),
        }
    }

    fn handle(&mut self, notice: Notice) -> ControlFlow<()> {
        match (notice, self.tell.clone()) {
            (Notice::Look(hold), _) => self.look(hold),
            (Notice::Tell(news), Some(tell)) => self.call(|| tell(&news)),
            (Notice::Tell(_), None) => ControlFlow::Continue(()),
        }
    }

    /// Tells of a loss, or waits for it.
    fn look(&mut self, hold: Arc<SharedLease>) -> ControlFlow<()> {
        match hold.standing(clock::now()) {
            LeaseStatus::Held(end) => self.ends.put(end, Duration::ZERO, hold),
            LeaseStatus::Lost(lost, callbacks) => {
                return self.each(callbacks, |desk, callback| desk.call(|| callback(lost)));
            }
            LeaseStatus::Released => {}
        }
        ControlFlow::Continue(())
    }

    /// Calls what is not ours, and does not go on where that has forked and this is the child.
    fn call(&self, call: impl FnOnce()) -> ControlFlow<()> {
        contain(call);
        let is_child = self.owner_process.is_forked();
        if is_child { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
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
    use crate::error::LockLost;
    use crate::watchdog::fixture::hold_until;
    use std::sync::mpsc::{channel, sync_channel};

    const LIMIT: Duration = Duration::from_secs(20);

    fn soon(millis: u64) -> Arc<SharedLease> {
        hold_until(clock::now().after(Duration::from_millis(millis)))
    }

    #[test]
    fn what_was_done_before_a_loss_is_told_before_it_and_a_panic_costs_nothing_else() {
        let (sender, told) = channel();
        let news = sender.clone();
        let tell: Emit = Box::new(move |_| {
            news.send("news").unwrap();
            panic!("on purpose");
        });
        let notifier = Notifier::new(Some(tell), Arc::new(OwnerProcess::here()));
        notifier.start().unwrap();
        let hold = soon(100);
        let last = sender.clone();
        let lost = move |lost| assert_eq!((last.send("lost"), lost), (Ok(()), LockLost::Expired));
        assert!(hold.tell(Box::new(lost)));
        notifier.notify(Notice::Look(Arc::clone(&hold)));
        // It is busy until the news are there, and the lock has ended.
        let (enter, entered) = sync_channel::<()>(0);
        let busy = soon(0);
        assert!(busy.tell(Box::new(move |_| entered.recv().unwrap())));
        notifier.notify(Notice::Look(busy));
        (0..2).for_each(|_| notifier.notify(Notice::Tell(BackgroundEvent::Nodes)));
        assert_eq!(hold.wait(clock::now, LIMIT), Some(LockLost::Expired));
        enter.send(()).unwrap();
        let next = || told.recv_timeout(LIMIT).unwrap();
        assert_eq!([next(), next(), next()], ["news", "news", "lost"]);
        assert!(hold.tell(Box::new(move |_| sender.send("again").unwrap())), "all were told");
        notifier.notify(Notice::Look(hold));
        assert_eq!(next(), "again");
    }

    #[test]
    fn what_waits_to_be_told_is_bounded_but_for_losses() {
        let notifier = Notifier::new(Some(Box::new(|_| {})), Arc::new(OwnerProcess::here()));
        notifier.notify(Notice::Tell(BackgroundEvent::Nodes));
        notifier.start().unwrap();
        let (enter, entered) = sync_channel::<()>(0);
        let first = soon(0);
        assert!(first.tell(Box::new(move |_| entered.recv().unwrap())));
        notifier.notify(Notice::Look(first));
        (0..2 * NEWS_MAX).for_each(|_| notifier.notify(Notice::Tell(BackgroundEvent::Nodes)));
        let waiting = || notifier.lock().as_ref().map_or(0, |thread| thread.inbox.len());
        assert!(waiting() <= NEWS_MAX, "{}", waiting());
        let (sender, told) = channel();
        let hold = soon(0);
        assert!(hold.tell(Box::new(move |lost| sender.send(lost).unwrap())));
        notifier.notify(Notice::Look(hold));
        enter.send(()).unwrap();
        assert_eq!(told.recv_timeout(LIMIT), Ok(LockLost::Expired));
    }
}
