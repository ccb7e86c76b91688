//! What a history has to do with registers besides their users: a group at its beginning, which
//! nodes may lose their votes, and that registers can be read at its end.

use super::Simulation;
use crate::checker::Invariant;
use crate::clock::SECONDS;
use crate::register::{Call, formed, mark_key};
use redlatch_protocol::engine::quorum;
use redlatch_registers::{Epoch, Mark, MembershipView, NodeMark};

impl Simulation {
    /// Makes the nodes a group.
    pub(super) fn form_registers(&mut self) {
        let Some(registers) = &self.context.options.registers else {
            return;
        };
        let run_ids: Vec<String> = self.nodes.iter().map(|node| node.run_id.clone()).collect();
        let marks = formed(&run_ids, &registers.durable);
        for (node, mark) in self.nodes.iter_mut().zip(marks) {
            node.run_foreign_command(0, &[b"SET", &mark_key(), &mark]);
        }
    }

    /// Does this server keep all that it answers?
    pub(super) fn keeps_keys(&self, node: usize) -> bool {
        self.context
            .options
            .registers
            .as_ref()
            .is_some_and(|it| it.durable[node])
    }

    /// Has this node a vote, or will it get one without a repair?
    fn votes(&self, view: &MembershipView, seen: &NodeMark) -> bool {
        let Some(Mark::Member(member)) = seen.read() else {
            return false;
        };
        let is_same_run = member.run_id == *seen.run_id;
        let keeps = member.is_durable && self.keeps_keys(seen.node.index());
        view.epoch().has(member.id) && (is_same_run || keeps)
    }

    /// The nodes that have votes.
    fn voters(&self) -> Vec<usize> {
        let now = self.context.queue.now();
        let seen: Vec<NodeMark> = self.nodes.iter().map(|node| node.seen(now)).collect();
        let Ok(view) = MembershipView::new(seen.clone(), self.nodes.len()) else {
            return Vec::new();
        };
        // A server that comes back while its place is being given to another one may be voted out.
        let next = self.nodes.iter().filter_map(|node| node.next_epoch(now));
        let next = next.filter(|it| it.group.epoch > view.epoch().group.epoch);
        let next: Vec<Epoch> = next.collect();
        let stays = |seen: &NodeMark| match seen.read() {
            Some(Mark::Member(member)) => next.iter().all(|it| it.has(member.id)),
            _ => false,
        };
        let voters = seen
            .iter()
            .filter(|seen| self.votes(&view, seen) && stays(seen));
        voters.map(|seen| seen.node.index()).collect()
    }

    /// May a fault cost this node its vote? With too few others nobody would get it back.
    pub(super) fn may_lose_vote(&mut self, node: usize) -> bool {
        let Some(registers) = &self.context.options.registers else {
            return true;
        };
        let is_careless = self.context.random.chance(registers.careless_permille);
        let others = self
            .voters()
            .into_iter()
            .filter(|voter| *voter != node)
            .count();
        is_careless || others >= quorum(self.nodes.len())
    }

    /// Are there no registers, or can they be read at these nodes?
    pub(super) fn have_votes(&self, healed: &[usize]) -> bool {
        let voters = self
            .voters()
            .into_iter()
            .filter(|voter| healed.contains(voter));
        self.context.options.registers.is_none() || voters.count() >= quorum(self.nodes.len())
    }

    /// If a majority of the nodes that work has a vote, all registers can be read.
    pub(super) fn expect_registers(&mut self, healed: &[usize]) {
        if self.context.options.registers.is_none() {
            return;
        }
        let calls = (0..self.context.options.resources).map(|register| (register, Call::Read));
        self.context.last_calls = [(0, Call::Repair)].into_iter().chain(calls).collect();
        let has_transactions = self
            .context
            .options
            .registers
            .as_ref()
            .is_some_and(|it| it.has_transactions);
        if has_transactions {
            self.context.checker.transactions.borrow_mut().await_all();
        }
        let can_read = self.have_votes(healed);
        let patience = if can_read { 20 * SECONDS } else { SECONDS };
        let end = self.context.queue.now() + patience;
        let is_done = self.run_until(end, |it| {
            let is_over = !has_transactions || it.context.checker.transactions.borrow().is_over();
            is_over
                && it.context.last_calls.is_empty()
                && it.workers(|worker| !worker.is_done()) == 0
        });
        self.context
            .trace(|| format!("can read: {can_read}, all read: {is_done}"));
        if can_read && !is_done && self.workers(|_| true) > 0 {
            let text = "a majority has votes, and not all can be read or recovered".to_owned();
            self.context
                .checker
                .report_violation(Invariant::Liveness, text);
        }
        self.context.last_calls.clear();
    }
}
