//! What one side of a transaction does, in which order.
//!
//! ```text
//!   join:  Look ─▶ Prepare ─▶ Vote ─▶ Wait ──────────┐      ┌─▶ Commit ─▶ Finish ─▶ Forget
//!                     │        └───────┴─ impatient ─▶ Abort ─┼─▶ RollBack
//!   recover: prepared ┼──────────────────────────────▶  │      └─▶ AskDisk ─▶ any of them, or none
//!            committed ─▶ Finish ─▶ Forget   refused ───┘
//! ```
//!
//! The order of `Prepare` before `Vote` and of `Commit` before `Finish` is the protocol: the record
//! never says more than the disk.
//!
//! # What is concluded from a record that is not there
//!
//! It was aborted, or all sides have finished: each has noted its commit on its disk before, and
//! none prepares again. The two differ on the disk alone: **what is prepared there after the record
//! was found missing is aborted.** The disk must be asked then ([`AskDisk`](JoinStep::AskDisk)), as
//! what it said before may be old: this process may have been stopped, while another one of its
//! side has recovered, committed, finished and forgotten the transaction. No process can know that.
//!
//! Something that this call has prepared says nothing until the record is seen once more: where
//! another call of this side has ended the transaction before that, it was prepared too late.
//!
//! A call that finds the record open and removes it needs no disk: it has aborted the transaction.

use super::RecordState;

/// What the disk of a side says of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Disk {
    /// Nothing: it was never prepared, or was rolled back, or is forgotten.
    Nothing,
    Prepared,
    /// It is committed, and not forgotten.
    Committed,
}

/// The next step of a side.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum JoinStep {
    /// Read the record.
    Look,
    /// Read the record once more: it is committed, and the disk does not know of it.
    LookAgain,
    /// Prepare, on the disk.
    Prepare,
    /// Add the vote to the record.
    Vote,
    /// Wait until the record changes, and read it.
    Wait,
    /// Abort the transaction, unless it is committed.
    Abort,
    /// Ask what the disk says now, after what the record has told.
    AskDisk,
    /// Commit, on the disk.
    Commit,
    /// Roll back, on the disk.
    RollBack,
    /// Add to the record that this side has finished.
    Finish,
    /// Forget the transaction, on the disk.
    Forget,
    /// There is nothing left to do.
    Done(JoinEnd),
}

/// How it ended for one side.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum JoinEnd {
    /// It is committed, here as well.
    Committed,
    /// It is aborted, and nothing is left of it here.
    Aborted,
    /// It is over, or never was: neither the record nor the disk can tell how it has ended.
    Over,
    /// This side could not prepare, and has aborted it.
    Refused,
    /// The record has the vote of this side, but its disk does not know the transaction.
    NotPrepared,
}

/// One side of a transaction.
///
/// Take the [`step`](Self::step), and say how it went: [`learned`](Self::learned),
/// [`found`](Self::found) or [`done`](Self::done). A step whose answer was lost may be taken again.
/// Other processes may take steps of the same side at the same time.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TransactionSide {
    step: JoinStep,
    /// How it ends once it is rolled back.
    end: JoinEnd,
    /// What the record told last: for that, the disk is asked.
    told: RecordState,
    /// Has this call begun to prepare, and not seen the record since?
    is_unseen: bool,
}

impl TransactionSide {
    /// Takes part, with what the disk says.
    pub fn join(disk: Disk) -> Self {
        Self::begin(match disk {
            Disk::Nothing => JoinStep::Look,
            Disk::Prepared => JoinStep::Vote,
            Disk::Committed => JoinStep::Finish,
        })
    }

    /// Takes part in what this process has begun just now, with a disk that says nothing of it: the
    /// record was open when it was begun, so it need not be looked at.
    pub fn begun() -> Self {
        let mut begun = Self::join(Disk::Nothing);
        begun.learned(RecordState::Open);
        begun
    }

    /// Brings what is on the disk to its end.
    pub fn recover(disk: Disk) -> Self {
        Self::begin(match disk {
            Disk::Nothing => JoinStep::Done(JoinEnd::Over),
            Disk::Prepared => JoinStep::Abort,
            Disk::Committed => JoinStep::Finish,
        })
    }

