//! Participants of transactions, with the library's own steps and records, as
//! `src/registers/transaction.rs` and its `side.rs` have them. They die and come back; their disks,
//! which are in the `Ledger`, stay.
//!
//! Each client is a side, with its first thread. A client may also run a whole transaction, as
//! `sides.rs` there does: with all sides, beside the clients of those.
//!
//! Not simulated: how a side gets the id, and the list of all records, for which each is read.

use super::ledger::SIDES;
use super::{Outcome, from_transaction};
use crate::clock;
use crate::error::RegisterError;
use crate::mistake::Mistake;
use crate::registers::register::{Register, Thread};
use redlatch_protocol::time::Time;
use redlatch_registers::Draft;
use redlatch_registers::transaction::{
    Disk, FINISHED, JoinEnd, JoinStep, Record, RecordState, TransactionSide, VOTED,
};
use std::time::Duration;

const NAMES: [&str; SIDES] = ["a", "b", "c"];

/// How often an abort is asked for, and the pause before that.
const ASKED_MAX: u32 = 3;
const PAUSE: Duration = Duration::from_millis(20);

/// How long a change of a disk takes.
const WRITE: Duration = Duration::from_millis(1);

/// What a side is called to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Participation {
    Begin,
    Join {
        number: usize,
        patience: Duration,
        /// It cannot prepare.
        refuses: bool,
    },
    Recover,
    /// It has all sides. `refuses`: the last of them cannot prepare.
    Whole {
        refuses: bool,
    },
}

impl Thread {
    pub(super) async fn participate(&self, call: Participation) -> Result<Outcome, RegisterError> {
        match call {
            Participation::Begin => {
                let number = self.shared.ledger.borrow_mut().add();
                let record = Record::begin(&NAMES, 0).expect("there can be these");
                self.change(number, move |current| *current = Some(record.clone()))
                    .await?;
                self.shared.ledger.borrow_mut().begins(number);
            }
            Participation::Join {
                number,
                patience,
                refuses,
            } => {
                let joining = TransactionSide::join(self.disk(self.shared.side, number));
                let until = clock::now().after(patience);
                let side = self.shared.side;
                return self.join(side, joining, number, until, refuses).await;
            }
            Participation::Whole { refuses } => return self.run_whole(refuses).await,
            Participation::Recover => self.recover().await?,
        }
        Ok(Outcome::Done)
    }

    /// Ends all that is on the disk, and what waits for this side.
    async fn recover(&self) -> Result<(), RegisterError> {
        let side = self.shared.side;
        let count = self.shared.ledger.borrow().len();
        for number in 0..count {
            let disk = self.disk(side, number);
            if disk != Disk::Nothing {
                let joining = TransactionSide::recover(disk);
                self.join(side, joining, number, clock::now(), false)
                    .await?;
            } else if self.record(number).await?.is_some_and(|record| {
                let mut all = record.participants();
                !record.is_committed() && all.any(|(name, voted)| name == NAMES[side] && !voted)
            }) {
                self.change(number, |record| Record::abort(record, None))
                    .await?
                    .expect("no name");
            }
        }
        let over = self.shared.ledger.borrow_mut().recovered(side);
        for number in over {
            if let Some(record) = self.record(number).await? {
                self.shared
                    .ledger
                    .borrow_mut()
                    .report(number, &format!("stays: {record:?}"));
            }
        }
        Ok(())
    }

