//! The second part of a history: the faults are over, and what was promised for that comes true.

use super::Simulation;
use crate::checker::Invariant;
use crate::clock::SECONDS;
use crate::node::Health;
use crate::worker::Worker;
use redlatch::internal::engine::quorum;

impl Simulation {
    /// The faults end. Says which nodes work from now on.
    pub(super) fn heal(&mut self) -> Vec<usize> {
        let now = self.stage.queue.now();
        self.stage.is_calm = true;
        self.stage.network.calm();
        let mut nodes: Vec<usize> = (0..self.nodes.len()).collect();
        let least = quorum(nodes.len()) as u64;
        let healed = self.stage.random.between(least, nodes.len() as u64) as usize;
        while nodes.len() > healed {
            let other = self.stage.random.below(nodes.len() as u64) as usize;
            nodes.swap_remove(other);
        }
        self.stage.say(|| format!("calm: nodes {nodes:?} work from now on"));
        for node in &nodes {
            if self.nodes[*node].health == Health::Down {
                self.nodes[*node].restart(now, true);
            }
            self.nodes[*node].thaw(&mut self.stage);
        }
        nodes
    }

    /// Whoever waits gets its lock.
    pub(super) fn expect_locks(&mut self) {
        let waiting = self.workers(Worker::is_acquiring);
        let options = &self.stage.options;
        let reconnect = options.node_timeout.as_nanos() as u64 * 11 + SECONDS;
        let guard = if options.restart_guard { options.longest_life() + SECONDS } else { 0 };
        let budget = options.longest_life() + guard + reconnect + SECONDS + waiting * SECONDS;
        let end = self.stage.queue.now() + budget;
        if !self.run_until(end, |it| it.workers(|worker| !worker.is_done()) == 0) {
            let text = format!("{waiting} waited, and nobody disturbed them for {budget} ns");
            self.stage.checker.accuse(Invariant::Liveness, text);
        }
    }

    /// What is owed is paid, and what is left expires.
    pub(super) fn expect_nothing_forgotten(&mut self, healed: &[usize]) {
        let silence = self.stage.options.node_timeout.as_nanos() as u64 * 11;
        self.run_until(self.stage.queue.now() + 3 * SECONDS + silence, |_| false);
        let now = self.stage.queue.now();
        for node in healed {
            for token in self.nodes[*node].tokens(now) {
                self.stage.checker.left_over(*node, &token);
            }
        }
        let later = now + self.stage.options.longest_life();
        for node in healed {
            for token in self.nodes[*node].tokens(later) {
                let text = format!("node {node} keeps {token:?} for ever");
                self.stage.checker.accuse(Invariant::Liveness, text);
            }
        }
    }

    pub(super) fn workers(&self, is_one: impl Fn(&Worker) -> bool) -> u64 {
        let alive = self.clients.iter().filter(|client| client.is_alive);
        alive.flat_map(|client| &client.workers).filter(|worker| is_one(worker)).count() as u64
    }
}
