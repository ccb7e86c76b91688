//! A client: the library's own rounds and sessions, with an event loop like that of `src/net`, on
//! connections of the simulated network.
//!
//! As in `src/net/socket_loop.rs` and `connection.rs`, step by step: if there is no leader, a
//! request first polls the sockets; then it is opened, and from there to the end of the last open
//! round the event loop writes, waits, reads, ticks and delivers. While no thread waits for a
//! round, nothing is read, and arrived bytes stay in the socket. A posted request is only written,
//! at once.
//!
//! Differences: names need no resolving; which thread leads is not simulated (tests/leader_model
//! checks that with loom); a write takes as many bytes as the network has room for, and is repeated
//! with each turn of the loop instead of at the next event.

mod before_opening;
mod lifecycle;

use crate::checker::Invariant;
use crate::clock::{Clock, MILLIS};
use crate::context::Context;
use crate::mistake::Mistake;
use crate::network::{Read, Setup, Side};
use crate::options::Options;
use crate::queue::Event;
use crate::worker::Worker;
use redlatch::internal::Time;
use redlatch::internal::engine::{Drift, Node, QueueWait, Request, Rules, Token};
use redlatch::internal::node::{
    Credentials, IN_FLIGHT_MAX, NodeError, PENDING_MAX, Phase, Rounds, Session, SessionOptions,
};
use std::io;
use std::sync::Arc;
use std::time::Duration;

#[derive(Debug)]
pub(crate) struct Client {
    /// Its number, and how many clients had this number before it.
    pub(crate) name: (usize, u64),
    pub(crate) clock: Clock,
    pub(crate) rules: Arc<Rules>,
    pub(crate) workers: Vec<Worker>,
    pub(crate) is_alive: bool,
    /// Its waits are cancelled, and its threads begin nothing new.
    pub(crate) is_cancelled: bool,
    /// How many microseconds its wall clock is ahead.
    wall_offset: u64,
    /// Nothing of it runs before then.
    pub(crate) paused_until: u64,
    /// The total time of its pauses.
    pub(crate) paused: u64,
    rounds: Rounds<usize>,
    links: Vec<Link>,
    /// When the event loop will wake up.
    wakes_at: u64,
}

/// The connection to one node, open or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Link {
    None,
    Connecting(usize),
    Connected(usize),
}

impl Client {
    pub(crate) fn new(name: (usize, u64), clock: Clock, context: &mut Context) -> Self {
        let Options { nodes, node_timeout, .. } = context.options;
        let factor = match context.options.mistake {
            Some(Mistake::DriftIgnored) => 0.0,
            _ => 0.01,
        };
        let mut rules = Rules::new(nodes, Drift::from_factor(factor).expect("within the limits"));
        (rules.node_timeout, rules.connect_timeout) = (node_timeout, node_timeout * 10);
        let queues = !context.random.chance(context.options.queueing.unqueued_permille);
        rules.waiter_lease = context.options.queueing.waiter_lease.filter(|_| queues);
        let quarantine = Duration::from_millis(context.options.ttl.1);
        let sessions = (0..nodes).map(|node| {
            let mut options = SessionOptions::new(&format!("node {node}"), context.random.number());
            options.node_timeout = node_timeout;
            options.connect_timeout = rules.connect_timeout;
            options.silence_max = node_timeout * 10;
            let password = context.options.password.map(str::as_bytes);
            options.credentials = Credentials::new(None, password, 0, None);
            options.quarantine = context.options.restart_guard.then_some(quarantine);
            Session::new(options)
        });
        let sessions = sessions.collect();
        let walls_apart = context.options.walls_apart;
        Self {
            name,
            clock,
            wall_offset: context.random.below(walls_apart + 1),
            rules: Arc::new(rules),
            rounds: Rounds::new(sessions, context.options.wait_for_all),
            links: vec![Link::None; nodes],
            workers: (0..context.options.workers).map(Worker::new).collect(),
            is_alive: true,
            is_cancelled: false,
            paused_until: 0,
            paused: 0,
            wakes_at: u64::MAX,
        }
    }

    /// Runs one of its threads, which is taken out of the client meanwhile, because it uses it.
    pub(crate) fn run_worker(&mut self, context: &mut Context, worker: usize) {
        let idle = Worker::new(worker);
        let mut running = std::mem::replace(&mut self.workers[worker], idle);
        running.work(self, context);
        // Its round may have been decided at once.
        let mut handed = std::mem::replace(&mut self.workers[worker], running);
        self.workers[worker].take_handed(&mut handed);
    }

    pub(crate) fn now(&self, context: &Context) -> Time {
        self.clock.read(context.queue.now())
    }

    fn is_driven(&self) -> bool {
        self.rounds.waiters().next().is_some()
    }

    /// A thread sends a request to all nodes and waits for the outcome.
    pub(crate) fn submit(&mut self, context: &mut Context, worker: usize, request: Request) {
        if !self.is_driven() {
            self.look(context);
        }
        self.make_room(context, &request);
        self.read_before(context, &request);
        self.rounds.open(self.now(context), request, worker);
        self.deliver(context);
        self.go_on(context);
    }

    /// A thread waits in the nodes' queue.
    pub(crate) fn wait(&mut self, context: &mut Context, worker: usize, wait: &QueueWait) {
        if !self.is_driven() {
            self.look(context);
        }
        self.take_in(context);
        self.rounds.wait(self.now(context), wait, worker);
        self.deliver(context);
        self.go_on(context);
    }

