//! Two processes change two databases, or none does: see [`LockClient::transactions`] and
//! [`guide::transactions`](crate::guide::transactions).
//!
//! The record of a transaction is the value of a register.

mod participant;
mod record_register;
mod side;
mod sides;

pub use crate::error::{JoinError, NamesError, RecoverError, TransactionError};
pub use participant::{Decision, Participant};
#[doc(inline)]
pub use redlatch_registers::transaction::{PARTICIPANT_NAME_MAX, PARTICIPANTS_MAX, TransactionId};

#[cfg(doc)]
use super::register::Registers;
use super::register::Value;
use crate::backend::at_once;
use crate::client::LockClient;
use crate::clock;
use crate::entropy::draw;
use crate::error::RegisterError;
use participant::disk;
use record_register::{RecordRegister, read};
use redlatch_registers::transaction::{Disk, Record, RecordState, TransactionSide};
use side::{LEFT, Side};
use sides::Sides;
use std::pin::pin;
use std::time::Duration;

/// What precedes the id in the name of the record's register. Users' names cannot contain it.
const NAME: &str = ":redlatch:transaction:";

impl LockClient {
    /// Transactions: changes in two or more places, or in none of them. [Read first when not to use
    /// them](crate::guide::transactions). Sends nothing.
    #[must_use]
    pub fn transactions(&self) -> Transactions<'_> {
        Transactions { client: self }
    }
}

/// The transactions of a client's nodes: see [`LockClient::transactions`].
#[derive(Clone, Copy, Debug)]
pub struct Transactions<'a> {
    client: &'a LockClient,
}

