//! What a thread does with the outcome of its request.

use super::Worker;
use super::operation::Running;
use super::operator::locks;
use crate::context::Context;
use redlatch_protocol::engine::Input;
use redlatch_protocol::node::RoundResult;
use redlatch_protocol::time::Time;

impl Worker {
    pub(super) fn take_result(&mut self, now: Time, context: &mut Context, result: RoundResult) {
        match (result, &mut self.operation) {
            (RoundResult::Votes(votes), _) => {
                let ballot = self.tamper(context, votes.ballot);
                if ballot.was_connecting {
                    self.note_connecting(now, context);
                }
                self.check_votes(context, &ballot);
                self.note_answered(context, &ballot);
                self.handle(now, Input::Ballot(ballot));
            }
            (RoundResult::Wait(nodes), _) => self.handle(now, Input::Reserved(nodes)),
            (RoundResult::Custom { said, .. }, Some(Running::Operator(operator))) => {
                // The operation ends with the answers to its removal, which are no snapshots.
                let seen = said.iter().flatten().filter_map(|said| said.get());
                operator.inspected(now, seen.flat_map(locks).collect());
            }
            (result, Some(Running::Register(task))) => task.answer(result),
            // The operation ends with these.
            (RoundResult::Ping(statuses), _) => {
                let examined = statuses.iter().filter(|status| status.role.is_some());
                context.tally.examined += examined.count() as u64;
            }
            (RoundResult::Custom { .. }, _) => unreachable!("nobody looks, nor uses a register"),
        }
    }
}