    /// Takes the steps of this side.
    async fn join(
        &self,
        side: usize,
        mut joining: TransactionSide,
        number: usize,
        until: Time,
        refuses: bool,
    ) -> Result<Outcome, RegisterError> {
        let mut asked = 0;
        loop {
            let step = joining.step();
            match step {
                JoinStep::Look | JoinStep::LookAgain => {
                    joining.learned(self.look(side, number).await?);
                }
                JoinStep::AskDisk => joining.found(self.disk(side, number)),
                JoinStep::Vote | JoinStep::Wait | JoinStep::Abort => {
                    match self.ask_record(side, step, number, until).await {
                        Ok(told) => joining.learned(told),
                        Err(failure) => {
                            asked += u32::from(step == JoinStep::Abort);
                            if asked == ASKED_MAX || !may_pass(&failure) {
                                return Err(failure);
                            }
                            self.pause(PAUSE).await;
                        }
                    }
                    if clock::now() >= until {
                        let is_voted = joining.step() == JoinStep::Wait;
                        if is_voted && self.shared.has(Mistake::RolledBackAlone) {
                            self.write(side, number, JoinStep::RollBack).await;
                            return Ok(Outcome::Aborted);
                        }
                        joining.lose_patience();
                    }
                }
                JoinStep::Prepare if refuses => joining.refuse(),
                JoinStep::Finish => {
                    self.finish(side, number).await?;
                    joining.done();
                }
                JoinStep::Done(end) => {
                    let mut ledger = self.shared.ledger.borrow_mut();
                    ledger.ends(number, side);
                    if end == JoinEnd::NotPrepared {
                        ledger.report(number, "has a vote that the disk does not know");
                    }
                    if end == JoinEnd::Aborted && ledger.has_committed(number) {
                        ledger.report(number, "is told as aborted");
                    }
                    return Ok(match end {
                        JoinEnd::Committed => Outcome::Committed,
                        JoinEnd::Over => Outcome::Done,
                        _ => Outcome::Aborted,
                    });
                }
                step => {
                    self.write(side, number, step).await;
                    joining.done();
                }
            }
        }
    }

    /// Notes that this side has finished.
    async fn finish(&self, side: usize, number: usize) -> Result<(), RegisterError> {
        let is_early = self.shared.has(Mistake::RecordRemovedEarly);
        let finish = move |record: &mut Option<Record>| {
            let told = Record::finish(record, NAMES[side]).expect("it takes part");
            *record = record.take().filter(|_| !is_early);
            told
        };
        if is_early {
            self.change(number, finish).await?;
        } else {
            self.raise(&NAMES[side..=side], number, FINISHED).await?;
        }
        Ok(())
    }

    /// Votes, waits or aborts.
    async fn ask_record(
        &self,
        side: usize,
        step: JoinStep,
        number: usize,
        until: Time,
    ) -> Result<RecordState, RegisterError> {
        let told = match step {
            JoinStep::Vote => {
                let record = self.raise(&NAMES[side..=side], number, VOTED).await?;
                Ok(told(record.as_ref(), side))
            }
            JoinStep::Abort if self.shared.has(Mistake::CommittedAborted) => {
                self.change(number, |record| *record = None).await?;
                return Ok(RecordState::Abort);
            }
            JoinStep::Abort => {
                self.change(number, move |record| {
                    Record::abort(record, Some(NAMES[side]))
                })
                .await?
            }
            _ => {
                self.pause(PAUSE.min(until.since(clock::now()))).await;
                return self.look(side, number).await;
            }
        };
        Ok(told.expect("it takes part"))
    }

    /// Notes that these sides have come so far, in place or by a change, and returns the record.
    async fn raise(
        &self,
        names: &'static [&'static str],
        number: usize,
        to: u8,
    ) -> Result<Option<Record>, RegisterError> {
        let record = Record::begin(&NAMES, 0).expect("there can be these");
        let levels = record.raised(names, to).expect("they take part");
        if let Some(raised) = self.record_register(number).raise(levels).await? {
            let record = raised.and_then(|it| Record::read(it.bytes()).expect("it is a record"));
            let is_done = |record: &Record| record.have(names, to) == Ok(true);
            if record.as_ref().is_none_or(is_done) {
                return Ok(record);
            }
        }
        self.change(number, move |record| {
            for name in names {
                let told = match to {
                    VOTED => Record::vote(record, name),
                    _ => Record::finish(record, name),
                };
                told.expect("it takes part");
            }
            record.clone()
        })
        .await
    }

    async fn look(&self, side: usize, number: usize) -> Result<RecordState, RegisterError> {
        let record = self.record(number).await?;
        Ok(told(record.as_ref(), side))
    }

    async fn record(&self, number: usize) -> Result<Option<Record>, RegisterError> {
        let value = self.record_register(number).read().await?;
        Ok(value.and_then(|value| Record::read(value.bytes()).expect("it is a record")))
    }

    /// Changes a record. What is not changed is not written.
    async fn change<T: 'static>(
        &self,
        number: usize,
        mut change: impl FnMut(&mut Option<Record>) -> T + 'static,
    ) -> Result<T, RegisterError> {
        let body = move |draft: &mut Draft| {
            let read = |bytes| Record::read(bytes).expect("it is a record");
            let before = draft.current().map(|value| value.bytes().to_vec());
            let mut record = before.as_deref().and_then(read);
            let result = change(&mut record);
            match record.map(|record| record.to_bytes()) {
                None => draft.delete(),
                after if after == before => {}
                Some(after) => _ = draft.put(after.into(), None),
            }
            result
        };
        // Nothing is remembered of it: others raise bytes of the record.
        self.record_register(number).change_alone(body).await
    }

    fn record_register(&self, number: usize) -> Register {
        self.register(from_transaction(number).to_string().as_bytes())
    }

    fn disk(&self, side: usize, number: usize) -> Disk {
        self.shared.ledger.borrow().disk(number, side)
    }

    /// Changes the disk. The process may die before or behind that.
    async fn write(&self, side: usize, number: usize, step: JoinStep) {
        self.pause(WRITE).await;
        self.shared.ledger.borrow_mut().step(number, side, step);
        self.pause(WRITE).await;
    }

    async fn pause(&self, pause: Duration) {
        let until = clock::now().after(pause);
        self.line.sleep(until).await;
    }
}

