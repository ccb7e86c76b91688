//! Two or three sides of a transaction, as the search sees them: the library's own record and
//! steps, a disk for each side, and a register that is atomic. `tests/register_search` shows that
//! it is.

use redlatch_registers::transaction::{
    Disk, JoinEnd, JoinStep, Record, RecordState, TransactionSide,
};

use crate::mistake::Mistake;
use crate::whole::{SharedChange, Whole};

pub(crate) const NAMES: [&str; 3] = ["a", "b", "c"];

/// A change of the record that was sent, and may take effect at any time, also after its sender
/// has died, or never.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Change {
    Vote,
    Abort,
    Finish,
}

/// A process that takes part for a side, or brings to its end what is on the side's disk.
#[derive(Clone, Default, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Process {
    /// What it does, unless it is down or has nothing to do.
    pub(crate) joining: Option<TransactionSide>,
    /// Does it wait for the answer of a change that it has sent?
    pub(crate) awaits: bool,
    /// The changes that have not taken effect.
    pub(crate) sent: Vec<Change>,
    /// For mistakes: what the disk said when it sent the last change; has it said `Prepared` behind
    /// that; and has this process refused?
    said_before: Option<Disk>,
    has_found_prepared: bool,
    has_refused: bool,
}

impl Process {
    /// It stops for good. What it has sent may take effect anyway.
    pub(crate) fn stop(&mut self) {
        *self = Self {
            sent: std::mem::take(&mut self.sent),
            ..Self::default()
        };
    }
}

/// A side: its disk, and the processes that use it, of which none knows of another.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Side {
    pub(crate) disk: Disk,
    pub(crate) processes: Vec<Process>,
    pub(crate) applied: u8,
    pub(crate) undone: u8,
    pub(crate) asked: u8,
    pub(crate) crashes: u8,
}

/// A process of a side: the numbers of both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) side: usize,
    pub(crate) process: usize,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct World {
    pub(crate) record: Option<Record>,
    pub(crate) has_begun: bool,
    /// Does the first process of the first side know that it has begun it, and has not joined?
    pub(crate) is_known_open: bool,
    pub(crate) sides: Vec<Side>,
    /// A process that has all sides, while they have steps in common; and what it has sent.
    pub(crate) whole: Option<Whole>,
    pub(crate) shared: Vec<SharedChange>,
    /// Somebody was told that it is aborted.
    is_told_aborted: bool,
    pub(crate) wrong: Option<&'static str>,
}

impl World {
    /// With this many processes for each side.
    pub(crate) fn new(processes: &[usize]) -> Self {
        let side = |count: &usize| Side {
            disk: Disk::Nothing,
            processes: vec![Process::default(); *count],
            applied: 0,
            undone: 0,
            asked: 0,
            crashes: 0,
        };
        Self {
            record: None,
            has_begun: false,
            is_known_open: false,
            sides: processes.iter().map(side).collect(),
            whole: None,
            shared: Vec::new(),
            is_told_aborted: false,
            wrong: None,
        }
    }

    pub(crate) fn begin(&mut self) {
        self.record = Some(Record::begin(&NAMES[..self.sides.len()], 0).unwrap());
        self.has_begun = true;
    }

