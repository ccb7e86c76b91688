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

mod ahead;
mod fate;

use crate::checker::Invariant;
use crate::clock::{Clock, MILLIS};
use crate::network::{Read, Setup, Side};
use crate::options::Options;
use crate::queue::Event;
use crate::sabotage::Sabotage;
use crate::stage::Stage;
use crate::worker::Worker;
use redlatch::internal::Time;
use redlatch::internal::engine::{Drift, Node, Request, Rules};
use redlatch::internal::node::{
    Credentials, DEBTS_MAX, IN_FLIGHT_MAX, NodeError, Phase, Rounds, Session, SessionOptions,
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
    pub(crate) fn new(name: (usize, u64), clock: Clock, stage: &mut Stage) -> Self {
        let Options { nodes, node_timeout, .. } = stage.options;
        let factor = match stage.options.sabotage {
            Some(Sabotage::DriftIgnored) => 0.0,
            _ => 0.01,
        };
        let mut rules = Rules::new(nodes, Drift::from_factor(factor).expect("within the limits"));
        rules.node_timeout = node_timeout;
        let quarantine = Duration::from_millis(stage.options.ttl.1);
        let sessions = (0..nodes).map(|node| {
            let mut options = SessionOptions::new(&format!("node {node}"), stage.random.number());
            options.patience = node_timeout;
            options.silence_max = node_timeout * 10;
            let password = stage.options.password.map(str::as_bytes);
            options.credentials = Credentials::new(None, password, 0, None);
            options.quarantine = stage.options.restart_guard.then_some(quarantine);
            Session::new(options)
        });
        let sessions = sessions.collect();
        let walls_apart = stage.options.walls_apart;
        Self {
            name,
            clock,
            wall_offset: stage.random.below(walls_apart + 1),
            rules: Arc::new(rules),
            rounds: Rounds::new(sessions, stage.options.wait_for_all),
            links: vec![Link::None; nodes],
            workers: (0..stage.options.workers).map(Worker::new).collect(),
            is_alive: true,
            paused_until: 0,
            paused: 0,
            wakes_at: u64::MAX,
        }
    }

    /// Runs one of its threads, which is taken out of the client meanwhile, because it uses it.
    pub(crate) fn run_worker(&mut self, stage: &mut Stage, worker: usize) {
        let idle = Worker::new(worker);
        let mut running = std::mem::replace(&mut self.workers[worker], idle);
        running.work(self, stage);
        // Its round may have been decided at once.
        let mut handed = std::mem::replace(&mut self.workers[worker], running);
        self.workers[worker].take_handed(&mut handed);
    }

    pub(crate) fn now(&self, stage: &Stage) -> Time {
        self.clock.read(stage.queue.now())
    }

    fn is_driven(&self) -> bool {
        self.rounds.waiters().next().is_some()
    }

    /// A thread sends a request to all nodes and waits for the outcome.
    pub(crate) fn submit(&mut self, stage: &mut Stage, worker: usize, request: Request) {
        if !self.is_driven() {
            self.look(stage);
        }
        self.make_room(stage, &request);
        self.read_before(stage, &request);
        self.rounds.open(self.now(stage), request, worker);
        self.deliver(stage);
        self.go_on(stage);
    }

    /// A thread sends a request whose outcome nobody wants.
    pub(crate) fn post(&mut self, stage: &mut Stage, request: &Request) {
        self.make_room(stage, request);
        self.read_before(stage, request);
        self.rounds.post(self.now(stage), request);
        self.go_on(stage);
    }

    /// Something may have happened to a socket, or a time may have come.
    pub(crate) fn drive(&mut self, stage: &mut Stage) {
        if self.wakes_at <= stage.queue.now() {
            self.wakes_at = u64::MAX;
        }
        if !self.is_driven() {
            return;
        }
        self.take_in(stage);
        if stage.options.sabotage != Some(Sabotage::TimeoutIgnored) {
            self.rounds.tick(self.now(stage));
        }
        self.deliver(stage);
        self.go_on(stage);
    }

    /// Writes all pending output. If a round is open, schedules a wake-up at the next deadline.
    fn go_on(&mut self, stage: &mut Stage) {
        self.flush(stage);
        if !self.is_driven() {
            return;
        }
        let Some(deadline) = self.rounds.next_deadline() else { return };
        let now = stage.queue.now();
        // After a tick no deadline has passed, unless the client is one that forgets to tick.
        let due = self.clock.when(deadline);
        let wakes_at = if due > now { due } else { now + MILLIS };
        if wakes_at < self.wakes_at {
            self.wakes_at = wakes_at;
            let (client, life) = self.name;
            stage.queue.at(wakes_at, Event::Drive { client, life });
        }
    }

    fn take_in(&mut self, stage: &mut Stage) {
        for index in 0..self.links.len() {
            self.read(stage, index);
        }
    }

    fn read(&mut self, stage: &mut Stage, index: usize) {
        let (node, now) = (Node::new(index), self.now(stage));
        while let Link::Connected(connection) = self.links[index] {
            let most = match stage.random.chance(stage.options.split_permille) {
                true => stage.random.between(1, 12) as usize,
                false => 16 * 1024,
            };
            match stage.network.read(connection, Side::Client, most) {
                Read::Bytes(bytes) => {
                    self.rounds.received(now, node, bytes);
                    if self.rounds.session(node).is_down() {
                        stage.say(|| format!("client {:?} gives node {index} up", self.name));
                        return;
                    }
                }
                Read::Empty => return,
                Read::Finished => {
                    stage.say(|| format!("client {:?}: node {index} has closed", self.name));
                    let problem = NodeError::Disconnected("closed by the server".to_owned());
                    self.rounds.closed(now, node, problem);
                    return;
                }
            }
        }
    }

    fn flush(&mut self, stage: &mut Stage) {
        for index in 0..self.links.len() {
            self.align(stage, index);
            self.write(stage, index);
            let (in_flight, pending_releases) = self.rounds.session(Node::new(index)).load();
            if in_flight > IN_FLIGHT_MAX || pending_releases > DEBTS_MAX {
                let text =
                    format!("client {:?}: {in_flight} {pending_releases} at {index}", self.name);
                stage.checker.accuse(Invariant::Resources, text);
            }
        }
        self.deliver(stage);
    }

    /// Closes, opens or finishes opening the socket, as the session requires.
    fn align(&mut self, stage: &mut Stage, index: usize) {
        let (node, now) = (Node::new(index), self.now(stage));
        let (client, _) = self.name;
        let Stage { network, queue, random, .. } = stage;
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
                let problem = NodeError::Unreachable { kind, text: "refused".to_owned() };
                self.rounds.closed(now, node, problem);
            }
        }
    }

    fn write(&mut self, stage: &mut Stage, index: usize) {
        let Link::Connected(connection) = self.links[index] else { return };
        let session = self.rounds.session(Node::new(index));
        while !session.output().is_empty() {
            let most = match stage.random.chance(stage.options.split_permille / 2) {
                true => stage.random.between(1, 30) as usize,
                false => usize::MAX,
            };
            let bytes = &session.output()[..most.min(session.output().len())];
            let Stage { network, queue, random, .. } = stage;
            let written = network.send(queue, random, connection, Side::Node, bytes);
            if written == 0 {
                return;
            }
            session.wrote(written);
        }
    }

    /// Delivers the outcomes of decided rounds. Their threads wake up a little later.
    fn deliver(&mut self, stage: &mut Stage) {
        while let Some((worker, returns)) = self.rounds.poll() {
            let delay = stage.network.hitch(&mut stage.random);
            self.workers[worker].hand(returns, delay);
            let (client, life) = self.name;
            stage.queue.after(delay, Event::Work { client, life, worker });
        }
    }
}
