//! A whole transaction in one process, which has all of its sides: what the record is told of them
//! is told at once.
//!
//! # Why this is safe
//!
//! Each side takes the steps of [`TransactionSide`], as in a call of `join` of its own, and shares
//! the rounds with the others. So what happens here is one of the things that happen among as many
//! processes which call `join`, with steps that fall together; and `tests/transaction_search` goes
//! through all of these. In particular:
//!
//! - Nobody looks at the record before preparing: its begin has returned here, which says the same.
//! - The votes are raised together, behind the last side that prepares, and so behind each. Each
//!   byte counts on its own, as if several had voted at one time. A node has raised all or none.
//! - That all have finished is raised together, behind the last commit, of those that have
//!   committed. Each forgets behind that.
//! - Unless the record says that it is committed, each side goes on alone.
//!
//! # Why the record is not begun with the votes
//!
//! That would save a round, and commit on one side what another has rolled back. What is prepared
//! is rolled back if there is no record: so nobody may begin it later. A process that prepares
//! first may be stopped before it begins the record; another one recovers meanwhile, finds none,
//! and rolls back; then the first one goes on. Two-phase commit with presumed abort has no such
//! process: only its coordinator answers. Here, whoever finds no record would have to leave a
//! deletion with a ballot above that of the begin, which the id would have to name: reads of what
//! is not there would write, and each side that is rolled back would leave a tombstone. The search
//! has it as a mistake, `BegunWithVotes`.
//!
//! A promise above that ballot would do in place of the deletion, as the floor keeps it when it is
//! collected. But the floor is that of all registers: of two transactions, the one whose sides take
//! longer to prepare would find its ballot below what the other has left there.
//!
//! # Why the answer that they have finished is waited for
//!
//! A side forgets behind it. If the message was lost by then, nobody would finish, and the record
//! would stay for ever. A recovery could finish what is committed and not on its disk. But it would
//! take a disk that was lost, or one of another process that has the same name by mistake, for one
//! that has forgotten; and the process that is prepared would find that its side has finished, and
//! roll back what is committed. And one that is asked late to join would commit once more what its
//! side has forgotten. The search has these as mistakes, `AllForgottenBeforeFinished` and
//! `ForgottenBeforeFinished`.

use super::participant::{Decision, Participant};
use super::record_register::RecordRegister;
use super::side::Side;
use crate::clock;
use crate::error::{JoinError, RegisterError, TransactionError};
use redlatch_registers::transaction::{
    FINISHED, JoinStep, Record, RecordState, TransactionSide, VOTED,
};

/// The sides that were asked to prepare.
pub(super) struct Sides<'a, E> {
    record: &'a RecordRegister<'a>,
    begun: &'a Record,
    sides: Vec<AskedSide<'a, E>>,
    /// Why the last one could not prepare.
    refusal: Option<E>,
}

struct AskedSide<'a, E> {
    name: &'a str,
    participant: &'a mut dyn Participant<Error = E>,
    joining: TransactionSide,
}

impl<'a, E> Sides<'a, E> {
    /// Prepares one after another, until one cannot.
    pub(super) async fn prepare(
        record: &'a RecordRegister<'a>,
        begun: &'a Record,
        all: &'a mut [(&str, &mut dyn Participant<Error = E>)],
    ) -> Self {
        let mut sides = Vec::with_capacity(all.len());
        let mut refusal = None;
        for (name, participant) in all {
            let mut joining = TransactionSide::begun();
            let prepare = || participant.prepare(&record.id);
            match record.caller.act(prepare).await {
                Ok(()) => joining.done(),
                Err(error) => {
                    joining.refuse();
                    refusal = Some(error);
                }
            }
            sides.push(AskedSide {
                name,
                participant: &mut **participant,
                joining,
            });
            if refusal.is_some() {
                break;
            }
        }
        Self {
            record,
            begun,
            sides,
            refusal,
        }
    }

    pub(super) async fn run(mut self) -> Result<Decision, JoinError<E>> {
        match self.refusal {
            None => self.vote().await,
            Some(_) => self.abort().await,
        }
        for side in &mut self.sides {
            if side.joining.step() == JoinStep::Commit {
                // What fails is repeated by the side alone, which tells why.
                let commit = || side.participant.commit(&self.record.id);
                if self.record.caller.act(commit).await.is_ok() {
                    side.joining.done();
                }
            }
        }
        self.finish().await;
        self.end().await
    }

    /// All votes in one round.
    async fn vote(&mut self) {
        let told = self.raise(JoinStep::Vote, VOTED).await;
        for side in &mut self.sides {
            let told = match &told {
                Ok(record) => Record::look(record.as_ref(), side.name).ok(),
                Err(_) => None,
            };
            match told {
                Some(told) => side.joining.learned(told),
                // They may have arrived: whether it is committed, an attempt to abort it says.
                None => side.joining.lose_patience(),
            }
        }
    }

    /// One of them cannot prepare.
    async fn abort(&mut self) {
        let abort = |record: &mut Option<Record>| Record::abort(record, None);
        let told = self.record.change(abort).await;
        for side in &mut self.sides {
            side.joining.lose_patience();
            if matches!(told, Ok(RecordState::Abort)) {
                side.joining.learned(RecordState::Abort);
            }
        }
    }

    /// Notes in one round that those that have committed have finished. If it fails, each tries
    /// again.
    async fn finish(&mut self) {
        if self.raise(JoinStep::Finish, FINISHED).await.is_err() {
            return;
        }
        for side in &mut self.sides {
            if side.joining.step() == JoinStep::Finish {
                side.joining.done();
            }
        }
    }

    /// Notes in the record that those at this step have come so far.
    async fn raise(&self, at: JoinStep, to: u8) -> Result<Option<Record>, TransactionError> {
        let mut names = Vec::with_capacity(self.sides.len());
        for side in &self.sides {
            if side.joining.step() == at {
                names.push(side.name);
            }
        }
        if names.is_empty() {
            return Ok(None);
        }
        self.record.raise(Some(self.begun), &names, to).await
    }

    /// Each side goes on alone, the one that could not prepare first. Where no majority answers,
    /// the others stay as they are.
    async fn end(mut self) -> Result<Decision, JoinError<E>> {
        let mut decision = Decision::Over;
        let mut failure = None;
        for side in self.sides.into_iter().rev() {
            let mut alone = Side {
                record: self.record,
                id: &self.record.id,
                name: side.name,
                participant: side.participant,
                until: clock::now(),
                seen: Some(self.begun.clone()),
                refusal: self.refusal.take(),
            };
            match alone.run(side.joining).await {
                // What one of them knows is true of all.
                Ok(Decision::Over) => {}
                Ok(known) => decision = known,
                Err(error) => {
                    // The others would ask the same nodes in vain, one after another.
                    let is_unreached = lacks_majority(&error);
                    failure = failure.or(Some(error));
                    if is_unreached {
                        break;
                    }
                }
            }
        }
        failure.map_or(Ok(decision), Err)
    }
}

/// Is the decision not known because too few nodes answered?
fn lacks_majority<E>(error: &JoinError<E>) -> bool {
    use TransactionError::Register;
    matches!(
        error,
        JoinError::Undecided(Register(RegisterError::NoQuorum { .. }))
    )
}