impl Transactions<'_> {
    /// Begins a transaction between these participants. Give the id to each of them, who then
    /// [joins](Self::join).
    ///
    /// Names have 1 to 64 bytes and differ; there may be 1 to 16 of them.
    ///
    /// Takes one round; three where another client has repaired a node meanwhile, or the clock of
    /// this one is far behind while a node is down. If it fails, nobody can vote, as nobody knows
    /// the id; a record of a transaction without votes may be left, which
    /// [`list`](Self::list) shows.
    ///
    /// # Errors
    ///
    /// There cannot be these participants, or the nodes' register could not be written.
    pub fn begin(&self, names: &[&str]) -> Result<TransactionId, TransactionError> {
        let record = Record::begin(names, clock::wall_micros())?;
        let id = at_once(pin!(self.create(&record)))?;
        let nodes = self.client.core.register_nodes()?;
        nodes.caller.memory().began(id, record);
        Ok(id)
    }

    async fn create(&self, record: &Record) -> Result<TransactionId, TransactionError> {
        let nodes = self.client.core.register_nodes()?;
        let group = nodes.group().await?.id;
        let id = draw_id(group)?;
        // Nobody knows the name yet, and nobody makes a record of none.
        let register = self.record(&id).await?.register;
        match register.create(&record.to_bytes()).await {
            // The nodes' floor was above its ballot, or they are in a later epoch. So it is not
            // known whether there is such a record, and nobody knows its id.
            Err(RegisterError::Unknown) => {
                let id = draw_id(group)?;
                let register = self.record(&id).await?;
                let change = register.change(|current| {
                    *current = Some(record.clone());
                    Ok(())
                });
                change.await?;
                Ok(id)
            }
            created => created.map(|()| id).map_err(TransactionError::from),
        }
    }

    /// Takes part in a transaction: prepares, votes, waits for the others, and commits or rolls
    /// back. After `patience` it aborts the transaction, unless all have voted.
    ///
    /// `name` is one of those that were given to [`begin`](Self::begin). Called again with the same
    /// id, also in another process after a crash, it goes on with what is on the participant's
    /// disk, and applies nothing twice. Called once more after that has come to its end, or where
    /// the others have aborted before it was prepared, it cannot tell how: [`Decision::Over`].
    ///
    /// Other processes with the same disk may call it, or [`recover`](Self::recover), at the same
    /// time: what it returns is right, and `Over` where another one has brought the transaction to
    /// its end. If several may be asked to join the same transaction,
    /// [`prepare`](Participant::prepare) must fail for what was committed before. A `recover` of
    /// the same name aborts a transaction that is not prepared yet.
    ///
    /// `patience` is for the other participants. This call takes the participant's own time as
    /// well, and a round for each step; up to four after an abort or the loss of a node. The one
    /// who votes last waits for nobody.
    ///
    /// # Errors
    ///
    /// The participant cannot prepare, or something of it or of the nodes has failed: [`JoinError`]
    /// says what that means for the transaction. After a vote, an error never means that it is
    /// aborted.
    pub fn join<P: Participant>(
        &self,
        id: &TransactionId,
        name: &str,
        participant: &mut P,
        patience: Duration,
    ) -> Result<Decision, JoinError<P::Error>> {
        let until = clock::now().after(patience);
        let disk = disk(participant, id).map_err(JoinError::Disk)?;
        let record = match at_once(pin!(self.record(id))) {
            Ok(record) => record,
            Err(error) => return unreached(disk, error),
        };
        let seen = self.begun_by_this_client(id, name, disk);
        let joining = match &seen {
            Some(_) => TransactionSide::begun(),
            None => TransactionSide::join(disk),
        };
        let mut side = Side {
            record: &record,
            id,
            name,
            participant,
            until,
            seen,
            refusal: None,
        };
        at_once(pin!(side.run(joining)))
    }

    /// Runs a whole transaction, for a process that has all of its sides: begins it between these
    /// participants, each with its name, prepares each, and commits all of them or rolls all back.
    ///
    /// It is [`begin`](Self::begin), and a [`join`](Self::join) for each of them, in four rounds,
    /// however many there are, of which the caller waits for three: what the nodes are told of the
    /// sides is told at once. A participant gets the id when it is to prepare. Each step is taken
    /// for one side after another, in the order in which they are given; where one cannot prepare,
    /// those behind it are not asked.
    ///
    /// As with `join`, each process of a side [recovers](Self::recover) after its start, one name
    /// at a time; what this call has left is brought to its end then. Each side has notes of its
    /// own: two changes of one database are one side.
    ///
    /// ```no_run
    /// # use redlatch::transaction::{Decision, JoinError, Participant};
    /// # fn transfer<P: Participant>(client: &redlatch::LockClient, berlin: &mut P, paris: &mut P)
    /// # -> Result<(), JoinError<P::Error>> {
    /// match client.transactions().run(&mut [("berlin", berlin), ("paris", paris)])? {
    ///     Decision::Committed => println!("both have changed"),
    ///     Decision::Aborted => println!("neither has changed"),
    ///     Decision::Over => println!("another process has brought it to its end"),
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As those of [`join`](Self::join): of the participant that could not prepare, and otherwise
    /// of the last that has failed. The others have come as far as they could; where too few nodes
    /// answered, all are [undecided](JoinError::Undecided).
    pub fn run<E>(
        &self,
        sides: &mut [(&str, &mut dyn Participant<Error = E>)],
    ) -> Result<Decision, JoinError<E>> {
        let names: Vec<&str> = sides.iter().map(|(name, _)| *name).collect();
        let begun = Record::begin(&names, clock::wall_micros())
            .map_err(|error| JoinError::NotBegun(error.into()))?;
        let id = at_once(pin!(self.create(&begun))).map_err(JoinError::NotBegun)?;
        let record = at_once(pin!(self.record(&id))).map_err(JoinError::NotBegun)?;
        at_once(pin!(async {
            let asked = Sides::prepare(&record, &begun, sides).await;
            asked.run().await
        }))
    }

    /// Brings the transactions that are on the participant's disk to their end: commits those that
    /// are committed, and aborts the others. Returns the decisions: [`Decision::Over`] for one that
    /// another process of this side has brought to its end meanwhile. Call it after each start,
    /// before the first [`join`](Self::join), and again while it fails. It aborts what a `join` of
    /// the same name takes part in at the same time, if not all have voted. What an earlier process
    /// had sent to its database should be over by then: what is prepared later stays so until the
    /// next call.
    ///
    /// It also aborts those that wait for a vote of this name and are not on the disk: begun before
    /// this start, perhaps by somebody who has failed as well. To find them, it reads all keys of
    /// all nodes, as [`list`](Self::list) does. One that is committed and could not be
    /// [forgotten](Participant::forget) is among the decisions, and stays on the disk for the next
    /// call.
    ///
    /// # Errors
    ///
    /// Some are left: too few nodes answered, or the participant has failed. Each has been tried.
    pub fn recover<P: Participant>(
        &self,
        name: &str,
        participant: &mut P,
    ) -> Result<Vec<(TransactionId, Decision)>, RecoverError<P::Error>> {
        // In the order in which an id moves: none is missed that another process commits meanwhile.
        let prepared = participant.prepared().map_err(RecoverError::Disk)?;
        let mut ids = participant.committed().map_err(RecoverError::Disk)?;
        for id in prepared {
            if !ids.contains(&id) {
                ids.push(id);
            }
        }
        let mut decided = Vec::new();
        let mut unresolved = Vec::new();
        for id in ids {
            match self.resolve(&id, name, participant) {
                Ok(decision) => decided.push((id, decision)),
                Err(error) => unresolved.push((id, error)),
            }
        }
        if !unresolved.is_empty() {
            return Err(RecoverError::Unresolved {
                resolved: decided.len(),
                unresolved,
            });
        }
        self.abort_unknown(name).map_err(RecoverError::NotListed)?;
        Ok(decided)
    }

    /// The record of what this client has begun, and this side joins for the first time: it was
    /// open, so it need not be looked at.
    fn begun_by_this_client(&self, id: &TransactionId, name: &str, disk: Disk) -> Option<Record> {
        let nodes = self.client.core.register_nodes().ok()?;
        let begun = nodes.caller.memory().joins(id, name);
        begun.filter(|_| disk == Disk::Nothing)
    }

    /// Aborts what waits for a vote of this participant, whose disk knows of nothing.
    fn abort_unknown(&self, name: &str) -> Result<(), TransactionError> {
        for transaction in self.list()? {
            if !transaction.is_committed && transaction.awaited.iter().any(|one| one == name) {
                self.abort(&transaction.id)?;
            }
        }
        Ok(())
    }

    fn resolve<P: Participant>(
        &self,
        id: &TransactionId,
        name: &str,
        participant: &mut P,
    ) -> Result<Decision, JoinError<P::Error>> {
        let disk = disk(participant, id).map_err(JoinError::Disk)?;
        if disk == Disk::Nothing {
            // Another process of this side has ended it since the list was read.
            return Ok(Decision::Over);
        }
        let record = match at_once(pin!(self.record(id))) {
            Ok(record) => record,
            Err(error) => return unreached(disk, error),
        };
        let until = clock::now();
        let mut side = Side {
            record: &record,
            id,
            name,
            participant,
            until,
            seen: None,
            refusal: None,
        };
        at_once(pin!(side.run(TransactionSide::recover(disk))))
    }

    /// Aborts a transaction, unless it is committed. For operators, and for whoever has begun one
    /// that is not to be. Participants that have voted roll back as soon as they ask.
    ///
    /// [`Decision::Over`] is the answer for a transaction that was aborted before, that all have
    /// finished, or that never was: nothing is known of it any more.
    ///
    /// # Errors
    ///
    /// The id is another group's, or too few nodes answered.
    pub fn abort(&self, id: &TransactionId) -> Result<Decision, TransactionError> {
        let record = at_once(pin!(self.record(id)))?;
        let abort = |record: &mut Option<Record>| Record::abort(record, None);
        Ok(match at_once(pin!(record.change(abort)))? {
            RecordState::Abort => Decision::Aborted,
            RecordState::Absent => Decision::Over,
            RecordState::Open | RecordState::Commit | RecordState::FinishedBefore => {
                Decision::Committed
            }
        })
    }

    /// The record of a transaction of this group.
    async fn record(&self, id: &TransactionId) -> Result<RecordRegister<'_>, TransactionError> {
        let register = self
            .client
            .reserved_register(format!("{NAME}{id}").as_bytes());
        let caller = self.client.core.register_nodes()?.caller;
        let record = RecordRegister {
            caller,
            id: *id,
            register,
        };
        record.check_group().await?;
        Ok(record)
    }
}

