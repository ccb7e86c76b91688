//! The loop that runs one side of a transaction: its steps, on the record and on its disk.

use super::participant::{Decision, Participant, disk};
use super::record_register::{RecordRegister, read};
use crate::clock::{self, Time};
use crate::error::{JoinError, RegisterError, TransactionError};
use crate::registers::register::Value;
use redlatch_registers::transaction::{
    FINISHED, JoinEnd, JoinStep, Record, RecordState, TransactionId, TransactionSide, VOTED,
};
use std::time::Duration;

/// How often the record is asked when nothing is waited for: for the decision once the patience has
/// ended, and to note that this side has finished. Each takes several rounds, and a round fails if
/// a node is frozen, or its answer lost, for a moment, or if the other sides finish just then.
const ASKED_MAX: u32 = 3;

/// The pause before a step is repeated whose answer was lost.
const PAUSE: Duration = Duration::from_millis(20);

/// It is committed, and stays on the disk for the next recovery.
pub(super) const LEFT: Decision = Decision::Committed;

pub(super) struct Side<'a, P: Participant + ?Sized> {
    pub(super) record: &'a RecordRegister<'a>,
    pub(super) id: &'a TransactionId,
    pub(super) name: &'a str,
    pub(super) participant: &'a mut P,
    /// Until when it waits for the others.
    pub(super) until: Time,
    /// The record, as it was looked at first.
    pub(super) seen: Option<Record>,
    /// Why it could not prepare.
    pub(super) refusal: Option<P::Error>,
}

impl<P: Participant + ?Sized> Side<'_, P> {
    pub(super) async fn run(
        &mut self,
        mut joining: TransactionSide,
    ) -> Result<Decision, JoinError<P::Error>> {
        let mut asked = 0;
        loop {
            let step = joining.step();
            match step {
                JoinStep::Look => {
                    let told = self.look().await;
                    joining.learned(told.map_err(JoinError::NotBegun)?);
                }
                JoinStep::Vote | JoinStep::Wait | JoinStep::Abort | JoinStep::LookAgain => {
                    match self.ask(step).await {
                        Ok(told) => joining.learned(told),
                        Err(error) => {
                            let is_last = matches!(step, JoinStep::Abort | JoinStep::LookAgain);
                            asked += u32::from(is_last);
                            if asked == ASKED_MAX || !may_pass(&error) {
                                // Also if it could not prepare: another process of this side may
                                // have voted.
                                return Err(JoinError::Undecided(error));
                            }
                            self.record.caller.pause(PAUSE).await;
                        }
                    }
                    if clock::now() >= self.until {
                        joining.lose_patience();
                    }
                }
                JoinStep::Prepare => match self.step(P::prepare).await {
                    Ok(()) => joining.done(),
                    Err(error) => {
                        self.refusal = Some(error);
                        joining.refuse();
                    }
                },
                JoinStep::AskDisk => {
                    let disk = disk(self.participant, self.id).map_err(JoinError::Disk)?;
                    joining.found(disk);
                }
                JoinStep::Commit => {
                    let committed = self.step(P::commit).await;
                    committed.map_err(|error| JoinError::unfinished(true, error))?;
                    asked = 0;
                    joining.done();
                }
                JoinStep::RollBack => {
                    let rolled_back = self.step(P::roll_back).await;
                    rolled_back.map_err(|error| not_rolled_back(joining.end(), error))?;
                    joining.done();
                }
                JoinStep::Finish => match self.raise(FINISHED).await {
                    Ok(_) => joining.done(),
                    Err(error) => {
                        asked += 1;
                        if asked >= ASKED_MAX || !may_pass(&error) {
                            return Ok(LEFT);
                        }
                        self.record.caller.pause(PAUSE).await;
                    }
                },
                JoinStep::Forget => match self.step(P::forget).await {
                    Ok(()) => joining.done(),
                    Err(_) => return Ok(LEFT),
                },
                JoinStep::Done(end) => return ended(end, self.refusal.take()),
            }
        }
    }

    /// The participant takes a step.
    async fn step(
        &mut self,
        step: fn(&mut P, &TransactionId) -> Result<(), P::Error>,
    ) -> Result<(), P::Error> {
        let caller = self.record.caller;
        caller.act(|| step(self.participant, self.id)).await
    }

    async fn ask(&mut self, step: JoinStep) -> Result<RecordState, TransactionError> {
        match step {
            JoinStep::Vote => self.raise(VOTED).await,
            JoinStep::Abort => {
                let abort = |record: &mut Option<Record>| Record::abort(record, Some(self.name));
                self.record.change(abort).await
            }
            JoinStep::LookAgain => self.look().await,
            _ => {
                let wait = self.until.since(clock::now());
                let decided = self.record.wait_until(wait, |value| {
                    let record = read(value.map(Value::bytes));
                    let told = record.map(|record| Record::look(record.as_ref(), self.name));
                    !matches!(told, Ok(Ok(RecordState::Open)))
                });
                let record = decided.await?;
                Ok(Record::look(record.as_ref(), self.name)?)
            }
        }
    }

    async fn raise(&self, to: u8) -> Result<RecordState, TransactionError> {
        let seen = self.seen.as_ref();
        let record = self.record.raise(seen, &[self.name], to).await?;
        Ok(Record::look(record.as_ref(), self.name)?)
    }

    async fn look(&mut self) -> Result<RecordState, TransactionError> {
        self.seen = self.record.look().await?;
        Ok(Record::look(self.seen.as_ref(), self.name)?)
    }
}

/// May the same step succeed a moment later?
fn may_pass(error: &TransactionError) -> bool {
    use RegisterError::{NoQuorum, Unknown};
    matches!(error, TransactionError::Register(NoQuorum { .. } | Unknown))
}

/// What was prepared stays so. Only where it is known to be aborted may the caller be told that.
fn not_rolled_back<E>(end: JoinEnd, error: E) -> JoinError<E> {
    match end {
        JoinEnd::Aborted | JoinEnd::Refused => JoinError::unfinished(false, error),
        JoinEnd::Committed => JoinError::unfinished(true, error),
        JoinEnd::Over | JoinEnd::NotPrepared => JoinError::Disk(error),
    }
}

fn ended<E>(end: JoinEnd, refusal: Option<E>) -> Result<Decision, JoinError<E>> {
    match end {
        JoinEnd::Committed => Ok(Decision::Committed),
        JoinEnd::Aborted => Ok(Decision::Aborted),
        JoinEnd::Over => Ok(Decision::Over),
        JoinEnd::Refused => Err(refusal.map_or(JoinError::NotPrepared, JoinError::Refused)),
        JoinEnd::NotPrepared => Err(JoinError::NotPrepared),
    }
}

impl<E> JoinError<E> {
    fn unfinished(is_committed: bool, error: E) -> Self {
        Self::Unfinished {
            is_committed,
            error,
        }
    }
}
