//! What a client is given from outside: its wall clock, a pause, its death, or peace, when nobody
//! wants anything of it any more.

use super::{Client, Link};
use crate::clock::MICROS;
use crate::sabotage::Sabotage;
use crate::stage::Stage;
use crate::worker::Worker;
use redlatch::internal::engine::Node;

/// When histories begin, by a good wall clock.
const WALL: u64 = 1_700_000_000_000_000;

impl Client {
    /// Microseconds since 1970, as far as it knows.
    pub(crate) fn wall(&self, stage: &Stage) -> u64 {
        WALL + self.wall_offset + stage.queue.now() / MICROS
    }

    /// Nobody asks for anything any more: takes in what has come, and lets time do its work.
    pub(crate) fn settle(&mut self, stage: &mut Stage) {
        self.take_in(stage);
        if !stage.options.has(Sabotage::TimeoutIgnored) {
            self.rounds.tick(self.now(stage));
        }
        self.flush(stage);
    }

    /// How many commands are unanswered and how many removals owed, at all nodes, and how many
    /// threads still wait.
    pub(crate) fn load(&mut self) -> (usize, usize, usize) {
        let loads: Vec<_> =
            (0..self.links.len()).map(|node| self.rounds.session(Node::new(node)).load()).collect();
        let (in_flight, pending_releases): (Vec<usize>, Vec<usize>) = loads.into_iter().unzip();
        (in_flight.iter().sum(), pending_releases.iter().sum(), self.rounds.waiters().count())
    }

    /// It stops for a while: no thread runs.
    pub(crate) fn pause(&mut self, stage: &mut Stage, pause: u64) {
        let now = stage.queue.now();
        self.paused_until = now + pause;
        self.paused += pause;
        if stage.options.sabotage == Some(Sabotage::ClockStopsInSuspend) {
            self.clock.stop(pause);
            stage.checker.stood_still(self.name, now, pause);
        }
    }

    /// It is killed: its kernel closes its connections, if that has not died as well.
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