/// The group could not be asked for the record: what that means for a side with this disk.
fn unreached<E>(disk: Disk, error: TransactionError) -> Result<Decision, JoinError<E>> {
    match disk {
        Disk::Nothing => Err(JoinError::NotBegun(error)),
        Disk::Prepared => Err(JoinError::Undecided(error)),
        Disk::Committed => Ok(LEFT),
    }
}

fn draw_id(group: u64) -> Result<TransactionId, RegisterError> {
    let entropy = draw().ok_or(RegisterError::NoEntropy)?;
    let (random, _) = entropy
        .token
        .as_bytes()
        .split_first_chunk()
        .expect("16 of 20 bytes");
    Ok(TransactionId::new(group, u128::from_be_bytes(*random)))
}

// Listing the transactions that are not at their end.

/// A transaction that is not decided, or that is committed and not finished by all.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Transaction {
    /// Its id.
    pub id: TransactionId,
    /// Is it committed? Otherwise it is open, and may be [aborted](Transactions::abort).
    pub is_committed: bool,
    /// How long ago it was begun, by the clocks of both machines, which may differ.
    pub age: Duration,
    /// All participants, in the order in which they were given to [`begin`](Transactions::begin).
    pub participants: Vec<String>,
    /// Those for whom the others wait: who has not voted, or not finished if it is committed.
    pub awaited: Vec<String>,
}