    /// The waits of one waiter, or all, end.
    fn end_waits(&mut self, context: &mut Context, waiter: Option<Token>) {
        self.rounds.end_waits(waiter);
        self.deliver(context);
        self.go_on(context);
    }

    /// A thread sends a request without an outcome.
    pub(crate) fn post(&mut self, context: &mut Context, request: &Request) {
        self.make_room(context, request);
        self.read_before(context, request);
        self.rounds.post(self.now(context), request);
        self.deliver(context);
        self.go_on(context);
    }

    /// Something may have happened to a socket, or a time may have come.
    pub(crate) fn drive(&mut self, context: &mut Context) {
        if self.wakes_at <= context.queue.now() {
            self.wakes_at = u64::MAX;
        }
        if !self.is_driven() {
            return;
        }
        self.take_in(context);
        if context.options.mistake != Some(Mistake::TimeoutIgnored) {
            self.rounds.tick(self.now(context));
        }
        self.deliver(context);
        self.go_on(context);
    }

    /// Writes all pending output. If a round is open, schedules a wake-up at the next deadline.
    fn go_on(&mut self, context: &mut Context) {
        self.flush(context);
        if !self.is_driven() {
            return;
        }
        let Some(deadline) = self.rounds.next_deadline() else { return };
        let now = context.queue.now();
        // After a tick no deadline has passed, unless the client is one that forgets to tick.
        let due = self.clock.when(deadline);
        let wakes_at = if due > now { due } else { now + MILLIS };
        if wakes_at < self.wakes_at {
            self.wakes_at = wakes_at;
            let (client, life) = self.name;
            context.queue.at(wakes_at, Event::Drive { client, life });
        }
    }

    fn take_in(&mut self, context: &mut Context) {
        for index in 0..self.links.len() {
            self.read(context, index);
        }
    }

    fn read(&mut self, context: &mut Context, index: usize) {
        let (node, now) = (Node::new(index), self.now(context));
        while let Link::Connected(connection) = self.links[index] {
            let most = match context.random.chance(context.options.split_permille) {
                true => context.random.between(1, 12) as usize,
                false => 16 * 1024,
            };
            match context.network.read(connection, Side::Client, most) {
                Read::Bytes(bytes) => {
                    self.rounds.received(now, node, bytes);
                    if self.rounds.session(node).is_down() {
                        context.trace(|| format!("client {:?} gives node {index} up", self.name));
                        return;
                    }
                }
                Read::Empty => return,
                Read::Finished => {
                    context.trace(|| format!("client {:?}: node {index} has closed", self.name));
                    let error = NodeError::Disconnected("closed by the server".to_owned());
                    self.rounds.closed(now, node, error);
                    return;
                }
            }
        }
    }

    fn flush(&mut self, context: &mut Context) {
        for index in 0..self.links.len() {
            self.align(context, index);
            self.write(context, index);
            let (in_flight, pending_releases) = self.rounds.session(Node::new(index)).load();
            if in_flight > IN_FLIGHT_MAX || pending_releases > PENDING_MAX {
                let text =
                    format!("client {:?}: {in_flight} {pending_releases} at {index}", self.name);
                context.checker.report_violation(Invariant::Resources, text);
            }
        }
        self.deliver(context);
    }

    /// Closes, opens or finishes opening the socket, as the session requires.
    fn align(&mut self, context: &mut Context, index: usize) {
        let (node, now) = (Node::new(index), self.now(context));
        let (client, _) = self.name;
        let Context { network, queue, random, .. } = context;
        if self.rounds.session(node).is_down() {
            if let Link::Connecting(connection) | Link::Connected(connection) = self.links[index] {
                network.close(queue, random, connection);
                self.links[index] = Link::None;
            }
            if self.rounds.session(node).wants_connection(now) {
                self.rounds.session(node).connecting(now, Phase::Connecting);
                self.links[index] = Link::Connecting(network.connect(queue, random, client, index));
            }
            return;
        }
        let Link::Connecting(connection) = self.links[index] else { return };
        match network.connections[connection].setup {
            Setup::Pending => {}
            Setup::Made => {
                self.links[index] = Link::Connected(connection);
                self.rounds.session(node).connected(now);
            }
            Setup::Refused => {
                self.links[index] = Link::None;
                let kind = io::ErrorKind::ConnectionRefused;
                let error = NodeError::Unreachable { kind, text: "refused".to_owned() };
                self.rounds.closed(now, node, error);
            }
        }
    }

    fn write(&mut self, context: &mut Context, index: usize) {
        let Link::Connected(connection) = self.links[index] else { return };
        let session = self.rounds.session(Node::new(index));
        while !session.output().is_empty() {
            let most = match context.random.chance(context.options.split_permille / 2) {
                true => context.random.between(1, 30) as usize,
                false => usize::MAX,
            };
            let bytes = &session.output()[..most.min(session.output().len())];
            let Context { network, queue, random, .. } = context;
            let written = network.send(queue, random, connection, Side::Node, bytes);
            if written == 0 {
                return;
            }
            session.wrote(written);
        }
    }

    /// Delivers the outcomes of decided rounds. Their threads wake up a little later.
    fn deliver(&mut self, context: &mut Context) {
        while let Some((worker, result)) = self.rounds.poll() {
            let delay = context.network.scheduling_delay(&mut context.random);
            self.workers[worker].hand(result, delay);
            let (client, life) = self.name;
            context.queue.after(delay, Event::Work { client, life, worker });
        }
    }
}
