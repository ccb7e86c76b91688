//! One history, from its seed to the checker's result.
//!
//! In the first phase, all kinds of faults happen. Then the faults end: a random majority of the
//! nodes recovers, the others stay as they are, and all waiting threads must get their locks. When
//! no thread wants a lock any more, and all pending releases had time to be sent, no key of a
//! released lock may be left; and when all ttls have passed, no key at all.

mod calm;
mod faults;
mod strays;

use crate::chance::Random;
use crate::checker::Checker;
use crate::client::Client;
use crate::clock::{Clock, MILLIS, SECONDS};
use crate::network::{Setup, Side};
use crate::node::{Health, Node};
use crate::options::{Beyond, DRIFT_BOUND, Options};
use crate::queue::Event;
use crate::sabotage::Sabotage;
use crate::stage::Stage;
use crate::tally::Tally;

/// The result of a history.
#[derive(Debug)]
pub(crate) struct Verdict {
    pub(crate) checker: Checker,
    pub(crate) digest: u64,
    pub(crate) tally: Tally,
}

#[derive(Debug)]
pub(crate) struct Simulation {
    stage: Stage,
    nodes: Vec<Node>,
    clients: Vec<Client>,
}

impl Simulation {
    pub(crate) fn new(
        seed: u64,
        beyond: Beyond,
        sabotage: Option<Sabotage>,
        is_traced: bool,
    ) -> Self {
        let mut random = Random::new(seed);
        let options = Options::draw(&mut random, beyond, sabotage);
        let mut stage = Stage::new(options, random, is_traced);
        stage.say(|| format!("{:#?}", stage.options));
        let password = stage.options.password;
        let nodes = (0..stage.options.servers())
            .map(|index| Node::new(index, clock(&mut stage, false), password))
            .collect();
        let mut simulation = Self { stage, nodes, clients: Vec::new() };
        for index in 0..simulation.stage.options.clients {
            simulation.bear(index, 0);
        }
        let pause = simulation.stage.random.below(simulation.stage.options.fault_pause);
        simulation.stage.queue.after(pause, Event::Fault);
        simulation
    }

    pub(crate) fn run(mut self) -> Verdict {
        let (calm_at, events_max) = (self.stage.options.calm_at, self.stage.options.events_max);
        self.run_until(calm_at, |it| it.stage.tally.events >= events_max);
        let healed = self.heal();
        self.expect_locks();
        self.expect_nothing_forgotten(&healed);
        self.expect_nothing_under_way();
        self.stage.checker.conclude();
        let Stage { checker, digest, network, mut tally, .. } = self.stage;
        tally.faults("segment cut up", network.splits);
        tally.faults("segment late", network.tails);
        Verdict { checker, digest, tally }
    }

    /// Processes events until `end`, or until `is_enough`. Returns whether it was.
    fn run_until(&mut self, end: u64, is_enough: impl Fn(&Self) -> bool) -> bool {
        while let Some(event) = self.stage.queue.next_before(end) {
            self.happen(event);
            if is_enough(self) {
                return true;
            }
        }
        false
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Connected { connection } => self.connected(connection),
            Event::Arrive { connection, side } => self.arrive(connection, side),
            Event::Stray { stray } => self.stray(stray),
            Event::Drive { client, life } => self.drive(client, life),
            Event::Work { client, life, worker } => self.work(client, life, worker),
            Event::Fault => self.fault(),
            Event::Thaw { node } => self.thaw(node),
            Event::Restart { node } => self.restart(node),
            Event::Rebirth { client } => {
                let life = self.clients[client].name.1 + 1;
                self.bear(client, life);
            }
        }
        self.stage.count(match event {
            Event::Connected { connection } | Event::Arrive { connection, .. } => connection as u64,
            Event::Drive { client, .. } => 1_000 + client as u64,
            Event::Work { client, worker, .. } => 2_000 + (client * 10 + worker) as u64,
            _ => 3_000,
        });
    }

    fn bear(&mut self, index: usize, life: u64) {
        let clock = clock(&mut self.stage, true);
        let client = Client::new((index, life), clock, &mut self.stage);
        for worker in 0..client.workers.len() {
            let pause = self.stage.random.below(20 * MILLIS);
            self.stage.queue.after(pause, Event::Work { client: index, life, worker });
        }
        if index < self.clients.len() {
            self.clients[index] = client;
        } else {
            self.clients.push(client);
        }
    }

    fn connected(&mut self, connection: usize) {
        let entry = &mut self.stage.network.connections[connection];
        let (client, node) = (entry.client, self.stage.options.server(entry.node));
        if entry.is_abandoned {
            return;
        }
        if self.nodes[node].health == Health::Down {
            entry.setup = Setup::Refused;
        } else {
            entry.setup = Setup::Made;
            let name = self.clients[client].name;
            self.nodes[node].accept(&mut self.stage, connection, name);
        }
        self.drive(client, self.clients[client].name.1);
    }

    fn arrive(&mut self, connection: usize, side: Side) {
        self.stage.network.arrive(connection, side);
        let entry = &self.stage.network.connections[connection];
        let (client, is_abandoned) = (entry.client, entry.is_abandoned);
        let node = self.stage.options.server(entry.node);
        if side == Side::Node {
            self.nodes[node].serve(&mut self.stage, connection);
        }
        // Bytes have arrived, or there may be room for more.
        if !is_abandoned && (side == Side::Client || self.stage.options.window < 1_000) {
            self.drive(client, self.clients[client].name.1);
        }
    }

    fn drive(&mut self, client: usize, life: u64) {
        if self.runs(client, life, Event::Drive { client, life }) {
            self.clients[client].drive(&mut self.stage);
        }
    }

    fn work(&mut self, client: usize, life: u64, worker: usize) {
        if self.runs(client, life, Event::Work { client, life, worker }) {
            self.clients[client].run_worker(&mut self.stage, worker);
        }
    }

    /// Is this client alive and running? If it is paused, `event` is repeated when it resumes.
    fn runs(&mut self, client: usize, life: u64, event: Event) -> bool {
        let it = &self.clients[client];
        if !it.is_alive || it.name.1 != life {
            return false;
        }
        if it.paused_until > self.stage.queue.now() {
            self.stage.queue.at(it.paused_until, event);
            return false;
        }
        true
    }
}

/// A clock with a drift within the limit.
fn clock(stage: &mut Stage, is_clients: bool) -> Clock {
    let most = match stage.options.beyond {
        Beyond::ClientDrift if is_clients => 20 * DRIFT_BOUND,
        _ => stage.options.drift,
    };
    let drift = match stage.random.below(3) {
        0 => most,
        1 => -most,
        _ => stage.random.between(0, 2 * most as u64) as i64 - most,
    };
    Clock::new(stage.random.below(1_000) * SECONDS, drift)
}
