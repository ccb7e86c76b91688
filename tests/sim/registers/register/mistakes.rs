//! Mistakes about registers, made where the library's loops meet the simulation.

use super::caller::Caller;
use super::nodes::{GroupInspection, RegisterNodes};
use super::{Register, Value};
use crate::error::RegisterError;
use crate::mistake::Mistake;
use redlatch_protocol::engine::{Said, quorum};
use redlatch_protocol::node::RoundOutcome;
use redlatch_registers::transaction::{Disk, FINISHED};
use redlatch_registers::{
    Accepted, Mark, MarkStep, Member, RegisterCommand, RegisterReply, RegisterRequest, Replies,
};

impl Caller<'_> {
    fn has(self, mistake: Mistake) -> bool {
        self.thread.shared.has(mistake)
    }

    /// What a loop is told instead of what the nodes have answered.
    pub(super) fn answer_by_mistake(
        self,
        request: &RegisterRequest,
        outcome: RoundOutcome,
    ) -> RoundOutcome {
        let replies = Replies::of(&outcome.said);
        let told = match &request.command {
            RegisterCommand::Read { .. } if self.has(Mistake::NewestRead) => newest(&replies),
            RegisterCommand::Copy if self.has(Mistake::CopiedFromOne) => oldest(&replies),
            RegisterCommand::Accept { ballot, value, .. } => {
                let is_done = is_done(&replies);
                if is_done && value.is_empty() && self.has(Mistake::CollectedAtMajority) {
                    self.tell(RegisterRequest {
                        command: RegisterCommand::Collect(Some(*ballot)),
                        ..request.clone()
                    });
                }
                let is_lost = !is_done && replies.are_enough() && self.has(Mistake::AppliedAgain);
                is_lost.then_some(None)
            }
            _ => None,
        };
        let Some(told) = told else { return outcome };
        let said = vec![told.map(Said::new); outcome.said.len()];
        RoundOutcome { said, ..outcome }
    }
}

impl Caller<'_> {
    /// Votes for all sides of a transaction before the last one is prepared.
    pub(super) async fn vote_by_mistake(self) {
        let Some(number) = self.thread.shared.whole.get() else {
            return;
        };
        let ledger = &self.thread.shared.ledger;
        let disks = [0, 1, 2].map(|side| ledger.borrow().disk(number, side));
        let is_last = disks == [Disk::Prepared, Disk::Prepared, Disk::Nothing];
        if is_last && self.has(Mistake::VotedForAll) {
            // Whether that succeeds makes no difference to the mistake.
            let _ = self.thread.vote_for_all(number).await;
        }
    }
}

/// The newest value of a majority that disagrees.
fn newest(replies: &Replies) -> Option<Option<RegisterReply>> {
    if replies.agreed().is_some() || !replies.are_enough() {
        return None;
    }
    let number = |reply: &&RegisterReply| match reply {
        RegisterReply::State(Some(Accepted { ballot, .. })) => Some(ballot.number()),
        _ => None,
    };
    let states = replies.0.iter().flatten();
    let states = states.filter(|reply| matches!(reply, RegisterReply::State(_)));
    Some(states.max_by_key(number).cloned())
}

/// The oldest of the answers to a copy.
fn oldest(replies: &Replies) -> Option<Option<RegisterReply>> {
    let mut copies = Vec::new();
    for reply in replies.0.iter().flatten() {
        if let RegisterReply::Promise { accepted, .. } = reply {
            copies.push((accepted.as_ref().map(|it| it.ballot.number()), reply));
        }
    }
    let (_, oldest) = copies.into_iter().min_by_key(|(number, _)| *number)?;
    Some(Some(oldest.clone()))
}

fn is_done(replies: &Replies) -> bool {
    let done = replies.0.iter().flatten();
    let done = done.filter(|reply| **reply == RegisterReply::Done);
    done.count() >= quorum(replies.0.len())
}

impl RegisterNodes<'_> {
    /// Gives all nodes that have been members their votes.
    pub(super) fn trust_by_mistake(&self, inspection: &GroupInspection) {
        if !self.caller.has(Mistake::OlderStateTrusted) {
            return;
        }
        let epoch = inspection.view.epoch();
        for seen in inspection.view.seen() {
            let Some(Mark::Member(member)) = seen.read() else {
                continue;
            };
            if epoch.has(member.id) {
                let new = Member {
                    epoch: epoch.clone(),
                    run_id: seen.run_id.to_string(),
                    ..member
                };
                let step = MarkStep::Enter {
                    seen: seen.mark.clone().unwrap_or_default(),
                    new: new.to_bytes(),
                };
                let prefix = &self.core.key_prefix;
                self.caller.tell(RegisterRequest::of_marks(prefix, step));
            }
        }
    }
}

impl Register {
    /// Does a change whose call has ended so begin again, without a look at what it has done?
    pub(super) fn begins_again<T>(&self, result: &Result<T, RegisterError>) -> bool {
        let is_lost = matches!(
            result,
            Err(RegisterError::NoQuorum {
                may_have_happened: true,
                ..
            })
        );
        is_lost && self.thread.shared.has(Mistake::AppliedAgain)
    }

    /// The first side that has finished removes the record.
    pub(super) async fn remove_by_mistake(
        &self,
        command: &RegisterCommand,
    ) -> Result<(), RegisterError> {
        let RegisterCommand::Raise(levels) = command else {
            return Ok(());
        };
        if levels.contains(&FINISHED) && self.thread.shared.has(Mistake::RecordRemovedEarly) {
            self.remove().await?;
        }
        Ok(())
    }

    /// A side has waited for the others for as long as it was to.
    pub(super) async fn lose_patience_by_mistake(
        &self,
        value: Option<Value>,
    ) -> Result<Option<Value>, RegisterError> {
        if self.thread.shared.has(Mistake::RolledBackAlone) {
            return Ok(None);
        }
        if self.thread.shared.has(Mistake::CommittedAborted) {
            self.remove().await?;
        }
        Ok(value)
    }

    async fn remove(&self) -> Result<(), RegisterError> {
        let removal = self.run_alone(|draft| {
            draft.delete();
            Ok(())
        });
        removal.await?;
        Ok(())
    }

    /// Repairs in the epoch that there is.
    pub(super) async fn repair_by_mistake(&self) -> Option<Result<usize, RegisterError>> {
        if !self.thread.shared.has(Mistake::EpochKept) {
            return None;
        }
        Some(self.repair_in_epoch().await)
    }

    async fn repair_in_epoch(&self) -> Result<usize, RegisterError> {
        let nodes = self.nodes()?;
        let mut repaired = 0;
        while let Some(mut repair) = nodes.begin_repair(None).await? {
            let epoch = repair.before.clone();
            let mut members = epoch.members.iter();
            let place = members.find(|member| !repair.proposed.has(member.id));
            repair.id = place.map_or(repair.id, |member| member.id);
            repair.proposed = epoch.clone();
            repaired += usize::from(nodes.end_repair(&repair, &epoch).await?.is_some());
        }
        Ok(repaired)
    }
}
