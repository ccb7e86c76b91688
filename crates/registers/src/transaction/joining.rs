//! What one side of a transaction does, in which order.
//!
//! ```text
//!   join:  Look ─▶ Prepare ─▶ Vote ─▶ Wait ──────────┐      ┌─▶ Commit ─▶ Finish ─▶ Forget
//!                     │        └───────┴─ impatient ─▶ Abort ─┤
//!   recover: prepared ┼──────────────────────────────▶  │      └─▶ RollBack
//!            committed ─▶ Finish ─▶ Forget   refused ───┘
//! ```
//!
//! The order of `Prepare` before `Vote` and of `Commit` before `Finish` is the protocol: the record
//! never says more than the disk.

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
    /// Prepare, on the disk.
    Prepare,
    /// Add the vote to the record.
    Vote,
    /// Wait until the record changes, and read it.
    Wait,
    /// Abort the transaction, unless it is committed.
    Abort,
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
    /// It is over, or never was: neither the record nor the disk knows of it.
    Over,
    /// This side could not prepare. It is aborted.
    Refused,
    /// The record has the vote of this side, but its disk does not know the transaction.
    NotPrepared,
}

/// One side of a transaction.
///
/// Take the [`step`](Self::step), and say how it went: [`learned`](Self::learned) or
/// [`done`](Self::done). A step whose answer was lost may be taken again.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TransactionSide {
    step: JoinStep,
    /// How it ends once it is rolled back.
    end: JoinEnd,
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

    /// Brings what is on the disk to its end.
    pub fn recover(disk: Disk) -> Self {
        Self::begin(match disk {
            Disk::Nothing => JoinStep::Done(JoinEnd::Over),
            Disk::Prepared => JoinStep::Abort,
            Disk::Committed => JoinStep::Finish,
        })
    }

    fn begin(step: JoinStep) -> Self {
        Self { step, end: JoinEnd::Aborted }
    }

    /// What is to be done now.
    pub fn step(&self) -> JoinStep {
        self.step
    }

    /// What the record told, in a step that reads or changes it.
    pub fn learned(&mut self, told: RecordState) {
        self.step = match (self.step, told) {
            (JoinStep::Look, RecordState::Open) => JoinStep::Prepare,
            // This side may have committed and forgotten it.
            (JoinStep::Look, RecordState::Abort | RecordState::Absent) => {
                JoinStep::Done(JoinEnd::Over)
            }
            (JoinStep::Look, RecordState::Commit) => JoinStep::Done(JoinEnd::NotPrepared),
            (JoinStep::Look, RecordState::FinishedBefore) => JoinStep::Done(JoinEnd::Committed),
            (_, RecordState::Open) => JoinStep::Wait,
            // It never voted, and somebody did so in its name.
            (_, RecordState::Commit) if self.end == JoinEnd::Refused => {
                JoinStep::Done(JoinEnd::NotPrepared)
            }
            (_, RecordState::Commit) => JoinStep::Commit,
            (_, RecordState::Abort | RecordState::Absent) => JoinStep::RollBack,
            // A late request has prepared once more what was committed before.
            (_, RecordState::FinishedBefore) => {
                self.end = JoinEnd::Committed;
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
        (self.step, self.end) = (JoinStep::Abort, JoinEnd::Refused);
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
    fn steps(mut joining: TransactionSide, answers: &[Option<RecordState>]) -> Vec<JoinStep> {
        let mut steps = vec![joining.step()];
        for answer in answers {
            match answer {
                Some(told) => joining.learned(*told),
                None => joining.done(),
            }
            steps.push(joining.step());
        }
        steps
    }

    #[test]
    fn the_disk_is_before_the_record() {
        use JoinStep::{Commit, Finish, Forget, Look, Prepare, Vote, Wait};
        let answers = [RecordState::Open; 2].map(Some);
        let answers = [answers[0], None, answers[1], Some(RecordState::Commit), None, None, None];
        let committed = JoinStep::Done(JoinEnd::Committed);
        assert_eq!(
            steps(TransactionSide::join(Disk::Nothing), &answers),
            [Look, Prepare, Vote, Wait, Commit, Finish, Forget, committed]
        );
    }

    #[test]
    fn who_comes_back_votes_again_or_aborts_and_does_not_prepare_again() {
        use JoinStep::{Abort, Commit, Done, Finish, Forget, RollBack, Vote};
        let end = Done(JoinEnd::Aborted);
        for told in [RecordState::Abort, RecordState::Absent] {
            let aborted = [Some(told), None];
            assert_eq!(
                steps(TransactionSide::join(Disk::Prepared), &aborted),
                [Vote, RollBack, end]
            );
            assert_eq!(
                steps(TransactionSide::recover(Disk::Prepared), &aborted),
                [Abort, RollBack, end]
            );
        }
        assert_eq!(steps(TransactionSide::recover(Disk::Nothing), &[]), [Done(JoinEnd::Over)]);
        let committed = [Some(RecordState::Commit), None];
        assert_eq!(
            steps(TransactionSide::recover(Disk::Prepared), &committed),
            [Abort, Commit, Finish]
        );
        for joining in
            [TransactionSide::join(Disk::Committed), TransactionSide::recover(Disk::Committed)]
        {
            let end = Done(JoinEnd::Committed);
            assert_eq!(steps(joining, &[None, None]), [Finish, Forget, end]);
        }
    }

    #[test]
    fn a_late_request_applies_nothing() {
        use JoinStep::{Done, Look, Prepare, RollBack, Vote};
        let join = || TransactionSide::join(Disk::Nothing);
        for (told, end) in [
            (RecordState::Absent, JoinEnd::Over),
            (RecordState::FinishedBefore, JoinEnd::Committed),
            (RecordState::Commit, JoinEnd::NotPrepared),
        ] {
            assert_eq!(steps(join(), &[Some(told)]), [Look, Done(end)]);
        }
        for (told, end) in [
            (RecordState::Absent, JoinEnd::Aborted),
            (RecordState::FinishedBefore, JoinEnd::Committed),
        ] {
            let answers = [Some(RecordState::Open), None, Some(told), None];
            let expected = [Look, Prepare, Vote, RollBack, Done(end)];
            assert_eq!(steps(join(), &answers), expected);
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
}
