//! The record of a transaction, and its changes.

use super::NamesError;
use crate::transaction;
use std::fmt;
use std::sync::Arc;

/// The format of a record. A client that meets another one refuses it.
const FORMAT: u8 = 2;

/// How far a participant has come, as the record knows: it has voted; it has finished; and all
/// nodes know that it has finished. Each is a byte at the end of the record, which is only ever
/// raised.
pub const VOTED: u8 = 1;
pub const FINISHED: u8 = 2;
pub const FORGOTTEN: u8 = 3;

/// The record of a transaction that is neither aborted nor finished.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Record {
    /// Microseconds since 1970 by the clock of whoever began it. For people.
    begun: u64,
    names: Vec<String>,
    /// How far each of them has come.
    levels: Vec<u8>,
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
        let names: Vec<_> = names.iter().map(ToString::to_string).collect();
        Ok(Self {
            begun,
            levels: vec![0; names.len()],
            names,
        })
    }

    /// What the record tells this participant.
    ///
    /// # Errors
    ///
    /// There is no such participant. That cannot be told without a record.
    pub fn look(record: Option<&Self>, name: &str) -> Result<RecordState, UnknownName> {
        let Some(record) = record else {
            return Ok(RecordState::Absent);
        };
        let level = record.levels[record.index(name)?];
        Ok(match (record.is_committed(), level >= FINISHED) {
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
        record.raise(name, VOTED)?;
        Self::look(Some(record), name)
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
            (None, Some(record)) if record.is_committed() => RecordState::Commit,
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
    pub fn finish(record: &mut Option<Self>, name: &str) -> Result<RecordState, UnknownName> {
        let told = Self::look(record.as_ref(), name)?;
        let Some(committed) = record.as_mut().filter(|_| told == RecordState::Commit) else {
            return Ok(told);
        };
        committed.raise(name, FINISHED)?;
        if committed.is_over() {
            *record = None;
        }
        Self::look(record.as_ref(), name)
    }

    /// Is it decided? All have voted.
    pub fn is_committed(&self) -> bool {
        self.levels.iter().all(|level| *level >= VOTED)
    }

    /// Have all finished? Then it counts as no record.
    fn is_over(&self) -> bool {
        self.levels.iter().all(|level| *level >= FINISHED)
    }

    /// Have these participants come so far?
    ///
    /// # Errors
    ///
    /// One of them is no participant.
    pub fn have(&self, names: &[&str], level: u8) -> Result<bool, UnknownName> {
        for name in names {
            if self.levels[self.index(name)?] < level {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// How these participants come so far in place, in one round.
    ///
    /// # Errors
    ///
    /// One of them is no participant.
    pub fn raised(&self, names: &[&str], to: u8) -> Result<Arc<[u8]>, UnknownName> {
        let mut levels = vec![0; self.levels.len()];
        for name in names {
            levels[self.index(name)?] = to;
        }
        Ok(levels.into())
    }

    fn raise(&mut self, name: &str, to: u8) -> Result<(), UnknownName> {
        let index = self.index(name)?;
        self.levels[index] = self.levels[index].max(to);
        Ok(())
    }

    /// Microseconds since 1970 by the clock of whoever began it.
    pub fn begun(&self) -> u64 {
        self.begun
    }

    /// The participants, each with whether it has voted; or finished, if it is committed.
    pub fn participants(&self) -> impl Iterator<Item = (&str, bool)> {
        let level = if self.is_committed() { FINISHED } else { VOTED };
        self.names
            .iter()
            .zip(&self.levels)
            .map(move |(name, it)| (name.as_str(), *it >= level))
    }

    fn index(&self, name: &str) -> Result<usize, UnknownName> {
        self.names
            .iter()
            .position(|known| known == name)
            .ok_or(UnknownName)
    }

    /// As the register keeps it.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = vec![FORMAT];
        out.extend(self.begun.to_be_bytes());
        // There are few names, of 64 bytes at most.
        out.push(self.names.len() as u8);
        for name in &self.names {
            out.push(name.len() as u8);
            out.extend(name.bytes());
        }
        out.extend(&self.levels);
        out
    }

    /// Reads what a register keeps. `None`: all have finished, and nothing is left to be known.
    ///
    /// # Errors
    ///
    /// It is not a record, or one of another format.
    pub fn read(bytes: &[u8]) -> Result<Option<Self>, InvalidRecord> {
        let record = Self::read_all(bytes).ok_or(InvalidRecord {
            format: bytes.first().copied().filter(|format| *format > FORMAT),
        })?;
        Ok(Some(record).filter(|record| !record.is_over()))
    }

    fn read_all(bytes: &[u8]) -> Option<Self> {
        let rest = bytes.strip_prefix(&[FORMAT])?;
        let (begun, rest) = rest.split_first_chunk()?;
        let (count, mut rest) = rest.split_first()?;
        let mut names = Vec::new();
        for _ in 0..*count {
            let (length, others) = rest.split_first()?;
            let (name, others) = others.split_at_checked(usize::from(*length))?;
            names.push(std::str::from_utf8(name).ok()?);
            rest = others;
        }
        let record = Self::begin(&names, u64::from_be_bytes(*begun)).ok()?;
        let is_valid = rest.len() == names.len() && rest.iter().all(|it| *it <= FORGOTTEN);
        is_valid.then(|| Self {
            levels: rest.to_vec(),
            ..record
        })
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
