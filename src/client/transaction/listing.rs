//! Listing the transactions that are not at their end.

use super::{NAME, Transactions, read};
#[cfg(doc)]
use crate::client::Registers;
use crate::clock;
use crate::error::TransactionError;
use crate::registers::transaction::{Record, TransactionId};
use std::time::Duration;

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
        for register in self.client.registers().like(format!("{NAME}*").as_bytes(), true) {
            let register = register?;
            let id = register.name().as_str().and_then(|name| name.strip_prefix(NAME));
            let Some(id) = id.and_then(|id| id.parse().ok()) else { continue };
            // What was removed meanwhile is at its end.
            let Some(value) = register.read()? else { continue };
            found.push(Transaction::new(id, &read(value.bytes())?, now));
        }
        found.sort_by(|one, other| other.age.cmp(&one.age).then(one.id.cmp(&other.id)));
        Ok(found)
    }
}

impl Transaction {
    fn new(id: TransactionId, record: &Record, now: u64) -> Self {
        let all = || record.participants();
        let awaited = all().filter(|(_, is_marked)| !is_marked);
        Self {
            id,
            is_committed: record.is_committed(),
            age: Duration::from_micros(now.saturating_sub(record.begun())),
            participants: all().map(|(name, _)| name.to_owned()).collect(),
            awaited: awaited.map(|(name, _)| name.to_owned()).collect(),
        }
    }
}
