//! What must hold of each step of a thread, whatever it does.

use super::Worker;
use crate::checker::{Credit, Invariant};
use crate::client::Client;
use crate::clock::MILLIS;
use crate::context::Context;
use redlatch_protocol::engine::Votes;
use redlatch_protocol::time::Time;
use std::time::Duration;

/// How many rounds connecting may take.
const CONNECTING: u64 = 10;

impl Worker {
    /// Every vote must be a reply to the request.
    pub(super) fn check_votes(&self, context: &mut Context, votes: &Votes) {
        let Some(asked) = self.asked else { return };
        let given = [(votes.tally.granted, true), (votes.tally.refused, false)];
        for (nodes, is_granted) in given {
            let permit = votes.permit.filter(|_| asked.is_permit);
            for node in nodes.iter().filter(|node| asked.nodes.contains(*node)) {
                let server = context.options.server(node.index());
                let lock = (asked.token, asked.kind);
                let counted = Credit { is_granted, permit };
                context
                    .checker
                    .credited(lock, (server, counted), asked.since);
            }
        }
    }

    /// A round went on beyond its deadline, while connections were made: for up to the time that
    /// these may take. What follows may take another round.
    pub(super) fn note_connecting(&mut self, now: Time, context: &Context) {
        let round = context.options.node_timeout.as_nanos() as u64;
        // A repetition after a split vote has less than a round until its deadline.
        let late = self
            .asked
            .map_or(Duration::ZERO, |asked| now.since(asked.deadline));
        let beyond = (late.as_nanos() as u64).min(round * (CONNECTING - 1) * 12 / 10);
        self.scheduling_delays += beyond + round;
    }

    pub(super) fn check_deadline(&self, client: &Client, context: &mut Context) {
        let now = client.now(context);
        let Some(limit) = self.limit else { return };
        let late = now.since(limit).as_nanos() as u64;
        let excused =
            (self.scheduling_delays + client.paused - self.paused_before) * 12 / 10 + MILLIS;
        if late > excused {
            let text = format!(
                "client {:?}.{} returned {late} ns late, {excused} ns excused",
                client.name, self.index
            );
            context.trace(|| text.clone());
            context.checker.report_violation(Invariant::Deadline, text);
        }
    }
}