    fn begin(step: JoinStep) -> Self {
        Self {
            step,
            end: JoinEnd::Aborted,
            told: RecordState::Open,
            is_unseen: false,
        }
    }

    /// What is to be done now.
    pub fn step(&self) -> JoinStep {
        self.step
    }

    /// How it ends once [`RollBack`](JoinStep::RollBack) is done.
    pub fn end(&self) -> JoinEnd {
        self.end
    }

    /// What the record told, in a step that reads or changes it.
    pub fn learned(&mut self, told: RecordState) {
        self.told = told;
        self.step = match (self.step, told) {
            (JoinStep::Look, RecordState::Open) => {
                self.is_unseen = true;
                JoinStep::Prepare
            }
            // This side may have committed and forgotten it.
            (JoinStep::Look, RecordState::Abort | RecordState::Absent) => {
                JoinStep::Done(JoinEnd::Over)
            }
            // Another process of this side has voted since the disk was asked.
            (JoinStep::Look, RecordState::Commit) => JoinStep::AskDisk,
            (JoinStep::Look, RecordState::FinishedBefore) => JoinStep::Done(JoinEnd::Committed),
            (JoinStep::LookAgain, RecordState::Commit) => JoinStep::Done(JoinEnd::NotPrepared),
            // Another process of this side has finished and forgotten it in between.
            (JoinStep::LookAgain, _) => JoinStep::Done(JoinEnd::Committed),
            (_, RecordState::Open) => {
                self.is_unseen = false;
                JoinStep::Wait
            }
            // This call has not voted. Another one may have.
            (_, RecordState::Commit) if self.end == JoinEnd::Refused => JoinStep::AskDisk,
            (_, RecordState::Commit) => JoinStep::Commit,
            (_, RecordState::Abort) => JoinStep::RollBack,
            (_, RecordState::Absent | RecordState::FinishedBefore) => JoinStep::AskDisk,
        };
    }

    /// What the disk said when it was [asked](JoinStep::AskDisk): after the record had told what it
    /// told last.
    pub fn found(&mut self, disk: Disk) {
        self.step = match (disk, self.told) {
            (Disk::Committed, RecordState::Commit) => JoinStep::Finish,
            (Disk::Committed, _) => JoinStep::Forget,
            (Disk::Prepared, RecordState::Commit) => JoinStep::Commit,
            (Disk::Nothing, RecordState::Commit) => JoinStep::LookAgain,
            (Disk::Nothing, RecordState::FinishedBefore) => JoinStep::Done(JoinEnd::Committed),
            (Disk::Nothing, _) => JoinStep::Done(JoinEnd::Over),
            // A late request has prepared once more what was committed before.
            (Disk::Prepared, RecordState::FinishedBefore) => {
                self.end = JoinEnd::Committed;
                JoinStep::RollBack
            }
            (Disk::Prepared, _) => {
                self.end = if self.is_unseen {
                    JoinEnd::Over
                } else {
                    JoinEnd::Aborted
                };
                JoinStep::RollBack
            }
        };
    }

    /// The step that changes the disk, or [`Finish`](JoinStep::Finish), was taken.
    pub fn done(&mut self) {
        self.step = match self.step {
            JoinStep::Prepare => JoinStep::Vote,
            JoinStep::Commit => JoinStep::Finish,
            JoinStep::Finish => JoinStep::Forget,
            JoinStep::Forget => JoinStep::Done(JoinEnd::Committed),
            JoinStep::RollBack => JoinStep::Done(self.end),
            other => other,
        };
    }

    /// This side cannot prepare. It has not voted, so it can have the transaction aborted.
    pub fn refuse(&mut self) {
        self.step = JoinStep::Abort;
        self.end = JoinEnd::Refused;
    }

