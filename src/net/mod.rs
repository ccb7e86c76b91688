//! Sockets: the only place that knows of any.
//!
//! All threads of a client share one [`Net`]: N connections, one poll. A thread gives it a request
//! and gets what the request came to.
//!
//! | file | what it has |
//! |---|---|
//! | `turn`, `inbox`, `seat` | which thread reads and writes for all, and where the others wait |
//! | `batch` | many requests of one thread at a time |
//! | `drive` | what is driven: a trait, so that a model can take its place |
//! | `driver` | the poll, all sockets, the rounds that run over them |
//! | `link` | one node's socket, kept in step with what its session wants |
//! | `mailbox` | what has changed about the nodes, for those who listen |
//! | `stream` | the kinds of socket |
//! | `resolver` | names, away from the thread that drives |

mod batch;
mod drive;
mod driver;
mod inbox;
mod link;
mod mailbox;
mod resolver;
mod seat;
mod stream;
mod sync;
mod turn;

pub(crate) use driver::Delivery;
pub(crate) use mailbox::Mailbox;

use crate::endpoint::Address;
use crate::engine::Request;
use crate::node::{Rounds, Session};
use batch::Batch;
use driver::Driver;
use mio::Waker;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use turn::{Turn, Wake};

/// The connections of one client, shared by its threads.
#[derive(Debug)]
pub(crate) struct Net {
    turn: Turn<Driver, Arc<Waker>>,
}

impl Net {
    /// Connections to these nodes, made when they are needed. When this is dropped, it waits for up
    /// to `patience` for the nodes to answer that they have removed what they were told to. What
    /// changes about the nodes is left in the mailbox, if there is one; a node that has been silent
    /// for `patience` is slow.
    ///
    /// # Errors
    ///
    /// The operating system had no poll to give.
    pub(crate) fn new(
        nodes: Vec<(Address, Session)>,
        wait_for_all: bool,
        patience: Duration,
        mailbox: Option<Arc<Mailbox>>,
    ) -> io::Result<Self> {
        let (addresses, sessions) = nodes.into_iter().unzip();
        let mut rounds = Rounds::new(sessions, wait_for_all);
        if mailbox.is_some() {
            rounds.watch(patience);
        }
        let links = driver::links(addresses);
        let (driver, waker) = Driver::new(links, rounds, patience, mailbox)?;
        Ok(Self { turn: Turn::new(driver, waker) })
    }

    /// Puts a request to all nodes and waits until it is decided, or until its deadline.
    pub(crate) fn submit(&self, request: Request) -> Delivery {
        self.turn.submit(request)
    }

    /// Writes a request to all nodes without waiting for anything.
    pub(crate) fn post(&self, request: Request) {
        self.turn.post(request);
    }
}

/// Many requests of one thread at a time: begun one after another, and collected as they are
/// decided.
#[derive(Debug)]
pub(crate) struct Requests {
    net: Arc<Net>,
    batch: Batch<Delivery>,
}

impl Requests {
    pub(crate) fn new(net: Arc<Net>) -> Self {
        Self { batch: Batch::new(&net.turn), net }
    }

    /// Puts a request to all nodes, ahead of whatever is asked from now on, and hands out its
    /// number. Does not wait, and [`collect`](Self::collect) must follow without delay.
    pub(crate) fn begin(&mut self, request: Request) -> usize {
        self.batch.begin(&self.net.turn, request)
    }

    /// Waits until one of them is decided, or its deadline has come, and tells of each that is, by
    /// its number, what it came to. To be called again without delay as long as any is not.
    pub(crate) fn collect(&mut self, each: impl FnMut(usize, Delivery)) {
        self.batch.collect(&self.net.turn, each);
    }
}

impl Wake for Arc<Waker> {
    fn wake(&self) {
        // It fails only where the poll is gone, and then nobody sleeps in it.
        let _ = Waker::wake(self);
    }
}
