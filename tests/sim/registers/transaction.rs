//! Participants of transactions, whose steps are taken by the library's own loops. They die and
//! come back; their disks, which are in the `Ledger`, stay.
//!
//! Each client is a side, with its first thread. A client may also run a whole transaction, with
//! all sides, beside the clients of those.
//!
//! Not simulated: how a side gets the id, and the list of all records, for which each is read.

#[path = "../../../src/registers/transaction/participant.rs"]
#[allow(
    unreachable_pub,
    unfulfilled_lint_expectations,
    reason = "it is public in the library alone"
)]
mod participant;
#[path = "../../../src/registers/transaction/record_register.rs"]
mod record_register;
#[path = "../../../src/registers/transaction/side.rs"]
mod side;
#[path = "../../../src/registers/transaction/sides.rs"]
mod sides;

use super::register::Thread;
use crate::clock;
use crate::error::{JoinError, RegisterError, TransactionError};
use crate::register::{GROUP, Ledger, Outcome, SIDES, from_transaction};
use participant::{Decision, Participant, disk};
use record_register::RecordRegister;
use redlatch_registers::transaction::{
    Disk, JoinStep, Record, TransactionId, TransactionSide, VOTED,
};
use side::Side;
use sides::Sides;
use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

const NAMES: [&str; SIDES] = ["a", "b", "c"];

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
    pub(crate) async fn participate(&self, call: Participation) -> Result<Outcome, RegisterError> {
        match call {
            Participation::Begin => {
                let (number, record) = self.begin().await?;
                self.shared.ledger.borrow_mut().begins(number);
                self.shared.memory.began(id_of(number), record);
                Ok(Outcome::Done)
            }
            Participation::Join {
                number,
                patience,
                refuses,
            } => self.join(number, patience, refuses).await,
            Participation::Whole { refuses } => self.run_whole(refuses).await,
            Participation::Recover => self.recover().await,
        }
    }

    /// Begins a transaction, as `Transactions::begin` of the library does.
    async fn begin(&self) -> Result<(usize, Record), RegisterError> {
        let record = Record::begin(&NAMES, clock::wall_micros()).expect("there can be these");
        let number = self.shared.ledger.borrow_mut().add();
        let bytes = record.to_bytes();
        match self.record(number).register.create(&bytes).await {
            Err(RegisterError::Unknown) => {
                let number = self.shared.ledger.borrow_mut().add();
                let register = self.record(number);
                let change = register.change(|current| {
                    *current = Some(record.clone());
                    Ok(())
                });
                change.await.map_err(of_register)?;
                Ok((number, record))
            }
            created => created.map(|()| (number, record)),
        }
    }

    /// Joins a transaction, as `Transactions::join` of the library does.
    async fn join(
        &self,
        number: usize,
        patience: Duration,
        refuses: bool,
    ) -> Result<Outcome, RegisterError> {
        let until = clock::now().after(patience);
        let id = id_of(number);
        let name = NAMES[self.shared.side];
        let mut participant = self.participant(self.shared.side, refuses);
        let disk = self.shared.ledger.borrow().disk(number, self.shared.side);
        let begun = self.shared.memory.joins(&id, name);
        let seen = begun.filter(|_| disk == Disk::Nothing);
        let joining = match &seen {
            Some(_) => TransactionSide::begun(),
            None => TransactionSide::join(disk),
        };
        let mut side = Side {
            record: &self.record(number),
            id: &id,
            name,
            participant: &mut participant,
            until,
            seen,
            refusal: None,
        };
        let result = side.run(joining).await;
        self.note_end(number, result)
    }

    /// Ends all that is on the disk, and what waits for this side.
    async fn recover(&self) -> Result<Outcome, RegisterError> {
        let count = self.shared.ledger.borrow().len();
        for number in 0..count {
            self.recover_one(number).await?;
        }
        let over = self.shared.ledger.borrow_mut().recovered(self.shared.side);
        for number in over {
            let record = self.record(number).look().await;
            if let Some(record) = record.map_err(of_register)? {
                let text = format!("stays: {record:?}");
                self.shared.ledger.borrow_mut().report(number, &text);
            }
        }
        Ok(Outcome::Done)
    }

    async fn recover_one(&self, number: usize) -> Result<(), RegisterError> {
        let record = self.record(number);
        let name = NAMES[self.shared.side];
        let mut participant = self.participant(self.shared.side, false);
        let found = disk(&mut participant, &record.id).expect("disks do not fail");
        if found != Disk::Nothing {
            let mut side = Side {
                record: &record,
                id: &record.id,
                name,
                participant: &mut participant,
                until: clock::now(),
                seen: None,
                refusal: None,
            };
            let result = side.run(TransactionSide::recover(found)).await;
            self.note_end(number, result)?;
            let left = disk(&mut participant, &record.id).expect("disks do not fail");
            // What could not be ended is there for the next call.
            return match left {
                Disk::Nothing => Ok(()),
                Disk::Prepared | Disk::Committed => Err(RegisterError::Unknown),
            };
        }
        let seen = record.look().await.map_err(of_register)?;
        let is_awaited = seen.is_some_and(|seen| {
            let mut all = seen.participants();
            !seen.is_committed() && all.any(|(it, has_voted)| it == name && !has_voted)
        });
        if is_awaited {
            let abort = |record: &mut Option<Record>| Record::abort(record, None);
            record.change(abort).await.map_err(of_register)?;
        }
        Ok(())
    }

    /// Runs all sides, as `Transactions::run` of the library does.
    async fn run_whole(&self, refuses: bool) -> Result<Outcome, RegisterError> {
        let (number, begun) = self.begin().await?;
        self.shared.ledger.borrow_mut().begins_whole(number);
        let mut participants = [0, 1, 2].map(|side| self.participant(side, false));
        participants[SIDES - 1].refuses = refuses;
        let mut sides: Vec<(&str, &mut dyn Participant<Error = Refused>)> = Vec::new();
        for (name, participant) in NAMES.into_iter().zip(&mut participants) {
            sides.push((name, participant));
        }
        self.shared.whole.set(Some(number));
        let record = self.record(number);
        let asked = Sides::prepare(&record, &begun, &mut sides).await;
        let result = asked.run().await;
        self.shared.whole.set(None);
        self.note_end(number, result)
    }

    /// For a mistake.
    pub(super) async fn vote_for_all(&self, number: usize) -> Result<(), TransactionError> {
        let record = self.record(number);
        let begun = record.look().await?;
        record.raise(begun.as_ref(), &NAMES, VOTED).await?;
        Ok(())
    }

    /// The record of a transaction.
    fn record(&self, number: usize) -> RecordRegister<'_> {
        let name = from_transaction(number).to_string();
        RecordRegister {
            caller: self.caller(),
            id: id_of(number),
            register: self.register(name.as_bytes()),
        }
    }

    fn participant(&self, side: usize, refuses: bool) -> DiskOfSide {
        DiskOfSide {
            ledger: Rc::clone(&self.shared.ledger),
            side,
            refuses,
        }
    }

    /// What this client is told of a transaction, which must be true.
    fn note_end(
        &self,
        number: usize,
        result: Result<Decision, JoinError<Refused>>,
    ) -> Result<Outcome, RegisterError> {
        let mut ledger = self.shared.ledger.borrow_mut();
        let outcome = match result {
            Ok(Decision::Committed) => Outcome::Committed,
            Ok(Decision::Over) => Outcome::Done,
            Ok(Decision::Aborted) => {
                if ledger.has_committed(number) {
                    ledger.report(number, "is told as aborted");
                }
                Outcome::Aborted
            }
            Err(JoinError::Refused(Refused)) => Outcome::Aborted,
            Err(JoinError::NotPrepared) => {
                ledger.report(number, "has a vote that the disk does not know");
                Outcome::Aborted
            }
            Err(JoinError::NotBegun(error) | JoinError::Undecided(error)) => {
                return Err(of_register(error));
            }
            Err(JoinError::Disk(_) | JoinError::Unfinished { .. }) => {
                unreachable!("disks do not fail")
            }
        };
        if ledger.disk(number, self.shared.side) == Disk::Nothing {
            ledger.ends(number, self.shared.side);
        }
        Ok(outcome)
    }
}

