//! What a thread does with the outcome of its request.

use super::Worker;
use super::operation::Running;
use super::operator::locks;
use crate::client::Client;
use crate::context::Context;
use crate::entropy;
use redlatch_protocol::engine::Input;
use redlatch_protocol::node::{Ended, RoundOutcome};

impl Worker {
    pub(super) fn take_result(&mut self, client: &Client, context: &mut Context, ended: Ended) {
        let now = client.now(context);
        let result = match ended {
            Ended::Until => unreachable!("no thread of the simulator asks for a time"),
            Ended::Round(result) => result,
            Ended::Wait { is_called } => {
                if is_called {
                    entropy::put(self.draw(client, context));
                }
                return self.answer(ended);
            }
        };
        match &mut self.operation {
            Some(Running::Operator(operator)) => {
                // The operation ends with the answers to its removal, which are not snapshots.
                let seen = result.said.iter().flatten().filter_map(|said| said.get());
                operator.inspected(now, seen.flat_map(locks).collect());
            }
            Some(Running::Register(task)) => task.answer(Ended::Round(result)),
            // The operation ends with these.
            Some(Running::Ping(_)) => {
                let examined = result
                    .statuses
                    .iter()
                    .filter(|status| status.role.is_some());
                context.tally.examined += examined.count() as u64;
            }
            _ => {
                let votes = self.tamper(context, result.votes);
                if votes.was_prolonged {
                    self.note_connecting(now, context);
                }
                self.check_votes(context, &votes);
                self.note_answered(context, &votes);
                if let Some(Running::Acquire(task)) = &mut self.operation {
                    return task.answer(Ended::Round(RoundOutcome { votes, ..result }));
                }
                self.handle(now, Input::Votes(votes));
            }
        }
    }
}
