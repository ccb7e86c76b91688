//! What must hold of each step of a thread, whatever it does.

use super::Worker;
use crate::checker::{Credit, Invariant};
use crate::client::Client;
use crate::clock::MILLIS;
use crate::context::Context;
use redlatch::internal::engine::Ballot;

impl Worker {
    /// Every vote must be a reply to the request.
    pub(super) fn check_votes(&self, context: &mut Context, ballot: &Ballot) {
        let Some(asked) = self.asked else { return };
        let votes = [(ballot.tally.granted, true), (ballot.tally.refused, false)];
        for (nodes, is_granted) in votes {
            let permit = ballot.permit.filter(|_| asked.is_permit);
            for node in nodes.iter().filter(|node| asked.nodes.contains(*node)) {
                let server = context.options.server(node.index());
                let lock = (asked.token, asked.kind);
                let counted = Credit { is_granted, permit };
                context.checker.credited(lock, (server, counted), asked.since);
            }
        }
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
