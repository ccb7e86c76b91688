//! The event loop: a [`Conversation`] over the sockets of a client. It decides nothing: that knows
//! what to write and what the replies mean, and [`Driver`] in which order it is done.

use super::connection::NodeConnection;
use super::follower::Follower;
use super::leader_followers::{EventLoop, Wake};
use super::sockets::PolledSockets;
use super::{ConnectOptions, Endpoint};
use crate::clock;
use crate::engine::Node;
use crate::node::{Conversation, Driver};
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// The sockets, and what is said over them.
pub(super) struct SocketLoop<C: Conversation> {
    sockets: PolledSockets,
    conversation: C,
    /// Called before outcomes are delivered. A thread that gets an outcome may report next what
    /// this has told.
    tell: Box<dyn FnMut(&mut C) + Send>,
    drain_limits: DrainLimits,
    is_poisoned: bool,
}

/// How long the last drop waits.
#[derive(Clone, Copy, Debug)]
pub(super) struct DrainLimits {
    /// In all.
    pub(super) most: Duration,
    /// For the next reply.
    pub(super) next: Duration,
}

impl<C: Conversation> SocketLoop<C> {
    /// An event loop whose connections are not open yet, and what wakes it.
    pub(super) fn new(
        connections: Vec<NodeConnection>,
        conversation: C,
        tell: Box<dyn FnMut(&mut C) + Send>,
        drain_limits: DrainLimits,
    ) -> io::Result<(Self, Wake)> {
        let (sockets, wake) = PolledSockets::new(connections)?;
        let socket_loop = Self {
            sockets,
            conversation,
            tell,
            drain_limits,
            is_poisoned: false,
        };
        Ok((socket_loop, wake))
    }

    fn driver(&mut self) -> Driver<'_, C, PolledSockets> {
        Driver::new(&mut self.conversation, &mut self.sockets)
    }

    /// Waits until the nodes have replied to what was written to them for good, removals above all.
    /// Without this wait, a server that finds the connection closed when it writes a reply would
    /// not read the remaining commands, and would keep the keys.
    fn drain(&mut self) {
        // First read: a node whose replies were not read yet is not silent.
        self.driver().read_all(Some(Duration::ZERO));
        let mut now = clock::now();
        let end = now.after(self.drain_limits.most);
        loop {
            self.driver().flush();
            if now >= end || !self.conversation.is_draining(now) {
                return;
            }
            let timeout = end.since(now).min(self.drain_limits.next);
            self.driver().read_all(Some(timeout));
            now = clock::now();
            self.conversation.tick(now);
        }
    }
}

impl<C, O> SocketLoop<C>
where
    C: Conversation<Outcome = O, Waiter = Arc<Follower<O>>>,
{
    /// Delivers the outcomes that there are. Returns whether there were any.
    fn deliver(&mut self) -> bool {
        (self.tell)(&mut self.conversation);
        let mut is_any = false;
        while let Some((follower, outcome)) = self.conversation.poll() {
            follower.deliver(outcome);
            is_any = true;
        }
        is_any
    }
}

impl<C, O> EventLoop for SocketLoop<C>
where
    C: Conversation<Outcome = O, Waiter = Arc<Follower<O>>>,
{
    type Order = C::Order;
    type Message = C::Message;
    type Outcome = O;

    fn take_over(&mut self) {
        self.driver().take_over();
        self.deliver();
    }

    fn catch_up(&mut self) {
        self.driver().catch_up();
    }

    fn open(&mut self, order: C::Order, follower: Arc<Follower<O>>) {
        self.driver().open(order, follower);
        self.deliver();
    }

    fn post(&mut self, message: C::Message) {
        self.driver().post(message);
    }

    fn flush(&mut self) -> bool {
        self.driver().flush();
        self.deliver()
    }

    fn run_once(&mut self, may_sleep: impl FnOnce() -> bool) {
        // Writing decides a round if it finds the connection broken. If that was the leader's own
        // round, no event may follow, and a leader that slept would sleep for ever.
        let is_decided = self.flush();
        let timeout = if is_decided || !may_sleep() {
            Some(Duration::ZERO)
        } else {
            self.sockets.until(self.conversation.next_deadline())
        };
        let mut driver = self.driver();
        driver.read_all(timeout);
        driver.tick();
        self.deliver();
    }

    fn set_poisoned(&mut self) {
        self.is_poisoned = true;
    }

    fn next_follower(&self) -> Option<&Arc<Follower<O>>> {
        self.conversation.next_waiter()
    }
}

impl<C: Conversation> Drop for SocketLoop<C> {
    fn drop(&mut self) {
        if !self.is_poisoned {
            // Pending output, removals above all, is written now or never.
            self.driver().flush();
            self.conversation.close(clock::now());
            self.drain();
        }
        self.sockets.close();
    }
}

/// A connection that is not open yet to each of these nodes.
pub(super) fn connections(
    endpoints: Vec<Endpoint>,
    options: ConnectOptions,
) -> Vec<NodeConnection> {
    let mut connections = Vec::new();
    for (index, endpoint) in endpoints.into_iter().enumerate() {
        connections.push(NodeConnection::new(Node::new(index), endpoint, options));
    }
    connections
}
