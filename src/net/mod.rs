//! Sockets: the only place that knows of any.
//!
//! All threads of a client share one [`Net`]: N connections, one poll. A thread gives it a request
//! and gets what the request came to.
//!
//! | file | what it has |
//! |---|---|
//! | `turn`, `hands` | which thread reads and writes for all |
//! | `inbox`, `seat` | where the others leave what they want, and wait |
//! | `service` | a thread that drives, for clients that want one |
//! | `batch` | many requests of one thread at a time |
//! | `drive` | what is driven: a trait, so that a model can take its place |
//! | `driver` | the poll, all sockets, the rounds that run over them |
//! | `link` | one node's socket, kept in step with what its session wants |
//! | `mailbox` | what has changed about the nodes, for those who listen |
//! | `stream` | the kinds of socket |
//! | `resolver` | names, away from the thread that drives |

mod batch;
mod change_queue;
mod drive;
mod driver;
mod follower;
mod inbox;
mod io_thread;
mod leader;
mod leader_followers;
mod link;
mod resolver;
mod stream;
mod sync;

pub(crate) use change_queue::ChangeQueue;
pub(crate) use driver::Delivery;

use crate::clock::{self, Time};
use crate::engine::{Request, Verb};
use crate::node::{NodeError, NodeStatus, Phase, Returns, Rounds, Session};
use crate::node_url::Address;
use batch::Batch;
use driver::{Driver, LINGER_ROUNDS};
use io_thread::IoThread;
use leader_followers::{LeaderFollowers, Wake};
use mio::Waker;
use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// How long after its deadline a round is waited for at most, where a thread of its own drives: it
/// ends the round at its deadline if it is not stopped, and this is what the scheduler may add.
const MARGIN: Duration = Duration::from_millis(20);

/// The connections of one client, shared by its threads.
#[derive(Debug)]
pub(crate) struct Net {
    turn: Arc<LeaderFollowers<Driver, Arc<Waker>>>,
    /// Dropped after what it drives. `None` if the callers drive.
    service: Option<IoThread>,
    /// What the nodes are called, in their order.
    names: Vec<Arc<str>>,
}

impl Net {
    /// Connections to these nodes, made when they are needed. When this is dropped, it waits for up
    /// to `patience` for the nodes to answer that they have removed what they were told to. What
    /// changes about the nodes is left in the mailbox, if there is one; a node that has been silent
    /// for `patience` is slow. If it `is_served`, a thread of its own drives.
    ///
    /// # Errors
    ///
    /// The operating system had no poll to give, or no thread.
    pub(crate) fn new(
        nodes: Vec<(Address, Session)>,
        wait_for_all: bool,
        patience: Duration,
        mailbox: Option<Arc<ChangeQueue>>,
        is_served: bool,
    ) -> io::Result<Self> {
        let (addresses, sessions): (_, Vec<Session>) = nodes.into_iter().unzip();
        let names = sessions.iter().map(|session| Arc::clone(session.name())).collect();
        let mut rounds = Rounds::new(sessions, wait_for_all);
        if mailbox.is_some() {
            rounds.watch(patience);
        }
        let links = driver::links(addresses);
        let (driver, waker) = Driver::new(links, rounds, patience, mailbox)?;
        let turn = Arc::new(LeaderFollowers::new(driver, waker, is_served));
        // The driver lingers before that thread ends.
        let longest = patience * LINGER_ROUNDS + MARGIN;
        let service = is_served.then(|| IoThread::start(&turn, longest)).transpose()?;
        Ok(Self { turn, service, names })
    }

    /// Puts a request to all nodes and waits until it is decided, or until its deadline.
    pub(crate) fn submit(&self, request: Request) -> Delivery {
        let (verb, limit) = (request.verb(), limit(&request));
        self.turn.submit(request, limit).unwrap_or_else(|| self.undelivered(verb))
    }

    /// Writes a request to all nodes without waiting for anything.
    pub(crate) fn post(&self, request: Request) {
        self.turn.post(request);
    }
}

impl Net {
    /// What is known of the nodes where nobody can ask.
    pub(crate) fn unknown(&self, problem: &NodeError) -> Vec<NodeStatus> {
        let names = self.names.iter();
        names.map(|name| NodeStatus::unknown(Arc::clone(name), problem.clone())).collect()
    }

    /// What a request comes to that the thread which drives has not come back with.
    fn undelivered(&self, verb: Verb) -> Delivery {
        let problem = NodeError::TimedOut(Phase::Queued);
        let is_ping = verb == Verb::Ping;
        let statuses = if is_ping { self.unknown(&problem) } else { Vec::new() };
        Delivery { returns: Returns::silence(&self.names, verb, &problem), statuses }
    }
}

impl Drop for Net {
    fn drop(&mut self) {
        if self.service.is_some() {
            self.turn.close();
        }
    }
}

/// For how long to wait for a request.
fn limit(request: &Request) -> Duration {
    request.deadline.since(clock::now()).saturating_add(MARGIN)
}

/// Many requests of one thread at a time: begun one after another, and collected as they are
/// decided.
#[derive(Debug)]
pub(crate) struct Requests {
    net: Arc<Net>,
    batch: Batch<Delivery>,
    /// What is not decided, by its number: until when to wait for it, and what it is.
    limits: HashMap<usize, (Time, Verb)>,
}

impl Requests {
    pub(crate) fn new(net: Arc<Net>) -> Self {
        Self { batch: Batch::new(&net.turn), net, limits: HashMap::new() }
    }

    /// Puts a request to all nodes, ahead of whatever is asked from now on, and hands out its
    /// number. Does not wait, and [`collect`](Self::collect) must follow without delay.
    pub(crate) fn begin(&mut self, request: Request) -> usize {
        let limit = (request.deadline.after(MARGIN), request.verb());
        let number = self.batch.begin(&self.net.turn, request);
        self.limits.insert(number, limit);
        number
    }

    /// Waits until one of them is decided, or its deadline has come, and tells of each that is, by
    /// its number, what it came to. To be called again without delay as long as any is not.
    pub(crate) fn collect(&mut self, mut each: impl FnMut(usize, Delivery)) {
        let Self { net, batch, limits } = self;
        let Some(first) = limits.values().map(|(limit, _)| *limit).min() else { return };
        let is_any = batch.collect(&net.turn, first.since(clock::now()), |number, delivery| {
            limits.remove(&number);
            each(number, delivery);
        });
        if is_any {
            return;
        }
        // The thread that drives has not come back with the first, nor with any other.
        let now = clock::now();
        limits.retain(|&number, (limit, verb)| {
            let is_over = *limit <= now;
            if is_over {
                batch.abandon(number);
                each(number, net.undelivered(*verb));
            }
            !is_over
        });
    }
}

impl Wake for Arc<Waker> {
    fn wake(&self) {
        // It fails only where the poll is gone, and then nobody sleeps in it.
        let _ = Waker::wake(self);
    }
}
