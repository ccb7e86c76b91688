//! The event loop of a client of a ZooKeeper ensemble: all its locks over one connection at a time.
//! It decides nothing about locks: [`Keeper`] knows what to write and what the replies mean.

use super::connection::Connection;
use super::follower::Follower;
use super::keeper_order::{KeeperMessage, KeeperOrder, OnLoss};
use super::leader_followers::EventLoop;
use super::servers::Servers;
use super::sockets::PolledSockets;
use crate::clock::{self, Time};
use crate::engine::Token;
use crate::zookeeper::keeper::{Keeper, Loss, Outcome};
use mio::Waker;
use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;

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
