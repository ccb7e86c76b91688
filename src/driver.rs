//! Calls that were started: they wait without a thread of their own. One thread for all of a
//! client, `redlatch-wait`, which the first of them starts, polls them.
//!
//! A call leaves in its [mailbox](mailbox) what it waits for, and finds there how that has ended.
//! The thread has the orders of all calls as one batch: it leads or follows as any thread with
//! several orders does, and is nudged when there is a call more, or one to look at. Calls over
//! connections that have a thread of their own have no orders here: they are woken.
//!
//! What must stay true:
//!
//! - A call is never dropped before its end, however it is cancelled: cancelling is a flag that the
//!   call reads wherever it would wait, and it leaves nothing on the nodes, as the call of a
//!   thread.
//! - All that has been answered is taken before any call is polled: that begins orders, and these
//!   may have the numbers of those that were answered.
//! - A wake-up that comes before the call has arrived here is not lost: a call that arrives is
//!   polled.
//! - What calls say to the nodes without waiting for it is written before the thread sleeps.

mod driver_loop;
mod dropped_calls;
mod job_queue;
mod line;
mod mailbox;

use crate::clock::Time;
use crate::engine::Request;
use crate::error::SpawnError;
use crate::net::{Net, Nudge, Order, Orders, sync};
use crate::node::Ended;
use crate::owner_process::OwnerProcess;
use driver_loop::DriverLoop;
use dropped_calls::DroppedCalls;
use job_queue::JobQueue;
pub(crate) use line::{Line, UNDER_WAY_MAX};
use mailbox::{Mailbox, Wish};
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// What a call does to its end, as it is polled.
pub(crate) type Work<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// It catches its own panics, and hands its result on itself.
pub(crate) type Task = Work<'static, ()>;

/// Makes a request where it is sent, by giving it to its argument; or none, if there is no reason
/// for it any more.
pub(crate) type MakeRequest = Box<dyn FnOnce(&mut dyn FnMut(Request)) + Send>;

/// Starts the thread, and gives it calls.
#[derive(Debug)]
pub(crate) struct Driver {
    /// Where calls have orders, if that is here.
    net: Option<Arc<Net>>,
    owner_process: Arc<OwnerProcess>,
    /// How many calls there have been: their numbers.
    calls: AtomicU64,
    dropped: Arc<DroppedCalls>,
    thread: Mutex<Option<DriverThread>>,
}

#[derive(Debug)]
struct DriverThread {
    remote: Remote,
    handle: JoinHandle<()>,
}

/// Tells the thread what to do.
#[derive(Clone, Debug)]
struct Remote {
    jobs: Arc<JobQueue<Job>>,
    /// If calls have orders.
    nudge: Option<Nudge>,
}

#[derive(Debug)]
enum Job {
    /// Poll this call to its end.
    Begin(StartedCall),
    /// Something may have happened that this call waits for.
    Poll(u64),
    /// Nobody waits for this call any more.
    Cancel(u64),
    /// There will be no more calls.
    End,
}

struct StartedCall {
    number: u64,
    task: Task,
    mailbox: Arc<Mailbox>,
    waker: Waker,
    /// When it is polled although nothing has happened.
    alarm: Option<Time>,
    room: Room,
}

/// Room for the rounds of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Room {
    None,
    /// It stands in line for it.
    Awaited,
    Given,
}

/// What a started call waits with.
pub(crate) struct Driven {
    mailbox: Arc<Mailbox>,
}

/// Wakes a call that waits for something else than the nodes.
struct CallWaker {
    number: u64,
    remote: Remote,
}

impl Driver {
    /// Starts no thread.
    pub(crate) fn new(net: Option<&Arc<Net>>, owner_process: &Arc<OwnerProcess>) -> Self {
        Self {
            net: net.map(Arc::clone),
            owner_process: Arc::clone(owner_process),
            calls: AtomicU64::new(0),
            dropped: Arc::default(),
            thread: Mutex::default(),
        }
    }

    /// Begins a call, in this thread: so it takes its place in the queue of this process before
    /// this returns. The driver's thread goes on with it. Returns its number.
    ///
    /// # Errors
    ///
    /// The operating system refuses the thread. Then nothing has begun.
    pub(crate) fn begin(&self, call: impl FnOnce(Driven) -> Task) -> Result<u64, SpawnError> {
        let remote = self.start()?;
        let number = self.calls.fetch_add(1, Ordering::Relaxed);
        let mailbox = Arc::new(Mailbox::default());
        let waker = Waker::from(Arc::new(CallWaker {
            number,
            remote: remote.clone(),
        }));
        let mut task = call(Driven {
            mailbox: Arc::clone(&mailbox),
        });
        let polled = task.as_mut().poll(&mut Context::from_waker(&waker));
        if let Some(net) = self.net.as_ref().filter(|_| mailbox.take_message()) {
            net.flush();
        }
        if polled.is_pending() {
            remote.send(Job::Begin(StartedCall {
                number,
                task,
                mailbox,
                waker,
                alarm: None,
                room: Room::None,
            }));
        }
        Ok(number)
    }