impl Transactions<'_> {
    /// The transactions that are not at their end, oldest first: those that are open, with who has
    /// not voted, and those that are committed, with who has not finished. For operators.
    ///
    /// An open one may be [aborted](Self::abort). For one that is committed, start those that have
    /// not finished: they [`recover`](Self::recover). This reads all keys of all nodes, as
    /// [`Registers::list`] does, and each record.
    ///
    /// # Errors
    ///
    /// As those of [`Registers::list`] and [`Register::read`](crate::Register::read).
    pub fn list(&self) -> Result<Vec<Transaction>, TransactionError> {
        let now = clock::wall_micros();
        let mut found = Vec::new();
        for register in self
            .client
            .registers()
            .like(format!("{NAME}*").as_bytes(), true)
        {
            let register = register?;
            let id = register
                .name()
                .as_str()
                .and_then(|name| name.strip_prefix(NAME));
            let Some(id) = id.and_then(|id| id.parse().ok()) else {
                continue;
            };
            // What was removed meanwhile is at its end.
            let value = register.read()?;
            let record = read(value.as_ref().map(Value::bytes))?;
            found.extend(record.map(|record| Transaction::new(id, &record, now)));
        }
        found.sort_by(|one, other| other.age.cmp(&one.age).then(one.id.cmp(&other.id)));
        Ok(found)
    }
}

impl Transaction {
    fn new(id: TransactionId, record: &Record, now: u64) -> Self {
        let participants = record.participants();
        let awaited = record.participants().filter(|(_, is_marked)| !is_marked);
        Self {
            id,
            is_committed: record.is_committed(),
            age: Duration::from_micros(now.saturating_sub(record.begun())),
            participants: participants.map(|(name, _)| name.to_owned()).collect(),
            awaited: awaited.map(|(name, _)| name.to_owned()).collect(),
        }
    }
}
