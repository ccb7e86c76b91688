//! What happens to a client from outside: its wall clock, pauses, its death, and the end of all
//! requests.

use super::{Client, Link};
use crate::clock::MICROS;
use crate::sabotage::Sabotage;
use crate::stage::Stage;
use crate::worker::Worker;
use redlatch::internal::engine::Node;

/// The begin of histories, by a correct wall clock.
const WALL: u64 = 1_700_000_000_000_000;

impl Client {
    /// Microseconds since 1970 by its wall clock.
    pub(crate) fn wall(&self, stage: &Stage) -> u64 {
        WALL + self.wall_offset + stage.queue.now() / MICROS
    }

    /// No thread requests anything any more: reads what has arrived, and processes deadlines.
    pub(crate) fn settle(&mut self, stage: &mut Stage) {
        self.take_in(stage);
        if !stage.options.has(Sabotage::TimeoutIgnored) {
            self.rounds.tick(self.now(stage));
        }
        self.flush(stage);
    }

    /// The number of unanswered commands and of pending releases on all nodes, and of waiting
    /// threads.
    pub(crate) fn load(&mut self) -> (usize, usize, usize) {
        let loads: Vec<_> =
            (0..self.links.len()).map(|node| self.rounds.session(Node::new(node)).load()).collect();
        let (in_flight, pending_releases): (Vec<usize>, Vec<usize>) = loads.into_iter().unzip();
        (in_flight.iter().sum(), pending_releases.iter().sum(), self.rounds.waiters().count())
    }

    /// Pauses the client: no thread runs.
    pub(crate) fn pause(&mut self, stage: &mut Stage, pause: u64) {
        let now = stage.queue.now();
        self.paused_until = now + pause;
        self.paused += pause;
        if stage.options.sabotage == Some(Sabotage::ClockStopsInSuspend) {
            self.clock.stop(pause);
            stage.checker.stood_still(self.name, now, pause);
        }
    }

    /// Kills the client: its kernel closes its connections, unless the machine has failed.
    pub(crate) fn die(&mut self, stage: &mut Stage) {
        self.is_alive = false;
        if self.workers.iter().any(Worker::is_holding) {
            stage.tally.fault("client dies holding");
        }
        stage.checker.died(self.name, stage.queue.now());
        let is_told = stage.random.chance(800);
        for link in &self.links {
            if let Link::Connecting(connection) | Link::Connected(connection) = *link {
                let Stage { network, queue, random, .. } = stage;
                if is_told {
                    network.close(queue, random, connection);
                } else {
                    network.swallow(connection);
                    network.connections[connection].is_abandoned = true;
                }
            }
        }
    }
}
