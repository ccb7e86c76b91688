//! One history, from its seed to the checker's result.
//!
//! In the first phase, all kinds of faults happen. Then the faults end: a random majority of the
//! nodes recovers, the others stay as they are, and all waiting threads must get their locks. When
//! no thread wants a lock any more, and all pending releases had time to be sent, no key of a
//! released lock may be left; and when all ttls have passed, no key at all.

mod abandoned_waiters;
mod faults;
mod groups;
mod idle_clients;
mod plain_set_clients;
mod recovery;
mod registers;
mod strays;

use crate::checker::Checker;
use crate::client::Client;
use crate::clock::{Clock, MILLIS, SECONDS};
use crate::context::Context;
use crate::mistake::Mistake;
use crate::network::{Setup, Side};
use crate::node::{Health, Node};
use crate::options::{BrokenAssumption, DRIFT_BOUND, Options};
use crate::queue::Event;
use crate::random::Random;
use crate::tally::Tally;
use groups::Groups;
use idle_clients::IdleClient;
use plain_set_clients::ForeignLock;
use std::time::Duration;

/// The result of a history.
#[derive(Debug)]
pub(crate) struct HistoryResult {
    pub(crate) checker: Checker,
    pub(crate) digest: u64,
    pub(crate) tally: Tally,
}

pub(crate) struct Simulation {
    context: Context,
    nodes: Vec<Node>,
    clients: Vec<Client>,
    foreign: Vec<ForeignLock>,
    idle_clients: Vec<IdleClient>,
    groups: Groups,
}

impl Simulation {
    pub(crate) fn new(
        seed: u64,
        broken_assumption: BrokenAssumption,
        mistake: Option<Mistake>,
        is_traced: bool,
    ) -> Self {
        let mut random = Random::new(seed);
        let mut options = Options::draw(&mut random, broken_assumption, mistake);
        // Not drawn: the histories of the other seeds are as they were without it.
        if seed % 4 == 1 && broken_assumption == BrokenAssumption::None && mistake.is_none() {
            options.examine_permille = 100;
        }
        Self::with(options, random, is_traced)
    }

    /// A history with these settings.
    pub(crate) fn with(options: Options, random: Random, is_traced: bool) -> Self {
        let mut context = Context::new(options, random, is_traced);
        context.trace(|| format!("{:#?}", context.options));
        let password = context.options.password;
        let groups = context.options.groups.as_ref();
        let size = groups.map_or(1, |groups| groups.size);
        let skew = groups.map_or(Duration::ZERO, |groups| groups.skew);
        let mut ahead = context.random.clone();
        let mut shown = clock(&mut context, false);
        let nodes = (0..context.options.servers())
            .map(|server| {
                let index = server / size;
                // The clocks of a group differ by no more than that.
                if server > 0 && server % size == 0 {
                    shown = clock(&mut context, false);
                }
                let ability = context.options.queueing.abilities[index];
                let mut own = shown;
                own.jump(ahead.below(skew.as_nanos() as u64));
                Node::new((index, server), own, password, ability)
            })
            .collect();
        let mut simulation = Self {
            context,
            nodes,
            clients: Vec::new(),
            foreign: Vec::new(),
            idle_clients: Vec::new(),
            groups: Groups::default(),
        };
        simulation.form_groups();
        for index in 0..simulation.context.options.clients {
            simulation.start_client(index, 0);
        }
        let pause = simulation
            .context
            .random
            .below(simulation.context.options.fault_pause);
        simulation.context.queue.after(pause, Event::Fault);
        simulation.start_idle_clients();
        simulation.form_registers();
        simulation
            .context
            .queue
            .after(simulation.context.options.queueing.sweep, Event::Sweep);
        simulation
    }

    pub(crate) fn run(mut self) -> HistoryResult {
        let faults_end_at = self.context.options.faults_end_at;
        let events_max = self.context.options.events_max;
        self.run_until(faults_end_at, |it| it.context.tally.events >= events_max);
        let healed = self.heal();
        self.expect_locks(&healed);
        self.expect_registers(&healed);
        self.expect_nothing_forgotten(&healed);
        self.expect_nothing_under_way();
        self.context.checker.conclude(self.context.queue.now());
        let Context {
            checker,
            digest,
            network,
            mut tally,
            ..
        } = self.context;
        tally.in_order = checker.order.checked;
        tally.shares_in_order = checker.order.checked_shares;
        tally.split_permits = checker.split_permits;
        tally.held = checker.held;
        if checker.order.soon.is_some() {
            tally.awaited_releases = checker.order.awaited_releases;
        }
        tally.faults("segment cut up", network.splits);
        tally.faults("segment late", network.tails);
        HistoryResult {
            checker,
            digest,
            tally,
        }
    }

    /// Processes events until `end`, or until `is_enough`. Returns whether it was.
    fn run_until(&mut self, end: u64, is_enough: impl Fn(&Self) -> bool) -> bool {
        while let Some(event) = self.context.queue.next_before(end) {
            self.process_event(event);
            if is_enough(self) {
                return true;
            }
        }
        false
    }

