//! The loop that runs one side of a transaction: its steps, on the record and on its disk.

use super::{Decision, Participant, RecordRegister, read};
use crate::client::register::Value;
use crate::clock::{self, Time};
use crate::error::{JoinError, RegisterError, TransactionError};
use crate::registers::Version;
use crate::registers::transaction::{
    JoinEnd, JoinStep, Record, RecordState, TransactionId, TransactionSide,
};
use std::thread;
use std::time::Duration;

/// How often the record is asked when nothing is waited for: for the decision once the patience has
/// ended, and to note that this side has finished. Each takes several rounds, and a round fails if
/// a node is frozen, or its answer lost, for a moment, or if the other sides finish just then.
const ASKED_MAX: u32 = 3;

/// The pause before a step is repeated whose answer was lost.
const PAUSE: Duration = Duration::from_millis(20);

/// It is committed, and stays on the disk for the next recovery.
const LEFT: Decision = Decision::Committed;

pub(super) struct Side<'a, P> {
    pub(super) record: RecordRegister,
    pub(super) id: &'a TransactionId,
    pub(super) name: &'a str,
    pub(super) participant: &'a mut P,
    /// Until when it waits for the others.
    pub(super) until: Time,
}

impl<P: Participant> Side<'_, P> {
    pub(super) fn run(
        &mut self,
        mut joining: TransactionSide,
    ) -> Result<Decision, JoinError<P::Error>> {
        let (mut refusal, mut seen, mut asked) = (None, None, 0);
        loop {
            let step = joining.step();
            match step {
                JoinStep::Look => match self.look(&mut seen) {
                    Ok(told) => joining.learned(told),
                    Err(error) => return Err(JoinError::NotBegun(error)),
                },
                JoinStep::Vote | JoinStep::Wait | JoinStep::Abort => {
                    match self.ask(step, &mut seen) {
                        Ok(told) => joining.learned(told),
                        Err(error) => {
                            asked += u32::from(step == JoinStep::Abort);
                            if asked == ASKED_MAX || !may_pass(&error) {
                                return Err(refused_or(JoinError::Undecided(error), refusal));
                            }
                            thread::sleep(PAUSE);
                        }
                    }
                    if clock::now() >= self.until {
                        joining.lose_patience();
                    }
                }
                JoinStep::Prepare => match self.participant.prepare(self.id) {
                    Ok(()) => joining.done(),
                    Err(error) => {
                        refusal = Some(error);
                        joining.refuse();
                    }
                },
                JoinStep::Commit => {
                    let committed = self.participant.commit(self.id);
                    committed.map_err(|error| JoinError::unfinished(true, error))?;
                    asked = 0;
                    joining.done();
                }
                JoinStep::RollBack => {
                    let rolled_back = self.participant.roll_back(self.id);
                    rolled_back.map_err(|error| JoinError::unfinished(false, error))?;
                    joining.done();
                }
                JoinStep::Finish => {
                    match self.record.change(|record| Record::finish(record, self.name)) {
                        Ok(()) => joining.done(),
                        Err(error) => {
                            asked += 1;
                            if asked >= ASKED_MAX || !may_pass(&error) {
                                return Ok(LEFT);
                            }
                            thread::sleep(PAUSE);
                        }
                    }
                }
                JoinStep::Forget => match self.participant.forget(self.id) {
                    Ok(()) => joining.done(),
                    Err(_) => return Ok(LEFT),
                },
                JoinStep::Done(end) => return ended(end, refusal),
            }
        }
    }

    fn ask(
        &self,
        step: JoinStep,
        seen: &mut Option<Version>,
    ) -> Result<RecordState, TransactionError> {
        match step {
            JoinStep::Vote => self.record.change(|record| Record::vote(record, self.name)),
            JoinStep::Abort => self.record.change(|record| Record::abort(record, Some(self.name))),
            _ => {
                let wait = self.until.since(clock::now());
                let value = self.record.0.wait_for_change(*seen, wait)?;
                self.learn(value.as_ref(), seen)
            }
        }
    }

    fn look(&self, seen: &mut Option<Version>) -> Result<RecordState, TransactionError> {
        let value = self.record.0.read()?;
        self.learn(value.as_ref(), seen)
    }

    fn learn(
        &self,
        value: Option<&Value>,
        seen: &mut Option<Version>,
    ) -> Result<RecordState, TransactionError> {
        *seen = value.map(Value::version);
        let record = value.map(|value| read(value.bytes())).transpose()?;
        Ok(Record::look(record.as_ref(), self.name)?)
    }
}

/// May the same step succeed a moment later?
fn may_pass(error: &TransactionError) -> bool {
    use RegisterError::{NoQuorum, Unknown};
    matches!(error, TransactionError::Register(NoQuorum { .. } | Unknown))
}

/// A side that could not prepare has not voted: the others abort it when their patience ends.
fn refused_or<E>(error: JoinError<E>, refusal: Option<E>) -> JoinError<E> {
    refusal.map_or(error, JoinError::Refused)
}

fn ended<E>(end: JoinEnd, refusal: Option<E>) -> Result<Decision, JoinError<E>> {
    match end {
        JoinEnd::Committed => Ok(Decision::Committed),
        JoinEnd::Aborted => Ok(Decision::Aborted),
        JoinEnd::Over => Ok(Decision::Over),
        JoinEnd::Refused => Err(refused_or(JoinError::NotPrepared, refusal)),
        JoinEnd::NotPrepared => Err(JoinError::NotPrepared),
    }
}

impl<E> JoinError<E> {
    fn unfinished(is_committed: bool, error: E) -> Self {
        Self::Unfinished { is_committed, error }
    }
}
