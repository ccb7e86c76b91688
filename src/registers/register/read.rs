//! The loop that reads a register: over the rounds that find out which nodes vote.

use super::change::Changing;
use super::{Register, Value};
use crate::error::RegisterError;
use redlatch_registers::RegisterCommand;

/// How often a read looks at the marks of the nodes without finding another epoch: once for nodes
/// that have come back, and once for members that have not entered the epoch that others are in.
const LOOKS_MAX: u32 = 2;

/// What a look at a register has shown.
pub(super) struct Observation {
    pub(super) value: Option<Value>,
    /// Do all nodes tell the watcher when that changes?
    pub(super) is_watched: bool,
}

impl Register {
    /// Reads the value, by a command that answers it. Returns also how often the nodes were asked.
    pub(super) async fn look_with(
        &self,
        command: &RegisterCommand,
    ) -> Result<(Observation, u32), RegisterError> {
        Changing::check()?;
        let nodes = self.nodes()?;
        let mut group = nodes.group().await?;
        let mut rounds = 0;
        let mut looks = 0;
        loop {
            rounds += 1;
            let round = nodes.ask(&self.keys, &group, command.clone()).await;
            if let Some(invalid) = round.invalid() {
                return Err(invalid);
            }
            if let Some(agreed) = round.replies.agreed() {
                let ballot = agreed.map(|accepted| accepted.ballot);
                nodes.caller.memory().saw(&self.keys.value, ballot);
                let value = ballot
                    .and_then(|ballot| round.replies.value(ballot))
                    .map(Value);
                return Ok((
                    Observation {
                        value,
                        is_watched: round.is_watched,
                    },
                    rounds,
                ));
            }
            if round.replies.are_enough() {
                break;
            }
            if looks == LOOKS_MAX || !round.replies.lack_votes() {
                let is_read = matches!(command, RegisterCommand::Read { .. });
                return Err(round.no_quorum(!is_read));
            }
            // Members enter an epoch one after another: where one has refused the epoch before, the
            // next one may refuse this.
            let learnt = nodes.follow(&round.replies, &group).await?;
            looks += u32::from(learnt == group);
            group = learnt;
        }
        // Not together with changes: one of them may take long.
        let agreed = self.run_alone(|draft| {
            self.delete_if_over(draft);
            Ok(draft.current().cloned().map(Value))
        });
        let (value, rounds_alone) = agreed.await?;
        Ok((
            Observation {
                value,
                is_watched: false,
            },
            rounds + rounds_alone,
        ))
    }
}
