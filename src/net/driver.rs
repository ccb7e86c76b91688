//! The sockets of all nodes and one poll over them. It decides nothing about locks: what to write
//! and what the replies mean is for [`Rounds`] to say.

use super::change_queue::ChangeQueue;
use super::follower::Follower;
use super::leader_followers::Drive;
use super::link::Link;
use super::resolver::Resolver;
use crate::clock::{self, Time};
use crate::engine::{NODES_MAX, Node, Request};
use crate::node::{NodeStatus, Returns, Rounds};
use crate::node_url::Address;
use mio::{Events, Poll, Token, Waker};
use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::time::Duration;

/// The waker's token, behind those of all nodes.
const WAKER: Token = Token(NODES_MAX);

/// As much as one read takes in. Answers to lock commands have a few bytes each.
const READ_SIZE: usize = 16 * 1024;

/// For how long it is good enough to know what had arrived. What comes later than that, and before
/// the next request is written, must be noticed as such: it is no answer to it. Within so short a
/// time, that is, about a round trip, nothing can tell it from an answer anyway.
const NOTED_FOR: Duration = Duration::from_millis(1);

/// For how many rounds it is waited at most for nodes that answer, when the connections are closed.
/// What there is no room for on a connection takes several.
pub(super) const LINGER_ROUNDS: u32 = 10;

/// What a request came to.
#[derive(Debug)]
pub(crate) struct Delivery {
    /// The votes.
    pub(crate) returns: Returns,
    /// How the client stands with the nodes, if that was what the request was about.
    pub(crate) statuses: Vec<NodeStatus>,
}

/// The sockets, and the rounds that run over them.
#[derive(Debug)]
pub(super) struct Driver {
    poll: Poll,
    events: Events,
    links: Vec<Link>,
    rounds: Rounds<Arc<Follower<Delivery>>>,
    resolver: Resolver,
    buffer: Box<[u8]>,
    /// When last it was noted what had arrived.
    noted_at: Time,
    /// How long a node may take to answer that it has removed what it was told to.
    patience: Duration,
    /// Where to leave what changes about the nodes, if somebody wants to know.
    mailbox: Option<Arc<ChangeQueue>>,
    is_abandoned: bool,
}

impl Driver {
    /// A driver without connections, and what wakes it.
    pub(super) fn new(
        links: Vec<Link>,
        rounds: Rounds<Arc<Follower<Delivery>>>,
        patience: Duration,
        mailbox: Option<Arc<ChangeQueue>>,
    ) -> io::Result<(Self, Arc<Waker>)> {
        let poll = Poll::new()?;
        let waker = Arc::new(Waker::new(poll.registry(), WAKER)?);
        let driver = Self {
            poll,
            events: Events::with_capacity(2 * NODES_MAX),
            links,
            rounds,
            resolver: Resolver::new(Arc::clone(&waker)),
            buffer: vec![0; READ_SIZE].into_boxed_slice(),
            noted_at: Time::ZERO,
            patience,
            mailbox,
            is_abandoned: false,
        };
        Ok((driver, waker))
    }

    /// Takes note of what has happened, waiting for it for up to `timeout`. Answers whether it
    /// could.
    fn note(&mut self, timeout: Option<Duration>) -> bool {
        let has_more = self.links.iter().any(Link::has_more);
        let timeout = if has_more { Some(Duration::ZERO) } else { timeout };
        let mut polled = self.poll.poll(&mut self.events, timeout);
        // A signal ends the wait early, and that is all right: whoever waits comes back, and
        // computes its time-out anew from deadlines that have not moved. But what has arrived must
        // be read before those are looked at, however long the signal stopped this thread.
        while polled.as_ref().is_err_and(|error| error.kind() == ErrorKind::Interrupted) {
            polled = self.poll.poll(&mut self.events, Some(Duration::ZERO));
        }
        // Any other error leaves the sockets unread, and the deadlines of their rounds end those.
        if polled.is_err() {
            return false;
        }
        for event in &self.events {
            if let Some(link) = self.links.get_mut(event.token().0) {
                link.note(event);
            }
        }
        self.noted_at = clock::now();
        while let Some((index, found)) = self.resolver.poll() {
            self.links[index].found(found, &mut self.rounds);
        }
        true
    }

    /// Takes in what has happened, waiting for it for up to `timeout`.
    fn take_in(&mut self, timeout: Option<Duration>) {
        if self.note(timeout) {
            for link in &mut self.links {
                link.read(&mut self.buffer, &mut self.rounds);
            }
        }
    }

