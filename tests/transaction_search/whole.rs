//! A process that has all sides of the transaction, and has begun it: the loop of
//! `src/registers/transaction/sides.rs`, with the library's own steps of each side.

use crate::mistake::Mistake;
use crate::world::{NAMES, World};
use redlatch_registers::transaction::{Disk, JoinStep, Record, RecordState, TransactionSide};

/// What it has sent for several sides at once, which takes effect at any time, or never.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) enum SharedChange {
    Vote,
    Abort,
    /// Of these sides.
    Finish(Vec<usize>),
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Whole {
    /// The steps of the sides that are asked, in this order.
    joining: Vec<TransactionSide>,
    /// What it waits for.
    pub(crate) awaited: Option<SharedChange>,
    has_refused: bool,
    /// Does each side go on alone now?
    is_alone: bool,
}

impl Whole {
    pub(crate) fn new(sides: usize) -> Self {
        Self {
            joining: vec![TransactionSide::begun(); sides],
            awaited: None,
            has_refused: false,
            is_alone: false,
        }
    }

    fn at(&self, step: JoinStep) -> Vec<usize> {
        let mut sides = Vec::new();
        for (index, joining) in self.joining.iter().enumerate() {
            if joining.step() == step {
                sides.push(index);
            }
        }
        sides
    }

    /// May it find now that a side cannot prepare?
    pub(crate) fn may_refuse(&self) -> bool {
        !self.has_refused && !self.at(JoinStep::Prepare).is_empty()
    }

    /// Those behind it are not asked.
    pub(crate) fn refuse(&mut self) {
        let side = self.at(JoinStep::Prepare)[0];
        self.joining[side].refuse();
        self.joining.truncate(side + 1);
        self.has_refused = true;
    }

    /// What it sends now, if that is next.
    fn next_change(&self, mistake: Mistake) -> Option<SharedChange> {
        let prepares = !self.at(JoinStep::Prepare).is_empty();
        let commits = !self.at(JoinStep::Commit).is_empty();
        let finish = self.at(JoinStep::Finish);
        let is_prepared = !prepares || mistake == Mistake::VotesBeforeLast;
        if is_prepared && !self.has_refused && !self.at(JoinStep::Vote).is_empty() {
            return Some(SharedChange::Vote);
        }
        if self.has_refused && !self.is_alone {
            return Some(SharedChange::Abort);
        }
        let all: Vec<usize> = (0..self.joining.len()).collect();
        match (finish.is_empty(), commits) {
            _ if self.is_alone => None,
            (false, true) if mistake == Mistake::FinishBeforeLast => {
                Some(SharedChange::Finish(all))
            }
            (false, false) => Some(SharedChange::Finish(finish)),
            _ => None,
        }
    }

    /// It goes on as if all nodes knew that those that have committed have finished.
    fn finished(&mut self) {
        for joining in &mut self.joining {
            if joining.step() == JoinStep::Finish {
                joining.done();
            }
        }
    }

    /// It hears nothing of what it has sent.
    pub(crate) fn lose_answer(&mut self) {
        if self.awaited.take() == Some(SharedChange::Vote) {
            self.joining
                .iter_mut()
                .for_each(TransactionSide::lose_patience);
        } else {
            self.is_alone = true;
        }
    }
}

impl World {
    /// The process does what is next.
    pub(crate) fn step_whole(&mut self, mistake: Mistake) {
        let whole = self.whole.as_mut().expect("it runs");
        if let Some(change) = whole.next_change(mistake) {
            let is_finish = matches!(change, SharedChange::Finish(_));
            if is_finish && mistake == Mistake::AllForgottenBeforeFinished {
                whole.finished();
            } else {
                whole.awaited = Some(change.clone());
            }
            if !self.shared.contains(&change) {
                self.shared.push(change);
            }
            return;
        }
        if let [side, ..] = whole.at(JoinStep::Prepare)[..] {
            if self.sides[side].disk == Disk::Nothing {
                self.sides[side].disk = Disk::Prepared;
            }
            return whole.joining[side].done();
        }
        if let ([side, ..], false) = (&whole.at(JoinStep::Commit)[..], whole.is_alone) {
            let it = &mut self.sides[*side];
            if it.disk == Disk::Prepared {
                it.disk = Disk::Committed;
                it.applied += 1;
            }
            return whole.joining[*side].done();
        }
        // As a process of each side.
        let whole = self.whole.take().expect("it runs");
        for (side, joining) in self.sides.iter_mut().zip(whole.joining) {
            side.processes[0].joining = Some(joining);
        }
    }

    /// What was sent for several sides takes effect. `tells`: the process hears the answer.
    pub(crate) fn arrive_shared(&mut self, change: &SharedChange, tells: bool, mistake: Mistake) {
        self.shared.retain(|sent| sent != change);
        let names = &NAMES[..self.sides.len()];
        let record = &mut self.record;
        let mut is_aborted = false;
        match change {
            SharedChange::Vote => {
                if mistake == Mistake::BegunWithVotes && record.is_none() {
                    *record = Some(Record::begin(names, 0).unwrap());
                }
                for name in names {
                    Record::vote(record, name).unwrap();
                }
            }
            SharedChange::Abort => {
                is_aborted = Record::abort(record, None) == Ok(RecordState::Abort);
            }
            SharedChange::Finish(sides) => {
                for side in sides {
                    Record::finish(record, names[*side]).unwrap();
                }
            }
        }
        let Some(whole) = self.whole.as_mut().filter(|_| tells) else {
            return;
        };
        whole.awaited = None;
        for (index, joining) in whole.joining.iter_mut().enumerate() {
            match change {
                SharedChange::Vote if joining.step() == JoinStep::Vote => {
                    joining.learned(Record::look(record.as_ref(), names[index]).unwrap());
                }
                SharedChange::Abort => {
                    joining.lose_patience();
                    if is_aborted {
                        joining.learned(RecordState::Abort);
                    }
                }
                SharedChange::Finish(_) if joining.step() == JoinStep::Finish => joining.done(),
                _ => {}
            }
        }
        whole.is_alone = *change == SharedChange::Abort;
    }
}