    /// A change takes effect.
    fn change(&mut self, index: usize, change: Change, mistake: Mistake) -> Option<RecordState> {
        let record = &mut self.record;
        let name = NAMES[index];
        match change {
            Change::Vote => {
                if mistake == Mistake::AbsentIsOpen && record.is_none() {
                    *record = Some(Record::begin(&NAMES[..self.sides.len()], 0).unwrap());
                }
                let told = Record::vote(record, name).unwrap();
                let voted = |record: &Record| record.participants().filter(|(_, has)| *has).count();
                let is_enough = record
                    .as_ref()
                    .is_some_and(|it| voted(it) > self.sides.len() / 2);
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
        at: Place,
        change: Change,
        mistake: Mistake,
    ) -> Option<RecordState> {
        self.process(at).sent.retain(|sent| *sent != change);
        self.change(at.side, change, mistake)
    }

    pub(crate) fn process(&mut self, at: Place) -> &mut Process {
        &mut self.sides[at.side].processes[at.process]
    }

    /// What the process does, which it does.
    pub(crate) fn joining(&mut self, at: Place) -> &mut TransactionSide {
        self.process(at).joining.as_mut().expect("it takes part")
    }

    /// The record's answer arrives, or that of a read.
    pub(crate) fn tell(&mut self, at: Place, told: Option<RecordState>, mistake: Mistake) {
        let side = &mut self.sides[at.side];
        let process = &mut side.processes[at.process];
        process.awaits = false;
        let Some(joining) = &mut process.joining else {
            return;
        };
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

    /// The process takes the step that is next, as far as it does so alone. `keeps_ids`: does the
    /// participant refuse to prepare what it has committed before, also if that is forgotten?
    pub(crate) fn step(&mut self, at: Place, mistake: Mistake, keeps_ids: bool) {
        let told = self.look(at.side);
        let side = &mut self.sides[at.side];
        let process = &mut side.processes[at.process];
        let Some(joining) = process.joining.as_mut() else {
            return;
        };
        let mut send = |change| {
            process.awaits = true;
            let is_used = mistake == Mistake::DiskAskedBefore;
            process.said_before = Some(side.disk).filter(|_| is_used);
            if !process.sent.contains(&change) {
                process.sent.push(change);
                process.sent.sort_by_key(|change| *change as u8);
            }
        };
        match joining.step() {
            JoinStep::Look | JoinStep::LookAgain | JoinStep::Wait => {
                self.tell(at, Some(told), mistake);
            }
            JoinStep::Vote => send(Change::Vote),
            JoinStep::Abort => send(Change::Abort),
            JoinStep::Finish => {
                send(Change::Finish);
                if mistake == Mistake::ForgottenBeforeFinished {
                    process.awaits = false;
                    joining.done();
                }
            }
            JoinStep::AskDisk => {
                let said = match mistake {
                    Mistake::DiskNotAskedAgain => Disk::Prepared,
                    Mistake::DiskAskedBefore => process.said_before.unwrap_or(side.disk),
                    Mistake::CommittedIsPrepared if side.disk == Disk::Committed => Disk::Prepared,
                    _ => side.disk,
                };
                let is_used = mistake == Mistake::OwnIsAborted;
                process.has_found_prepared = is_used && said == Disk::Prepared;
                joining.found(said);
            }
            JoinStep::Prepare if keeps_ids && side.applied > 0 => self.refuse(at, mistake),
            JoinStep::Prepare => {
                if mistake != Mistake::VoteBeforeDisk && side.disk == Disk::Nothing {
                    side.disk = Disk::Prepared;
                }
                joining.done();
            }
            JoinStep::Commit => {
                if side.disk == Disk::Prepared {
                    side.disk = Disk::Committed;
                    side.applied += 1;
                }
                joining.done();
            }
            JoinStep::RollBack => {
                if side.disk == Disk::Committed {
                    self.wrong = Some("rolled back what was committed");
                }
                side.undone |= u8::from(side.disk != Disk::Nothing);
                side.disk = Disk::Nothing;
                joining.done();
            }
            JoinStep::Forget => {
                side.disk = Disk::Nothing;
                joining.done();
            }
            JoinStep::Done(end) => self.ended(at, end, mistake),
        }
    }

    pub(crate) fn refuse(&mut self, at: Place, mistake: Mistake) {
        self.joining(at).refuse();
        self.process(at).has_refused = mistake == Mistake::RefusedIsAborted;
    }

    /// The caller of this process is told how it has ended.
    fn ended(&mut self, at: Place, end: JoinEnd, mistake: Mistake) {
        let process = self.process(at);
        let is_aborted = match end {
            JoinEnd::Aborted | JoinEnd::Refused => true,
            JoinEnd::Over => process.has_found_prepared || process.has_refused,
            JoinEnd::Committed | JoinEnd::NotPrepared => false,
        };
        process.stop();
        self.is_told_aborted |= is_aborted;
        if end == JoinEnd::NotPrepared && mistake != Mistake::ForgottenBeforeFinished {
            self.wrong = Some("the record has a vote that the disk does not know");
        }
        if end == JoinEnd::Committed && self.sides[at.side].applied == 0 {
            self.wrong = Some("told as committed, and not committed here");
        }
    }

    /// Was somebody told that it is aborted who should not have been?
    pub(crate) fn is_told_wrong(&self) -> bool {
        self.is_told_aborted && self.sides.iter().any(|side| side.applied > 0)
    }

    /// A process of the side starts again, and recovers what is on the disk.
    pub(crate) fn start_again(&mut self, at: Place, mistake: Mistake) {
        let side = &mut self.sides[at.side];
        let disk = match side.disk {
            Disk::Committed if mistake == Mistake::CommittedIsPrepared => Disk::Prepared,
            disk => disk,
        };
        let process = &mut side.processes[at.process];
        let joining = match mistake {
            Mistake::OnlyStarterDecides => TransactionSide::join(disk),
            _ => TransactionSide::recover(disk),
        };
        process.stop();
        process.joining = Some(joining).filter(|_| side.disk != Disk::Nothing);
    }

    /// A process of the side starts again, is not disturbed, and hears all answers. All others are
    /// stopped for ever. Is the side at its end then?
    pub(crate) fn recover_alone(&mut self, index: usize, mistake: Mistake) -> bool {
        let at = Place {
            side: index,
            process: 0,
        };
        self.start_again(at, mistake);
        for _ in 0..20 {
            if self.process(at).joining.is_none() {
                return true;
            }
            self.step(at, mistake, false);
            if self.process(at).awaits {
                let change = self.process(at).sent.pop().expect("it was sent");
                let told = self.change(index, change, mistake);
                self.tell(at, told, mistake);
            }
        }
        false
    }

    /// Does the record wait for a vote of the side? Then a recovery aborts it, at any time later.
    pub(crate) fn waits_for(&self, index: usize) -> bool {
        let waits = |record: &Record| {
            let mut all = record.participants();
            !record.is_committed() && all.any(|(name, voted)| name == NAMES[index] && !voted)
        };
        self.record.as_ref().is_some_and(waits)
    }

    /// Somebody aborts it who is not a side of it, or does not know whether it is.
    pub(crate) fn abort(&mut self) {
        Record::abort(&mut self.record, None).unwrap();
    }
}
