//! What the sides of a transaction, and others, were told, and what they must not be told then.

use crate::voter::{Actor, Goal};
use redlatch_registers::transaction::RecordState;

/// What must not happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Violation {
    TwoDecisions,
    CommittedWithoutAllVotes,
    /// A side does not find in the record that it is committed, or that it has finished.
    NotFound,
    /// A record comes back that was removed from a node.
    Revived,
    /// A new client comes to no end.
    Stuck,
}

#[derive(Clone, Hash)]
pub(crate) struct Told {
    pub(crate) has_voted: Vec<bool>,
    /// Which sides were told that it is known that they have finished?
    has_finished: Vec<bool>,
    is_committed: bool,
    is_aborted: bool,
    /// Has a node removed the keys, because all have finished?
    pub(crate) is_removed: bool,
}

impl Told {
    /// `is_voted`: all have voted.
    pub(crate) fn new(sides: usize, is_voted: bool) -> Self {
        Self {
            has_voted: vec![is_voted; sides],
            has_finished: vec![false; sides],
            is_committed: is_voted,
            is_aborted: false,
            is_removed: false,
        }
    }

    /// Notes what an actor was told. Returns whether it is a side that knows of the commit now.
    pub(crate) fn note(&mut self, index: usize, goal: Goal, told: Option<RecordState>) -> bool {
        let is_voter = index < self.has_voted.len() && goal == Goal::Vote;
        if goal == Goal::Finish && told.is_some() {
            self.has_finished[index] = true;
        }
        match told {
            Some(RecordState::Commit | RecordState::FinishedBefore) => {
                self.is_committed = true;
                return is_voter;
            }
            Some(RecordState::Abort) => self.is_aborted = true,
            Some(RecordState::Absent) if is_voter => self.is_aborted = true,
            _ => {}
        }
        false
    }

    pub(crate) fn check(&self) -> Result<(), Violation> {
        match self.is_committed {
            true if self.is_aborted => Err(Violation::TwoDecisions),
            true if self.has_voted.contains(&false) => Err(Violation::CommittedWithoutAllVotes),
            _ => Ok(()),
        }
    }

    /// Judges what a new client was told that aborts or reads it, in the name of a side.
    pub(crate) fn judge(
        &self,
        actors: &[Actor],
        (goal, side): (Goal, usize),
        told: Option<RecordState>,
    ) -> Result<(), Violation> {
        let mut sides = actors[..self.has_voted.len()].iter();
        let is_awaited = sides.any(|it| it.goal == Goal::Vote || !it.has_begun);
        let has_finished = goal == Goal::Read && self.has_finished[side];
        match told {
            None => Err(Violation::Stuck),
            Some(RecordState::Open) if self.is_committed => Err(Violation::NotFound),
            Some(RecordState::Commit) if has_finished => Err(Violation::NotFound),
            Some(RecordState::Abort) if self.is_committed => Err(Violation::TwoDecisions),
            Some(RecordState::Commit) if self.is_aborted => Err(Violation::TwoDecisions),
            Some(RecordState::Commit) if self.is_removed => Err(Violation::Revived),
            Some(RecordState::Absent) if self.is_committed && is_awaited => {
                Err(Violation::NotFound)
            }
            _ => Ok(()),
        }
    }
}
