//! Two or three sides of a transaction, as the search sees them: the library's own record and
//! steps, a disk for each side, and a register that is atomic. `tests/register_search` shows that
//! it is.

use redlatch_registers::transaction::{
    Disk, JoinEnd, JoinStep, Record, RecordState, TransactionSide,
};

use crate::mistake::Mistake;

const NAMES: [&str; 3] = ["a", "b", "c"];

/// A change of the record that was sent, and may take effect at any time, also after its sender
/// has died, or never.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Change {
    Vote,
    Abort,
    Finish,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Side {
    pub(crate) disk: Disk,
    /// What it does, unless it is down or has nothing to do.
    pub(crate) joining: Option<TransactionSide>,
    /// Does it wait for the answer of a change that it has sent?
    pub(crate) awaits: bool,
    /// The changes that have not taken effect.
    pub(crate) sent: Vec<Change>,
    pub(crate) applied: u8,
    pub(crate) undone: u8,
    pub(crate) asked: u8,
    pub(crate) crashes: u8,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct World {
    pub(crate) record: Option<Record>,
    pub(crate) has_begun: bool,
    pub(crate) sides: Vec<Side>,
    pub(crate) wrong: Option<&'static str>,
}

impl World {
    pub(crate) fn new(sides: usize) -> Self {
        let side = Side {
            disk: Disk::Nothing,
            joining: None,
            awaits: false,
            sent: Vec::new(),
            applied: 0,
            undone: 0,
            asked: 0,
            crashes: 0,
        };
        Self { record: None, has_begun: false, sides: vec![side; sides], wrong: None }
    }

    pub(crate) fn begin(&mut self) {
        self.record = Some(Record::begin(&NAMES[..self.sides.len()], 0).unwrap());
        self.has_begun = true;
    }

    /// A change takes effect.
    fn change(&mut self, index: usize, change: Change, mistake: Mistake) -> Option<RecordState> {
        let (record, name) = (&mut self.record, NAMES[index]);
        match change {
            Change::Vote => {
                if mistake == Mistake::AbsentIsOpen && record.is_none() {
                    *record = Some(Record::begin(&NAMES[..self.sides.len()], 0).unwrap());
                }
                let told = Record::vote(record, name).unwrap();
                let voted = |record: &Record| record.participants().filter(|(_, has)| *has).count();
                let is_enough = record.as_ref().is_some_and(|it| voted(it) > self.sides.len() / 2);
                if mistake == Mistake::CommitAtMajority && told == RecordState::Open && is_enough {
                    NAMES[..self.sides.len()].iter().for_each(|name| {
                        Record::vote(record, name).unwrap();
                    });
                    return Some(RecordState::Commit);
                }
                Some(told)
            }
            Change::Abort => {
                let told = Record::abort(record, Some(name)).unwrap();
                if mistake == Mistake::AbortCommitted && told == RecordState::Commit {
                    *record = None;
                    return Some(RecordState::Abort);
                }
                Some(told)
            }
            Change::Finish => {
                Record::finish(record, name).unwrap();
                if mistake == Mistake::RemoveAtCommit {
                    *record = None;
                }
                None
            }
        }
    }

    /// A change that was sent takes effect.
    pub(crate) fn arrive(
        &mut self,
        index: usize,
        change: Change,
        mistake: Mistake,
    ) -> Option<RecordState> {
        self.sides[index].sent.retain(|sent| *sent != change);
        self.change(index, change, mistake)
    }

    /// What the side does, which it does.
    pub(crate) fn joining(&mut self, index: usize) -> &mut TransactionSide {
        self.sides[index].joining.as_mut().expect("it takes part")
    }

    /// The record's answer arrives, or that of a read.
    pub(crate) fn tell(&mut self, index: usize, told: Option<RecordState>, mistake: Mistake) {
        let side = &mut self.sides[index];
        side.awaits = false;
        let Some(joining) = &mut side.joining else { return };
        let is_late =
            mistake == Mistake::VoteTwiceApplies && told == Some(RecordState::FinishedBefore);
        match told {
            None => joining.done(),
            Some(_) if is_late && joining.step() == JoinStep::Look => {
                joining.learned(RecordState::Open);
            }
            Some(_) if is_late => joining.learned(RecordState::Commit),
            Some(told) => joining.learned(told),
        }
        let is_prepared_late = mistake == Mistake::VoteBeforeDisk && side.disk == Disk::Nothing;
        if is_prepared_late && matches!(joining.step(), JoinStep::Wait | JoinStep::Commit) {
            side.disk = Disk::Prepared;
        }
    }

    fn look(&self, index: usize) -> RecordState {
        Record::look(self.record.as_ref(), NAMES[index]).unwrap()
    }

    /// The side takes the step that is next, as far as it does so alone.
    pub(crate) fn step(&mut self, index: usize, mistake: Mistake) {
        let step = self.sides[index].joining.as_ref().map(TransactionSide::step);
        let told = self.look(index);
        let side = &mut self.sides[index];
        let Some(joining) = side.joining.as_mut() else { return };
        let mut send = |change| {
            side.awaits = true;
            if !side.sent.contains(&change) {
                side.sent.push(change);
                side.sent.sort_by_key(|change| *change as u8);
            }
        };
        match step {
            Some(JoinStep::Look | JoinStep::Wait) => self.tell(index, Some(told), mistake),
            Some(JoinStep::Vote) => send(Change::Vote),
            Some(JoinStep::Abort) => send(Change::Abort),
            Some(JoinStep::Finish) => send(Change::Finish),
            Some(JoinStep::Prepare) => {
                if mistake != Mistake::VoteBeforeDisk {
                    side.disk = Disk::Prepared;
                }
                joining.done();
            }
            Some(JoinStep::Commit) => {
                if side.disk == Disk::Prepared {
                    side.disk = Disk::Committed;
                    side.applied += 1;
                }
                joining.done();
            }
            Some(JoinStep::RollBack) => {
                if side.disk == Disk::Committed {
                    self.wrong = Some("rolled back what was committed");
                }
                side.undone |= u8::from(side.disk != Disk::Nothing);
                side.disk = Disk::Nothing;
                joining.done();
            }
            Some(JoinStep::Forget) => {
                side.disk = Disk::Nothing;
                joining.done();
            }
            Some(JoinStep::Done(end)) => {
                if end == JoinEnd::NotPrepared {
                    self.wrong = Some("the record has a vote that the disk does not know");
                }
                side.joining = None;
                let has_committed = |side: &Side| side.applied > 0;
                if end == JoinEnd::Aborted && self.sides.iter().any(has_committed) {
                    self.wrong = Some("told as aborted, and committed");
                }
            }
            None => {}
        }
    }

    /// The side starts again, and recovers what is on its disk.
    pub(crate) fn start_again(&mut self, index: usize, mistake: Mistake) {
        let side = &mut self.sides[index];
        let disk = match side.disk {
            Disk::Committed if mistake == Mistake::CommittedIsPrepared => Disk::Prepared,
            disk => disk,
        };
        side.awaits = false;
        side.joining = Some(match mistake {
            Mistake::OnlyStarterDecides => TransactionSide::join(disk),
            _ => TransactionSide::recover(disk),
        })
        .filter(|_| side.disk != Disk::Nothing);
    }

    /// The side starts again, is not disturbed, and hears all answers. Is it at its end then?
    pub(crate) fn recover_alone(&mut self, index: usize, mistake: Mistake) -> bool {
        self.start_again(index, mistake);
        for _ in 0..20 {
            if self.sides[index].joining.is_none() {
                return true;
            }
            self.step(index, mistake);
            if self.sides[index].awaits {
                let change = self.sides[index].sent.pop().expect("it was sent");
                let told = self.change(index, change, mistake);
                self.tell(index, told, mistake);
            }
        }
        false
    }

    /// It aborts what waits for its vote and is not on its disk.
    pub(crate) fn abort_unknown(&mut self, index: usize) {
        let waits = |record: &Record| {
            let mut all = record.participants();
            !record.is_committed() && all.any(|(name, voted)| name == NAMES[index] && !voted)
        };
        if self.record.as_ref().is_some_and(waits) {
            Record::abort(&mut self.record, None).unwrap();
        }
    }
}
