//! The second phase of a history: the faults are over, and the guarantees for that are checked.

use super::Simulation;
use crate::checker::{Invariant, Name};
use crate::clock::{MILLIS, SECONDS};
use crate::node::{Health, Memory};
use crate::worker::Worker;
use redlatch_protocol::engine::quorum;

impl Simulation {
    /// Ends the faults. Returns the nodes that work from now on.
    pub(super) fn heal(&mut self) -> Vec<usize> {
        let now = self.context.queue.now();
        self.context.has_faults_ended = true;
        self.context.network.end_faults();
        let least = quorum(self.context.options.nodes) as u64;
        let is_grouped = self.context.options.groups.is_some();
        let count = if is_grouped {
            self.context.options.nodes
        } else {
            self.nodes.len()
        };
        let most = if self.context.options.heals_least {
            least
        } else {
            count as u64
        };
        let healed = self.context.random.between(least, most.max(least)) as usize;
        let nodes = self.context.random.subset(count, healed);
        self.context
            .trace(|| format!("faults are over: nodes {nodes:?} work from now on"));
        self.heal_groups();
        let nodes = self.masters(nodes);
        for node in &nodes {
            if self.nodes[*node].health == Health::Down {
                self.nodes[*node].restart(now, Memory::All);
            }
            self.nodes[*node].refuse(None, 0);
            self.nodes[*node].thaw(&mut self.context);
        }
        nodes
    }

    /// All waiting threads must get their locks. Those that use registers need nodes with votes.
    pub(super) fn expect_locks(&mut self, healed: &[usize]) {
        let waiting = self.workers(Worker::is_acquiring);
        let options = &self.context.options;
        let reconnect = options.node_timeout.as_nanos() as u64 * 11 + SECONDS;
        let guard = options.quarantine().map_or(0, |it| {
            it.as_nanos() as u64 * 12 / 10 + SECONDS + 2 * MILLIS
        });
        // A late command may set a key again that no client removes any more.
        let late = match self
            .context
            .held_until
            .checked_sub(self.context.queue.now())
        {
            Some(left) => left + options.longest_life(),
            None => 0,
        };
        let budget =
            late + options.longest_life() + guard + reconnect + SECONDS + waiting * SECONDS;
        // Waiters that died, or whose late bytes brought them back, are before the others until
        // their leases have expired.
        let budget = budget + 2 * options.queueing.front_lease();
        let end = self.context.queue.now() + budget;
        let have_votes = self.have_votes(healed);
        let are_done = self.run_until(end, |it| it.workers(|worker| !worker.is_done()) == 0);
        if !are_done && have_votes {
            let alive = self.clients.iter().filter(|client| client.is_alive);
            let left: Vec<&Worker> = alive
                .flat_map(|client| &client.workers)
                .filter(|worker| !worker.is_done())
                .collect();
            self.context.trace(|| format!("{left:#?}"));
            let left = left.len();
            let text = format!(
                "{left} of {waiting} that waited are not done after {budget} ns without faults"
            );
            self.context
                .checker
                .report_violation(Invariant::Liveness, text);
        }
    }

    /// Pending releases must be sent, and remaining keys must expire.
    pub(super) fn expect_nothing_forgotten(&mut self, healed: &[usize]) {
        let silence = self.context.options.node_timeout.as_nanos() as u64 * 11;
        self.run_until(self.context.held_until, |_| false);
        let end = self.context.queue.now() + 3 * SECONDS + silence;
        // Bytes in flight arrive within a second.
        self.run_until(self.context.queue.now() + SECONDS, |_| false);
        while self.left_over(healed).is_some() && self.context.queue.now() < end {
            self.run_until(self.context.queue.now() + 100 * MILLIS, |_| false);
        }
        if let Some((node, token)) = self.left_over(healed) {
            let text = format!("node {node} keeps {token:?}, which was released");
            self.context
                .checker
                .report_violation(Invariant::Residue, text);
        }
        let later = self.context.queue.now() + self.context.options.longest_life();
        let lease = self.context.options.queueing.longest_lease() + 2 * MILLIS;
        let no_waiter = self.context.queue.now() + lease;
        for node in healed {
            for key in self.nodes[*node].keys_of_queues(no_waiter) {
                let text = format!("node {node} keeps {} for ever", key.escape_ascii());
                self.context
                    .checker
                    .report_violation(Invariant::Residue, text);
            }
            for key in self.nodes[*node].shared_locks(later) {
                let text = format!("node {node} keeps holders of {}", key.escape_ascii());
                self.context
                    .checker
                    .report_violation(Invariant::Residue, text);
            }
            for (_, token) in self.nodes[*node].locks(later) {
                let text = format!("node {node} keeps {token:?} for ever");
                self.context
                    .checker
                    .report_violation(Invariant::Residue, text);
            }
        }
    }

    /// A key that should be gone.
    fn left_over(&self, healed: &[usize]) -> Option<(usize, Name)> {
        let now = self.context.queue.now();
        healed.iter().find_map(|node| {
            let mut locks = self.nodes[*node]
                .locks(now)
                .into_iter()
                .map(|(_, token)| token);
            let found = locks.find(|token| self.context.checker.is_left_over(*token))?;
            Some((*node, found))
        })
    }

    /// When no thread requests anything any more, unanswered commands and pending releases must
    /// end, because they succeed or because their time is over.
    pub(super) fn expect_nothing_under_way(&mut self) {
        self.context.is_over = true;
        let silence = self.context.options.node_timeout.as_nanos() as u64 * 11;
        // First unanswered commands time out, then their pending releases, then the connection.
        for _ in 0..3 {
            let options = &self.context.options;
            let pause = options.longest_life().max(options.queueing.longest_lease()) + silence;
            self.run_until(self.context.queue.now() + pause, |_| false);
            for client in self.clients.iter_mut().filter(|client| client.is_alive) {
                client.settle(&mut self.context);
            }
        }
        for client in self.clients.iter_mut().filter(|client| client.is_alive) {
            let waiters = client.queue_load();
            if waiters != (0, 0) {
                let text = format!("client {:?} ends with {waiters:?} waiters", client.name);
                self.context
                    .checker
                    .report_violation(Invariant::Resources, text);
            }
            let load = client.load();
            if load != (0, 0, 0) {
                let text = format!("client {:?} ends with {load:?} under way", client.name);
                self.context
                    .checker
                    .report_violation(Invariant::Resources, text);
            }
        }
    }

    pub(super) fn workers(&self, is_one: impl Fn(&Worker) -> bool) -> u64 {
        let alive = self.clients.iter().filter(|client| client.is_alive);
        alive
            .flat_map(|client| &client.workers)
            .filter(|worker| is_one(worker))
            .count() as u64
    }
}