    /// It has waited for long enough. Before the decision, it has the transaction aborted.
    pub fn lose_patience(&mut self) {
        if matches!(self.step, JoinStep::Vote | JoinStep::Wait) {
            self.step = JoinStep::Abort;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes steps: what the record tells, or `None` for a change of the disk.
    fn steps(joining: TransactionSide, answers: &[Option<RecordState>]) -> Vec<JoinStep> {
        let never_asked = |_| Disk::Nothing;
        steps_with(joining, answers, never_asked)
    }

    /// The same, with what the disk says when it is asked behind this many steps.
    fn steps_with(
        mut joining: TransactionSide,
        answers: &[Option<RecordState>],
        disk: impl Fn(usize) -> Disk,
    ) -> Vec<JoinStep> {
        let mut steps = vec![joining.step()];
        for answer in answers {
            match answer {
                Some(told) => joining.learned(*told),
                None => joining.done(),
            }
            steps.push(joining.step());
            if joining.step() == JoinStep::AskDisk {
                joining.found(disk(steps.len()));
                steps.push(joining.step());
            }
        }
        steps
    }

    #[test]
    fn the_disk_is_before_the_record() {
        use JoinStep::{Commit, Finish, Forget, Look, Prepare, Vote, Wait};
        let answers = [RecordState::Open; 2].map(Some);
        let answers = [
            answers[0],
            None,
            answers[1],
            Some(RecordState::Commit),
            None,
            None,
            None,
        ];
        let committed = JoinStep::Done(JoinEnd::Committed);
        assert_eq!(
            steps(TransactionSide::join(Disk::Nothing), &answers),
            [Look, Prepare, Vote, Wait, Commit, Finish, Forget, committed]
        );
    }

    #[test]
    fn who_comes_back_votes_again_or_aborts_and_does_not_prepare_again() {
        use JoinStep::{Abort, AskDisk, Commit, Done, Finish, Forget, RollBack, Vote};
        let end = Done(JoinEnd::Aborted);
        let both = || {
            let join = TransactionSide::join(Disk::Prepared);
            [
                (Vote, join),
                (Abort, TransactionSide::recover(Disk::Prepared)),
            ]
        };
        for (first, side) in both() {
            let aborted = [Some(RecordState::Abort), None];
            assert_eq!(steps(side, &aborted), [first, RollBack, end]);
        }
        for (first, side) in both() {
            let gone = [Some(RecordState::Absent), None];
            let taken = steps_with(side, &gone, |_| Disk::Prepared);
            assert_eq!(taken, [first, AskDisk, RollBack, end]);
        }
        assert_eq!(
            steps(TransactionSide::recover(Disk::Nothing), &[]),
            [Done(JoinEnd::Over)]
        );
        let committed = [Some(RecordState::Commit), None];
        assert_eq!(
            steps(TransactionSide::recover(Disk::Prepared), &committed),
            [Abort, Commit, Finish]
        );
        for joining in [
            TransactionSide::join(Disk::Committed),
            TransactionSide::recover(Disk::Committed),
        ] {
            let end = Done(JoinEnd::Committed);
            assert_eq!(steps(joining, &[None, None]), [Finish, Forget, end]);
        }
    }

    /// Another process of this side has gone on while this one was stopped.
    #[test]
    fn what_the_disk_said_before_the_record_was_gone_decides_nothing() {
        use JoinStep::{Abort, AskDisk, Done, Forget, Vote, Wait};
        let gone = [Some(RecordState::Absent)];
        let committed = Done(JoinEnd::Committed);
        for (first, begin) in [
            (Vote, TransactionSide::join as fn(Disk) -> TransactionSide),
            (Abort, TransactionSide::recover),
        ] {
            let forgotten = steps_with(begin(Disk::Prepared), &gone, |_| Disk::Nothing);
            assert_eq!(forgotten, [first, AskDisk, Done(JoinEnd::Over)]);
            let answers = [gone[0], None];
            let kept = steps_with(begin(Disk::Prepared), &answers, |_| Disk::Committed);
            assert_eq!(kept, [first, AskDisk, Forget, committed]);
        }
        let waited = [Some(RecordState::Open), gone[0]];
        let join = TransactionSide::join(Disk::Prepared);
        let forgotten = steps_with(join, &waited, |_| Disk::Nothing);
        assert_eq!(forgotten, [Vote, Wait, AskDisk, Done(JoinEnd::Over)]);
    }

    /// What this call has prepared is no sign that no other call has committed: not before the
    /// record was seen behind that.
    #[test]
    fn what_was_prepared_when_the_record_was_gone_is_not_told_as_aborted() {
        let before = [
            Some(RecordState::Open),
            None,
            Some(RecordState::Absent),
            None,
        ];
        let join = || TransactionSide::join(Disk::Nothing);
        let steps = steps_with(join(), &before, |_| Disk::Prepared);
        assert_eq!(
            steps[3..],
            [
                JoinStep::AskDisk,
                JoinStep::RollBack,
                JoinStep::Done(JoinEnd::Over)
            ]
        );
        let begun = steps_with(TransactionSide::begun(), &before[1..], |_| Disk::Prepared);
        assert_eq!(begun, steps[1..], "also by who has begun it");
        let open = Some(RecordState::Open);
        let seen = [open, None, open, Some(RecordState::Absent), None];
        let steps = steps_with(join(), &seen, |_| Disk::Prepared);
        assert_eq!(steps.last(), Some(&JoinStep::Done(JoinEnd::Aborted)));
    }

    #[test]
    fn a_late_request_applies_nothing() {
        use JoinStep::{AskDisk, Commit, Done, Finish, Look, LookAgain, Prepare, RollBack, Vote};
        let join = || TransactionSide::join(Disk::Nothing);
        for (told, end) in [
            (RecordState::Absent, JoinEnd::Over),
            (RecordState::FinishedBefore, JoinEnd::Committed),
        ] {
            assert_eq!(steps(join(), &[Some(told)]), [Look, Done(end)]);
        }
        let answers = [
            Some(RecordState::Open),
            None,
            Some(RecordState::FinishedBefore),
            None,
        ];
        let end = Done(JoinEnd::Committed);
        let expected = [Look, Prepare, Vote, AskDisk, RollBack, end];
        assert_eq!(steps_with(join(), &answers, |_| Disk::Prepared), expected);
        assert_eq!(
            steps(join(), &answers[..3]),
            [Look, Prepare, Vote, AskDisk, end]
        );
        // A vote that is not its own: of another process of this side, or of nobody whose disk this
        // is.
        let commit = Some(RecordState::Commit);
        for (told, end) in [
            (RecordState::Commit, JoinEnd::NotPrepared),
            (RecordState::FinishedBefore, JoinEnd::Committed),
            (RecordState::Absent, JoinEnd::Committed),
        ] {
            let expected = [Look, AskDisk, LookAgain, Done(end)];
            assert_eq!(steps(join(), &[commit, Some(told)]), expected);
        }
        for (disk, next) in [(Disk::Prepared, Commit), (Disk::Committed, Finish)] {
            assert_eq!(
                steps_with(join(), &[commit], |_| disk),
                [Look, AskDisk, next]
            );
        }
    }

    #[test]
    fn patience_ends_before_the_decision_and_not_after_it() {
        let mut joining = TransactionSide::join(Disk::Prepared);
        joining.learned(RecordState::Open);
        joining.lose_patience();
        assert_eq!(joining.step(), JoinStep::Abort);
        joining.learned(RecordState::Commit);
        joining.lose_patience();
        assert_eq!(joining.step(), JoinStep::Commit);
    }

    #[test]
    fn who_cannot_prepare_has_it_aborted() {
        let mut joining = TransactionSide::join(Disk::Nothing);
        joining.learned(RecordState::Open);
        joining.refuse();
        let steps = steps(joining, &[Some(RecordState::Abort), None]);
        let refused = JoinStep::Done(JoinEnd::Refused);
        assert_eq!(steps, [JoinStep::Abort, JoinStep::RollBack, refused]);
    }

    /// Its vote may be another process's, and a record that is gone may be that of a commit.
    #[test]
    fn who_cannot_prepare_says_so_only_if_it_has_aborted_it() {
        use JoinStep::{Abort, AskDisk, Commit, Done, RollBack};
        let refused = |told, disk| {
            let mut joining = TransactionSide::join(Disk::Nothing);
            joining.learned(RecordState::Open);
            joining.refuse();
            steps_with(joining, &[Some(told), None], |_| disk)
        };
        let gone = refused(RecordState::Absent, Disk::Nothing);
        assert_eq!(gone[..3], [Abort, AskDisk, Done(JoinEnd::Over)]);
        let gone = refused(RecordState::Absent, Disk::Prepared);
        assert_eq!(gone, [Abort, AskDisk, RollBack, Done(JoinEnd::Over)]);
        assert_eq!(
            refused(RecordState::Commit, Disk::Prepared)[..3],
            [Abort, AskDisk, Commit]
        );
    }
}