    fn process_event(&mut self, event: Event) {
        match event {
            Event::Connected { connection } => self.connected(connection),
            Event::Arrive { connection, side } => self.arrive(connection, side),
            Event::Stray { stray } => self.stray(stray),
            Event::Drive { client, life } => self.drive(client, life),
            Event::Work {
                client,
                life,
                worker,
            } => self.work(client, life, worker),
            Event::Fault => self.fault(),
            Event::Sweep => self.sweep(),
            Event::Foreign { turn } => self.foreign(turn),
            Event::Idle { turn } => self.idle(turn),
            Event::Thaw { node } => self.thaw(node),
            Event::Restart { node } => self.restart(node),
            Event::Replicate { server, link } => self.replicate(server, link),
            Event::Acked {
                server,
                link,
                offset,
            } => self.acknowledge(server, link, offset),
            Event::Follow { server } => self.follow(server),
            Event::Unblock { connection } => self.unblock(connection),
            Event::Rebirth { client } => {
                let life = self.clients[client].name.1 + 1;
                self.start_client(client, life);
            }
        }
        self.context.count(match event {
            Event::Connected { connection } | Event::Arrive { connection, .. } => connection as u64,
            Event::Drive { client, .. } => 1_000 + client as u64,
            Event::Work { client, worker, .. } => 2_000 + (client * 10 + worker) as u64,
            _ => 3_000,
        });
    }

    /// The servers remove expired keys, as Redis does ten times per second.
    fn sweep(&mut self) {
        self.context
            .queue
            .after(self.context.options.queueing.sweep, Event::Sweep);
        for node in &mut self.nodes {
            node.sweep(&mut self.context);
        }
    }

    fn start_client(&mut self, index: usize, life: u64) {
        let clock = clock(&mut self.context, true);
        let client = Client::new((index, life), clock, &mut self.context);
        for worker in 0..client.workers.len() {
            let pause = self.context.random.below(20 * MILLIS);
            self.context.queue.after(
                pause,
                Event::Work {
                    client: index,
                    life,
                    worker,
                },
            );
        }
        if index < self.clients.len() {
            self.clients[index] = client;
        } else {
            self.clients.push(client);
        }
    }

    fn connected(&mut self, connection: usize) {
        let entry = &self.context.network.connections[connection];
        let client = entry.client;
        let node = entry.node;
        if entry.is_abandoned {
            return;
        }
        let (node, epoch) = self.lead(node);
        let entry = &mut self.context.network.connections[connection];
        (entry.server, entry.epoch) = (Some(node), epoch);
        if self.nodes[node].health == Health::Down {
            entry.setup = Setup::Refused;
        } else {
            entry.setup = Setup::Made;
            let name = self.clients[client].name;
            self.nodes[node].accept(&mut self.context, connection, name);
        }
        self.drive(client, self.clients[client].name.1);
    }

    fn arrive(&mut self, connection: usize, side: Side) {
        self.context.network.arrive(connection, side);
        let entry = &self.context.network.connections[connection];
        let client = entry.client;
        let is_abandoned = entry.is_abandoned;
        if let Some(server) = entry.server.filter(|_| side == Side::Node) {
            self.nodes[server].serve(&mut self.context, connection);
            self.send_writes(server);
        }
        // Bytes have arrived, or there may be room for more.
        if !is_abandoned && (side == Side::Client || self.context.options.window < 1_000) {
            self.drive(client, self.clients[client].name.1);
        }
    }

    fn drive(&mut self, client: usize, life: u64) {
        if self.runs(client, life, Event::Drive { client, life }) {
            self.clients[client].drive(&mut self.context);
        }
    }

    fn work(&mut self, client: usize, life: u64, worker: usize) {
        if self.runs(
            client,
            life,
            Event::Work {
                client,
                life,
                worker,
            },
        ) {
            self.clients[client].run_worker(&mut self.context, worker);
        }
    }

    /// Is this client alive and running? If it is paused, `event` is repeated when it resumes.
    fn runs(&mut self, client: usize, life: u64, event: Event) -> bool {
        let it = &self.clients[client];
        if !it.is_alive || it.name.1 != life {
            return false;
        }
        if it.paused_until > self.context.queue.now() {
            self.context.queue.at(it.paused_until, event);
            return false;
        }
        true
    }
}

/// A clock with a drift within the limit.
fn clock(context: &mut Context, is_clients: bool) -> Clock {
    let most = match context.options.broken_assumption {
        BrokenAssumption::ClientDrift if is_clients => 20 * DRIFT_BOUND,
        _ => context.options.drift,
    };
    let drift = match context.random.below(3) {
        0 => most,
        1 => -most,
        _ => context.random.between(0, 2 * most as u64) as i64 - most,
    };
    Clock::new(context.random.below(1_000) * SECONDS, drift)
}
