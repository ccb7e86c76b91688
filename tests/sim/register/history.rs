//! The operations of all registers, as their callers saw them.
//!
//! Each write appends its id to the value, so a value says which writes made it since the register
//! was created.

use crate::registers::transaction::Participation;
use std::collections::BTreeMap;

/// Identifies a write.
pub(crate) type Id = u32;

/// A value that was seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) version: u64,
    /// The writes that made it, the last one last. Never empty.
    pub(crate) ids: Vec<Id>,
    /// The largest fencing token; 0 if there is none.
    pub(crate) fence: u64,
}

/// What is asked of a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Call {
    Read,
    Append,
    /// Appends if this is the version of the value.
    Set(Option<u64>),
    /// Appends unless a larger token than this has written.
    Fenced(u64),
    Delete,
    /// Gives nodes without a vote one. No operation of a register.
    Repair,
    /// Begins, joins or recovers transactions. No operation of a register of users.
    Participate(Participation),
}

/// How an operation ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Of a read, and of a write that was refused: the value that there is.
    Is(Option<Seen>),
    /// Of a write or a deletion: the value before, and the version of the new one.
    Made {
        before: Option<Seen>,
        version: Option<u64>,
    },
    /// It has, or will have, an effect, or none.
    Unsure,
    /// It has none.
    Failed,
    /// Of a repair: how many nodes have got a vote.
    Repaired(usize),
    /// Of a transaction that was joined.
    Committed,
    Aborted,
    /// Of a transaction that was begun, or was over when it was joined, and of a recovery.
    Done,
}

/// One operation. Times are true times.
#[derive(Clone, Debug)]
pub(crate) struct Operation {
    pub(crate) register: u64,
    pub(crate) id: Id,
    pub(crate) call: Call,
    pub(crate) called: u64,
    /// When it returned: never, if that is not known.
    pub(crate) returned: u64,
    pub(crate) outcome: Outcome,
}

impl Operation {
    fn is_of_users(&self) -> bool {
        !matches!(self.call, Call::Repair | Call::Participate(_))
    }
}

/// All operations.
#[derive(Debug, Default)]
pub(crate) struct History {
    operations: Vec<Operation>,
}

impl History {
    /// A thread calls. Returns the id of what it writes.
    pub(crate) fn called(&mut self, register: u64, call: Call, now: u64) -> Id {
        let id = self.operations.len() as Id;
        let returned = u64::MAX;
        let outcome = Outcome::Unsure;
        self.operations.push(Operation {
            register,
            id,
            call,
            called: now,
            returned,
            outcome,
        });
        id
    }

    /// The call that was given this id returns.
    pub(crate) fn returned(&mut self, id: Id, outcome: Outcome, now: u64) {
        let operation = &mut self.operations[id as usize];
        if outcome != Outcome::Unsure {
            operation.returned = now;
        }
        operation.outcome = outcome;
    }

    pub(crate) fn of(&self, id: Id) -> &Operation {
        &self.operations[id as usize]
    }

    /// The operations of each register.
    pub(crate) fn by_register(&self) -> BTreeMap<u64, Vec<&Operation>> {
        let mut all: BTreeMap<u64, Vec<&Operation>> = BTreeMap::new();
        for operation in self.operations.iter().filter(|it| it.is_of_users()) {
            all.entry(operation.register).or_default().push(operation);
        }
        all
    }
}

/// The ids as a register's bytes.
pub(crate) fn to_bytes(ids: &[Id]) -> Vec<u8> {
    ids.iter().flat_map(|id| id.to_be_bytes()).collect()
}

/// The ids in a register's bytes.
pub(crate) fn from_bytes(bytes: &[u8]) -> Vec<Id> {
    let words = bytes.chunks_exact(size_of::<Id>());
    words
        .map(|word| Id::from_be_bytes(word.try_into().expect("four bytes")))
        .collect()
}
