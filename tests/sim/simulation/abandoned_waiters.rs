//! A long queue: thousands of waiters of one lock, each of which takes it once.

use super::Simulation;
use crate::checker::Invariant;
use crate::clock::{MICROS, SECONDS};
use crate::node::Ability;
use crate::options::{BrokenAssumption, Options};
use crate::queue::Event;
use crate::random::Random;
use crate::worker::Worker;

/// Clients, and waiters of each. The waiters share the connections of their client, and no wait
/// queue: each has its own entry on the nodes.
const CLIENTS: usize = 50;
const WAITERS: usize = 200;

/// The pause between two that begin to wait: longer than a round, so that their order is known.
const PAUSE: u64 = 150 * MICROS;

/// The most commands to all nodes for each waiter, greeting and renewals included.
const COMMANDS_MAX: u64 = 45;

impl Simulation {
    /// Serves all of them, in order.
    pub(crate) fn run_abandoned_waiters(seed: u64) -> Vec<(Invariant, String)> {
        let mut random = Random::new(seed);
        let mut options = Options::draw(&mut random, BrokenAssumption::NoneQuiet, None);
        (options.nodes, options.clients, options.workers) = (3, CLIENTS, 0);
        (
            options.resources,
            options.is_lined,
            options.queueing.abandons_waiters,
        ) = (1, false, true);
        (
            options.fence_permille,
            options.patient_permille,
            options.extend_permille,
        ) = (0, 1_000, 0);
        options.queueing.abilities.fill(Ability::All);
        (options.split_permille, options.queueing.sweep) = (0, 5 * SECONDS);
        (options.ttl, options.hides_info) = ((3_000, 3_000), false);
        options.delay = (20 * MICROS, 40 * MICROS);
        let mut simulation = Self::with(options, random, false);
        simulation.context.network.end_faults();
        for waiter in 0..CLIENTS * WAITERS {
            let client = waiter % CLIENTS;
            let worker = waiter / CLIENTS;
            simulation.clients[client].workers.push(Worker::new(worker));
            let event = Event::Work {
                client,
                life: 0,
                worker,
            };
            simulation
                .context
                .queue
                .at(PAUSE * (waiter as u64 + 1), event);
        }
        let waiters = (CLIENTS * WAITERS) as u64;
        simulation.run_until(200 * SECONDS, |it| {
            it.context.tally.grants == waiters && it.workers(|worker| !worker.is_done()) == 0
        });
        let now = simulation.context.queue.now();
        let tally = &simulation.context.tally;
        eprintln!(
            "{} of {waiters} waiters after {} ms, {} commands, {} pushes, {} events",
            tally.grants,
            now / 1_000_000,
            tally.commands,
            tally.pushes,
            tally.events
        );
        assert_eq!(tally.grants, waiters, "all are served");
        assert!(
            tally.commands <= COMMANDS_MAX * waiters,
            "{} commands",
            tally.commands
        );
        simulation.context.checker.conclude(now);
        simulation.context.checker.violations
    }
}