fn id_of(number: usize) -> TransactionId {
    TransactionId::new(GROUP, number as u128)
}

fn of_register(error: TransactionError) -> RegisterError {
    match error {
        TransactionError::Register(error) => error,
        error => unreachable!("{error:?}"),
    }
}

/// A side, and its disk.
struct DiskOfSide {
    ledger: Rc<RefCell<Ledger>>,
    side: usize,
    /// It cannot prepare.
    refuses: bool,
}

#[derive(Debug)]
struct Refused;

impl DiskOfSide {
    fn take(&self, id: &TransactionId, step: JoinStep) -> Result<(), Refused> {
        let mut ledger = self.ledger.borrow_mut();
        let mut numbers = 0..ledger.len();
        let number = numbers.find(|number| id_of(*number) == *id);
        ledger.step(number.expect("it was begun"), self.side, step);
        Ok(())
    }

    fn with(&self, disk: Disk) -> Result<Vec<TransactionId>, Refused> {
        let ledger = self.ledger.borrow();
        let numbers = (0..ledger.len()).filter(|number| ledger.disk(*number, self.side) == disk);
        Ok(numbers.map(id_of).collect())
    }
}

impl Participant for DiskOfSide {
    type Error = Refused;

    fn prepare(&mut self, id: &TransactionId) -> Result<(), Refused> {
        if self.refuses {
            return Err(Refused);
        }
        self.take(id, JoinStep::Prepare)
    }

    fn commit(&mut self, id: &TransactionId) -> Result<(), Refused> {
        self.take(id, JoinStep::Commit)
    }

    fn roll_back(&mut self, id: &TransactionId) -> Result<(), Refused> {
        self.take(id, JoinStep::RollBack)
    }

    fn prepared(&mut self) -> Result<Vec<TransactionId>, Refused> {
        self.with(Disk::Prepared)
    }

    fn committed(&mut self) -> Result<Vec<TransactionId>, Refused> {
        self.with(Disk::Committed)
    }

    fn forget(&mut self, id: &TransactionId) -> Result<(), Refused> {
        self.take(id, JoinStep::Forget)
    }
}