    /// Waits until the nodes have carried out the removals that were written to them, but not for
    /// one that has been silent for too long, and not for ever for those that answer one by one. A
    /// server that finds the connection closed when it answers does not read what else is there,
    /// and keeps the keys that it was to remove.
    fn linger(&mut self) {
        // First: a node whose answers nobody has read yet is not silent.
        self.take_in(Some(Duration::ZERO));
        self.flush();
        let mut now = clock::now();
        let end = now.after(self.patience * LINGER_ROUNDS);
        while now < end && self.rounds.has_removals(now, self.patience) {
            self.take_in(Some(self.patience));
            self.flush();
            now = clock::now();
            self.rounds.tick(now);
        }
    }

    /// Where so much is unanswered that this request would be turned away, or left lying, looks
    /// whether that is only because nobody has taken in the answers: whoever drops one guard after
    /// another waits for none. If it is because the node is silent, this is where that is noticed:
    /// a round that is not sent may be over at once, and then nobody waits for anything.
    fn make_room(&mut self, request: &Request) {
        if self.rounds.is_crowded(request) {
            self.flush();
            self.take_in(Some(Duration::ZERO));
            self.rounds.tick(clock::now());
        }
    }

    /// Reads what arrived before this request is written, where it might be taken for the answer to
    /// it. A connection on which something came that answers nothing is given up by that.
    fn read_before(&mut self, request: &Request) {
        if clock::now().since(self.noted_at) >= NOTED_FOR {
            self.note(Some(Duration::ZERO));
        }
        for link in self.links.iter_mut().filter(|link| link.is_readable()) {
            if self.rounds.must_be_read_before(link.node(), request) {
                link.read(&mut self.buffer, &mut self.rounds);
            }
        }
    }

    /// Hands out what is finished, and says whether there was anything.
    fn deliver(&mut self) -> bool {
        let mut is_any = false;
        if let Some(mailbox) = &self.mailbox {
            // First: who is handed an outcome may look there next.
            while let Some(change) = self.rounds.poll_change() {
                mailbox.push(change);
            }
        }
        while let Some((seat, returns)) = self.rounds.poll() {
            // Only a ping wants to know about every node, and only a ping is never early.
            let is_ping = returns.is_ping;
            let statuses = if is_ping { self.rounds.status(clock::now()) } else { Vec::new() };
            seat.hand(Delivery { returns, statuses });
            is_any = true;
        }
        is_any
    }
}

impl Drive for Driver {
    type Request = Request;
    type Outcome = Delivery;

    fn look(&mut self) {
        self.note(Some(Duration::ZERO));
        // What must be known before anything is sent is which connections have ended. What else has
        // arrived can wait until a request is opened for which it matters.
        for link in self.links.iter_mut().filter(|link| link.is_finished()) {
            link.read(&mut self.buffer, &mut self.rounds);
        }
    }

    fn open(&mut self, request: Request, seat: Arc<Follower<Delivery>>) {
        self.make_room(&request);
        self.read_before(&request);
        self.rounds.open(clock::now(), request, seat);
        self.deliver();
    }

    fn post(&mut self, request: Request) {
        self.make_room(&request);
        self.read_before(&request);
        self.rounds.post(clock::now(), &request);
    }

    fn flush(&mut self) -> bool {
        for link in &mut self.links {
            link.align(&mut self.rounds, self.poll.registry(), &self.resolver);
            link.write(&mut self.rounds);
        }
        self.deliver()
    }

    fn step(&mut self, may_sleep: impl FnOnce() -> bool) {
        // If writing has decided a round, by finding its connection broken, whoever waited for that
        // may be the one who drives: nothing more will happen, and sleeping for it would take for
        // ever.
        let is_decided = self.flush();
        let timeout = if is_decided || !may_sleep() {
            Some(Duration::ZERO)
        } else {
            self.rounds.next_deadline().map(|deadline| deadline.since(clock::now()))
        };
        self.take_in(timeout);
        self.rounds.tick(clock::now());
        self.deliver();
    }

    fn abandon(&mut self) {
        self.is_abandoned = true;
    }

    fn waiter(&self) -> Option<&Arc<Follower<Delivery>>> {
        self.rounds.waiters().next()
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        if !self.is_abandoned {
            // What was put down to be written, removals above all: nobody will come who would
            // write it.
            self.flush();
            self.linger();
        }
        for link in &mut self.links {
            link.close(self.poll.registry());
        }
    }
}

/// A link without a socket for each of these nodes.
pub(super) fn links(addresses: Vec<Address>) -> Vec<Link> {
    let nodes = addresses.into_iter().enumerate();
    nodes.map(|(index, address)| Link::new(Node::new(index), address)).collect()
}
