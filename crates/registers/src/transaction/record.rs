//! The record of a transaction, and its changes.

use super::{NamesError, PARTICIPANTS_MAX};
use crate::transaction;
use std::fmt;

/// The format of a record. A client that meets another one refuses it.
const FORMAT: u8 = 1;

const OPEN: u8 = 0;
const COMMITTED: u8 = 1;

/// The record of a transaction that is neither aborted nor finished.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Record {
    /// Microseconds since 1970 by the clock of whoever began it. For people.
    begun: u64,
    is_committed: bool,
    /// Who has voted while it is open, and who has finished once it is committed: a bit for each
    /// name.
    marked: u16,
    names: Vec<String>,
}

/// What a participant learns from the record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RecordState {
    /// It is not decided.
    Open,
    /// It is committed.
    Commit,
    Abort,
    /// There is no record. A side that is prepared may conclude that it is aborted, since the
    /// record is there until all have finished; nobody else may.
    Absent,
    /// It is committed, and this participant has finished: a late request to take part.
    FinishedBefore,
}

/// The transaction has no participant with this name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct UnknownName;

impl Record {
    /// The record of a new transaction.
    ///
    /// # Errors
    ///
    /// There cannot be these participants.
    pub fn begin(names: &[&str], begun: u64) -> Result<Self, NamesError> {
        transaction::check_names(names)?;
        let names = names.iter().map(ToString::to_string).collect();
        Ok(Self { begun, is_committed: false, marked: 0, names })
    }

    /// What the record tells this participant.
    ///
    /// # Errors
    ///
    /// There is no such participant. That cannot be told without a record.
    pub fn look(record: Option<&Self>, name: &str) -> Result<RecordState, UnknownName> {
        let Some(record) = record else { return Ok(RecordState::Absent) };
        let bit = record.bit(name)?;
        Ok(match (record.is_committed, record.marked & bit != 0) {
            (false, _) => RecordState::Open,
            (true, false) => RecordState::Commit,
            (true, true) => RecordState::FinishedBefore,
        })
    }

    /// This participant is prepared, and its disk says so. The last vote commits.
    ///
    /// # Errors
    ///
    /// There is no such participant.
    pub fn vote(record: &mut Option<Self>, name: &str) -> Result<RecordState, UnknownName> {
        let told = Self::look(record.as_ref(), name)?;
        let Some(record) = record.as_mut().filter(|_| told == RecordState::Open) else {
            return Ok(told);
        };
        record.marked |= record.bit(name)?;
        if record.marked != record.all() {
            return Ok(RecordState::Open);
        }
        (record.is_committed, record.marked) = (true, 0);
        Ok(RecordState::Commit)
    }

    /// Aborts the transaction, unless it is committed. With a name, it is this participant who does
    /// so.
    ///
    /// # Errors
    ///
    /// There is no such participant.
    pub fn abort(
        record: &mut Option<Self>,
        name: Option<&str>,
    ) -> Result<RecordState, UnknownName> {
        let told = match (name, record.as_ref()) {
            (Some(name), record) => Self::look(record, name)?,
            (None, Some(record)) if record.is_committed => RecordState::Commit,
            (None, Some(_)) => RecordState::Open,
            (None, None) => RecordState::Absent,
        };
        if told != RecordState::Open {
            return Ok(told);
        }
        *record = None;
        Ok(RecordState::Abort)
    }

    /// This participant has committed, and its disk says so. The last one removes the record.
    ///
    /// # Errors
    ///
    /// There is no such participant.
    pub fn finish(record: &mut Option<Self>, name: &str) -> Result<(), UnknownName> {
        let told = Self::look(record.as_ref(), name)?;
        let Some(committed) = record.as_mut().filter(|_| told == RecordState::Commit) else {
            return Ok(());
        };
        committed.marked |= committed.bit(name)?;
        if committed.marked == committed.all() {
            *record = None;
        }
        Ok(())
    }

    /// Is it decided?
    pub fn is_committed(&self) -> bool {
        self.is_committed
    }

    /// Microseconds since 1970 by the clock of whoever began it.
    pub fn begun(&self) -> u64 {
        self.begun
    }

    /// The participants, each with whether it has voted; or finished, if it is committed.
    pub fn participants(&self) -> impl Iterator<Item = (&str, bool)> {
        let marked = |index: usize| self.marked & (1 << index) != 0;
        self.names.iter().enumerate().map(move |(index, name)| (name.as_str(), marked(index)))
    }

    fn bit(&self, name: &str) -> Result<u16, UnknownName> {
        let index = self.names.iter().position(|known| known == name).ok_or(UnknownName)?;
        Ok(1 << index)
    }

    /// The bits of all names.
    fn all(&self) -> u16 {
        u16::MAX >> (PARTICIPANTS_MAX - self.names.len())
    }

    /// As the register keeps it.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = vec![FORMAT, if self.is_committed { COMMITTED } else { OPEN }];
        out.extend(self.begun.to_be_bytes());
        out.extend(self.marked.to_be_bytes());
        for name in &self.names {
            // Names have 64 bytes at most.
            out.push(name.len() as u8);
            out.extend(name.bytes());
        }
        out
    }

    /// Reads what a register keeps.
    ///
    /// # Errors
    ///
    /// It is not a record, or one of another format.
    pub fn read(bytes: &[u8]) -> Result<Self, InvalidRecord> {
        Self::read_all(bytes).ok_or(InvalidRecord {
            format: bytes.first().copied().filter(|format| *format > FORMAT),
        })
    }

    fn read_all(bytes: &[u8]) -> Option<Self> {
        let rest = bytes.strip_prefix(&[FORMAT])?;
        let (state, rest) = rest.split_first()?;
        let (begun, rest) = rest.split_first_chunk()?;
        let (marked, mut rest) = rest.split_first_chunk()?;
        let mut names = Vec::new();
        while let Some((length, others)) = rest.split_first() {
            let (name, others) = others.split_at_checked(usize::from(*length))?;
            names.push(std::str::from_utf8(name).ok()?);
            rest = others;
        }
        let record = Self {
            is_committed: *state == COMMITTED,
            marked: u16::from_be_bytes(*marked),
            ..Self::begin(&names, u64::from_be_bytes(*begun)).ok()?
        };
        // With all marks it would be in another state.
        let is_valid = record.marked < record.all() && matches!(*state, OPEN | COMMITTED);
        Some(record).filter(|_| is_valid)
    }
}

/// A register has a value that is not a record of this format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidRecord {
    /// Its format, if it is a later one.
    pub format: Option<u8>,
}

impl fmt::Display for UnknownName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the transaction has no participant with this name")
    }
}

impl std::error::Error for UnknownName {}

#[cfg(test)]
mod tests;