fn may_pass(error: &RegisterError) -> bool {
    use RegisterError::{NoQuorum, Unknown};
    matches!(error, NoQuorum { .. } | Unknown)
}

fn told(record: Option<&Record>, side: usize) -> RecordState {
    Record::look(record, NAMES[side]).expect("it takes part")
}

// A client that has all sides.

/// The sides that were asked to prepare, as `sides.rs` has them.
impl Thread {
    async fn run_whole(&self, refuses: bool) -> Result<Outcome, RegisterError> {
        let number = self.shared.ledger.borrow_mut().add();
        let record = Record::begin(&NAMES, 0).expect("there can be these");
        self.change(number, move |current| *current = Some(record.clone()))
            .await?;
        self.shared.ledger.borrow_mut().begins_whole(number);
        let mut sides = vec![TransactionSide::begun(); SIDES];
        for (side, joining) in sides.iter_mut().enumerate() {
            if side == SIDES - 1 {
                if self.shared.has(Mistake::VotedForAll) {
                    self.raise(&NAMES, number, VOTED).await?;
                }
                if refuses {
                    joining.refuse();
                    break;
                }
            }
            self.write(side, number, JoinStep::Prepare).await;
            joining.done();
        }
        if refuses {
            self.abort_whole(&mut sides, number).await;
        } else {
            self.vote_whole(&mut sides, number).await;
        }
        for (side, joining) in sides.iter_mut().enumerate() {
            if joining.step() == JoinStep::Commit {
                self.write(side, number, JoinStep::Commit).await;
                joining.done();
            }
        }
        let finish = sides.iter().all(|it| it.step() == JoinStep::Finish);
        if finish && self.raise(&NAMES, number, FINISHED).await.is_ok() {
            sides.iter_mut().for_each(TransactionSide::done);
        }
        let mut ended = Ok(Outcome::Done);
        for (side, joining) in sides.into_iter().enumerate().rev() {
            let one = self.join(side, joining, number, clock::now(), false).await;
            if ended == Ok(Outcome::Done) || one.is_err() {
                ended = one;
            }
        }
        ended
    }

    async fn vote_whole(&self, sides: &mut [TransactionSide], number: usize) {
        let record = self.raise(&NAMES, number, VOTED).await;
        for (side, joining) in sides.iter_mut().enumerate() {
            match &record {
                Ok(record) => joining.learned(told(record.as_ref(), side)),
                Err(_) => joining.lose_patience(),
            }
        }
    }

    async fn abort_whole(&self, sides: &mut [TransactionSide], number: usize) {
        let told = self
            .change(number, |record| Record::abort(record, None))
            .await;
        for joining in sides {
            joining.lose_patience();
            if told == Ok(Ok(RecordState::Abort)) {
                joining.learned(RecordState::Abort);
            }
        }
    }
}