    /// Nobody waits for this call any more: it ends as early as it can.
    pub(crate) fn cancel(&self, call: u64) {
        self.dropped.add();
        let remote = self.lock().as_ref().map(|thread| thread.remote.clone());
        if let Some(remote) = remote {
            remote.send(Job::Cancel(call));
        }
    }

    /// Waits until the calls have ended of which nobody waits for the result, for at most this
    /// long. A waker or a callback, which those calls wait for, does not wait for them.
    pub(crate) fn await_dropped(&self, longest: Duration) {
        if !self.lock().as_ref().is_some_and(DriverThread::is_current) {
            self.dropped.wait(longest);
        }
    }

    /// Starts the thread, if it does not run.
    fn start(&self) -> Result<Remote, SpawnError> {
        let mut thread = self.lock();
        if let Some(running) = thread.as_ref().filter(|it| !it.handle.is_finished()) {
            return Ok(running.remote.clone());
        }
        let orders = self.net.as_ref().map(|net| Orders::new(Arc::clone(net)));
        let remote = Remote {
            jobs: Arc::new(JobQueue::new()),
            nudge: orders.as_ref().map(Orders::nudge),
        };
        let jobs = Arc::clone(&remote.jobs);
        let driver_loop = DriverLoop::new(jobs, orders, &self.owner_process, &self.dropped);
        let builder = thread::Builder::new().name("redlatch-wait".to_owned());
        let handle = builder
            .spawn(|| driver_loop.run())
            .map_err(|error| SpawnError::new(&error))?;
        *thread = Some(DriverThread {
            remote: remote.clone(),
            handle,
        });
        Ok(remote)
    }

    fn lock(&self) -> MutexGuard<'_, Option<DriverThread>> {
        self.thread.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        let Some(thread) = self.lock().take() else {
            return;
        };
        thread.remote.send(Job::End);
        // It may wait for an alarm that nobody needs any more.
        if let Some(net) = &self.net {
            net.end_waits(None);
        }
        // The thread holds a reference to the connections, and whoever drops the client must be the
        // one that waits for what was written there. Each call keeps the client, so it has none.
        if !thread.is_current() {
            // It fails if the thread panicked, which the panic hook has reported.
            let _ = thread.handle.join();
        }
    }
}

impl DriverThread {
    /// Is this call in that thread?
    fn is_current(&self) -> bool {
        self.handle.thread().id() == thread::current().id()
    }
}

impl Remote {
    fn send(&self, job: Job) {
        if self.jobs.push(job) {
            self.nudge.iter().for_each(Nudge::nudge);
        }
    }
}

impl Wake for CallWaker {
    fn wake(self: Arc<Self>) {
        self.remote.send(Job::Poll(self.number));
    }
}

impl Driven {
    /// Waits until there is [room](Self::take_room) for rounds, or until it is woken, or until this
    /// time. A call that is awaited gets it before those that only begin.
    pub(crate) fn await_room(&self, until: Option<Time>, is_awaited: bool) {
        self.mailbox.wish(Wish::Room { until, is_awaited });
    }

    /// Is there room for the rounds of this call by now? It has it until it sleeps, stands in the
    /// nodes' queue, waits for room again, or ends.
    pub(crate) fn take_room(&self) -> bool {
        self.mailbox.take_room()
    }

    /// Gives an order to the nodes, and waits for it before it waits for anything else.
    pub(crate) fn order(&self, order: Order) {
        self.mailbox.wish(Wish::Order(order));
    }

    /// Asks the nodes, with a request that is made as it is sent. If none is made, the call is
    /// polled.
    pub(crate) fn order_made_when_sent(&self, make: MakeRequest) {
        self.mailbox.wish(Wish::Request(make));
    }

    /// How the order has ended that was given last.
    pub(crate) fn poll_ended(&self) -> Poll<Ended> {
        self.mailbox.poll_ended()
    }

    /// A message is left to whoever leads next: it is written before the driver sleeps.
    pub(crate) fn note_message(&self) {
        self.mailbox.note_message();
    }

    /// The call has nothing to do before it is woken, or before this time.
    pub(crate) fn sleep(&self, until: Option<Time>) {
        self.mailbox.wish(Wish::Sleep(until));
    }

    /// Is set when nobody waits for the call any more.
    pub(crate) fn is_dropped(&self) -> &Arc<AtomicBool> {
        &self.mailbox.is_dropped
    }
}

impl fmt::Debug for StartedCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StartedCall")
            .field("number", &self.number)
            .finish_non_exhaustive()
    }
}
