//! The event loop of a client of a ZooKeeper ensemble: all its locks over one connection at a time.
//! It decides nothing about locks: [`Keeper`] knows what to write and what the replies mean.

use super::connection::Connection;
use super::follower::Follower;
use super::leader_followers::EventLoop;
use super::servers::Servers;
use super::sockets::PolledSockets;
use crate::clock::{self, Time};
use crate::engine::Token;
use crate::zookeeper::contender::Plan;
use crate::zookeeper::keeper::{Keeper, Loss, Outcome};
use crate::zookeeper::message::Request;
use mio::Waker;
use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// Called when a lock that was held is lost.
pub(crate) type OnLoss = Box<dyn Fn(Loss) + Send>;

/// What a caller waits for: see the methods of [`Keeper`](crate::zookeeper::keeper::Keeper).
pub(crate) enum KeeperOrder {
    Contend {
        token: Token,
        plan: Box<Plan>,
        /// For how long it is held, once granted.
        hold: Duration,
        until: Time,
    },
    /// Wait on for a lock that was contended for.
    Wait {
        token: Token,
        until: Time,
    },
    /// A held lock changes hands within this client.
    TakeOver {
        token: Token,
        end: Time,
    },
    /// Is it held? Then until this time at least.
    Check {
        token: Token,
        end: Time,
        until: Time,
    },
    Release {
        token: Token,
        until: Time,
    },
    Ask {
        requests: Vec<Request>,
        until: Time,
    },
}

impl KeeperOrder {
    /// When the caller expects the outcome at the latest.
    pub(super) fn until(&self) -> Option<Time> {
        match self {
            Self::Contend { until, .. }
            | Self::Wait { until, .. }
            | Self::Check { until, .. }
            | Self::Release { until, .. }
            | Self::Ask { until, .. } => Some(*until),
            Self::TakeOver { .. } => None,
        }
    }
}

/// What needs no outcome.
pub(crate) enum KeeperMessage {
    /// Give a lock up, or the wait for it.
    GiveUp(Token),
    /// A lock that was given up stays until this time.
    Leave(Token, Time),
    /// Tell of the loss of this lock; at once if it is not held any more.
    Watch(Token, OnLoss),
    /// End the waits of one caller, or of all, now and from now on.
    EndWaits(Option<Token>),
}

/// The locks of a client, and who waits for what of them.
pub(super) type ClientKeeper = Keeper<Arc<Follower<Outcome>>>;

/// The sockets, and the locks over them.
pub(super) struct KeeperLoop {
    sockets: PolledSockets,
    servers: Servers,
    /// Whom to tell of the loss of a lock.
    on_loss: HashMap<Token, OnLoss>,
    /// For how long the servers are waited for when the client is dropped.
    linger: Duration,
    is_poisoned: bool,
}

impl KeeperLoop {
    /// An event loop without a connection, and its waker.
    pub(super) fn new(
        connections: Vec<Connection>,
        servers: Servers,
        linger: Duration,
    ) -> io::Result<(Self, Arc<Waker>)> {
        let (sockets, waker) = PolledSockets::new(connections)?;
        let on_loss = HashMap::new();
        Ok((Self { sockets, servers, on_loss, linger, is_poisoned: false }, waker))
    }

    fn keeper(&mut self) -> &mut ClientKeeper {
        self.servers.keeper()
    }

    /// Tells of lost locks, and delivers the outcomes. Returns whether there were any.
    fn deliver(&mut self) -> bool {
        self.servers.follow_session();
        // First: a thread that gets an outcome must not take a lost lock for held.
        while let Some((token, loss)) = self.keeper().poll_loss() {
            if let Some(on_loss) = self.on_loss.remove(&token) {
                on_loss(loss);
            }
        }
        let mut is_any = false;
        while let Some((follower, outcome)) = self.keeper().poll() {
            follower.deliver(outcome);
            is_any = true;
        }
        is_any
    }

    /// Waits for events for up to `timeout`, and takes in what has arrived.
    fn read(&mut self, timeout: Option<Duration>) {
        if self.sockets.wait(&mut self.servers, timeout) {
            self.sockets.read_all(&mut self.servers);
        }
    }

    /// Waits until the ensemble has confirmed what was written last, for up to `linger`.
    fn wait_for_the_end(&mut self) {
        let end = clock::now().after(self.linger);
        loop {
            self.flush();
            let now = clock::now();
            if now >= end || !self.keeper().is_leaving() {
                return;
            }
            self.read(Some(end.since(now)));
            self.tick(clock::now());
        }
    }

    fn tick(&mut self, now: Time) {
        self.keeper().tick(now);
    }
}

impl EventLoop for KeeperLoop {
    type Order = KeeperOrder;
    type Message = KeeperMessage;
    type Outcome = Outcome;

    /// The thread that runs this is the only one, and has missed nothing.
    fn take_over(&mut self) {}

    fn catch_up(&mut self) {}

    fn open(&mut self, order: KeeperOrder, follower: Arc<Follower<Outcome>>) {
        let (keeper, now) = (self.servers.keeper(), clock::now());
        match order {
            KeeperOrder::Contend { token, plan, hold, until } => {
                keeper.contend(now, token, *plan, hold, (follower, until));
            }
            KeeperOrder::Wait { token, until } => keeper.wait(now, token, until, follower),
            KeeperOrder::TakeOver { token, end } => keeper.take_over(now, token, end, follower),
            KeeperOrder::Check { token, end, until } => {
                keeper.check(now, token, end, until, follower);
            }
            KeeperOrder::Release { token, until } => {
                self.on_loss.remove(&token);
                keeper.release(now, token, until, follower);
            }
            KeeperOrder::Ask { requests, until } => keeper.ask(now, requests, until, follower),
        }
        self.deliver();
    }

    fn post(&mut self, message: KeeperMessage) {
        let (keeper, now) = (self.servers.keeper(), clock::now());
        match message {
            KeeperMessage::GiveUp(token) => {
                self.on_loss.remove(&token);
                keeper.give_up(now, token);
            }
            KeeperMessage::Leave(token, end) => {
                self.on_loss.remove(&token);
                keeper.leave(now, token, end);
            }
            KeeperMessage::Watch(token, on_loss) if keeper.is_held(&token) => {
                self.on_loss.insert(token, on_loss);
            }
            KeeperMessage::Watch(_, on_loss) => on_loss(Loss::Gone),
            KeeperMessage::EndWaits(token) => keeper.end_waits(token),
        }
        self.deliver();
    }

    fn flush(&mut self) -> bool {
        self.sockets.flush(&mut self.servers);
        self.deliver()
    }

    fn run_once(&mut self, may_sleep: impl FnOnce() -> bool) {
        let is_decided = self.flush();
        let timeout = if is_decided || !may_sleep() {
            Some(Duration::ZERO)
        } else {
            let deadline = self.keeper().next_deadline();
            self.sockets.until(deadline)
        };
        self.read(timeout);
        self.tick(clock::now());
        self.deliver();
    }

    fn set_poisoned(&mut self) {
        self.is_poisoned = true;
    }

    fn next_follower(&self) -> Option<&Arc<Follower<Outcome>>> {
        self.servers.waiters().next()
    }
}

impl Drop for KeeperLoop {
    fn drop(&mut self) {
        if !self.is_poisoned {
            self.keeper().close(clock::now());
            self.wait_for_the_end();
        }
        self.sockets.close();
    }
}
