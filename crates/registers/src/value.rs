//! What nodes keep of a register: the value, and what tells whether a change was made.

use super::Ballot;
use std::sync::Arc;

/// The format of a stored value. A client that meets another one refuses it.
const FORMAT: u8 = 1;

/// How many changes a value remembers: the last one of each of so many clients, and earlier ones of
/// the same while there is room.
pub(super) const REMEMBERED: usize = 8;

/// How many bytes of a ballot's owner a value remembers: as many as tell clients apart.
const OWNER: usize = 8;

/// How many changes one ballot can carry: those that the threads of a client make at one time.
pub const COMBINED_MAX: usize = 64;

/// The version of a register's value. It grows with every change and never repeats, also if the
/// register is deleted in between.
///
/// It is the number of the ballot that made the change, and which change of that ballot it is. At
/// most one ballot of a number is ever accepted by a majority.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version(u64);

impl Version {
    /// The version of a change of this ballot.
    pub(super) fn new(ballot: Ballot, index: usize) -> Self {
        let index = index.min(COMBINED_MAX - 1) as u64;
        Self(ballot.number() * COMBINED_MAX as u64 + index)
    }

    /// A version that [`as_u64`](Self::as_u64) has returned.
    #[must_use]
    pub const fn from_u64(version: u64) -> Self {
        Self(version)
    }

    /// The version as a number, for instance as the number of an epoch.
    #[must_use]
    pub const fn as_u64(self) -> u64 {
        self.0
    }
}

/// Identifies a change that a value remembers: the ballot's number and the beginning of its owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ChangeId {
    number: u64,
    owner: [u8; OWNER],
}

impl ChangeId {
    fn of(ballot: Ballot) -> Self {
        let mut owner = [0; OWNER];
        owner.copy_from_slice(&ballot.owner().as_bytes()[..OWNER]);
        Self {
            number: ballot.number(),
            owner,
        }
    }
}

/// The value of a register.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    pub(super) version: Version,
    /// The number of the last deletion before the register was created, or a floor above it.
    gone: u64,
    /// The largest fencing token that has written. 0 if none has.
    fence: u64,
    /// When it was written, in microseconds since 1970, as the client says that wrote it. For
    /// people, and to delete what is old: nothing else depends on it.
    written: u64,
    /// The number of the latest change of a client of which none is remembered any more. 0 if there
    /// is no such client.
    forgotten: u64,
    /// The last changes, oldest first. Never empty.
    changes: Vec<ChangeId>,
    bytes: Arc<[u8]>,
}

impl Stored {
    pub fn bytes(&self) -> &Arc<[u8]> {
        &self.bytes
    }

    pub fn version(&self) -> Version {
        self.version
    }

    /// The largest fencing token that has written since the register was created.
    pub fn fence(&self) -> Option<u64> {
        Some(self.fence).filter(|fence| *fence > 0)
    }

    /// The value that a change of this ballot makes of `base`, which was there before the ballot;
    /// or of none, where `gone` is the number of the last deletion, or a floor above it.
    pub(super) fn changed(
        base: Result<&Self, u64>,
        (ballot, index): (Ballot, usize),
        bytes: Arc<[u8]>,
        fence: u64,
    ) -> Self {
        let mut changes = base.map_or(Vec::new(), |base| base.changes.clone());
        let mut forgotten = base.map_or(0, |base| base.forgotten);
        let change = ChangeId::of(ballot);
        if changes.len() == REMEMBERED {
            // A client makes one change at a time: it asks for no earlier one any more.
            let earlier = changes.iter().enumerate().position(|(index, it)| {
                let mut later = changes[index + 1..].iter().chain([&change]);
                later.any(|later| later.owner == it.owner)
            });
            match earlier {
                Some(earlier) => drop(changes.remove(earlier)),
                None => forgotten = changes.remove(0).number,
            }
        }
        changes.push(change);
        Self {
            version: Version::new(ballot, index),
            gone: base.map_or_else(|gone| gone, |base| base.gone),
            fence,
            written: 0,
            forgotten,
            changes,
            bytes,
        }
    }

    /// The value of one ballot, as these nodes keep it: each byte as high as it is on `count` of
    /// them. Where none was [raised](crate::RegisterCommand::Raise), they keep the same.
    pub(super) fn raised_on(count: usize, copies: &[&Self]) -> Option<Self> {
        let mut value = (*copies.first()?).clone();
        if copies.iter().any(|copy| copy.bytes != value.bytes) {
            let raised = (0..value.bytes.len()).map(|place| {
                let mut bytes: Vec<u8> = copies
                    .iter()
                    .filter_map(|it| it.bytes.get(place).copied())
                    .collect();
                bytes.sort_unstable_by(|one, other| other.cmp(one));
                bytes.get(count - 1).copied().unwrap_or(0)
            });
            value.bytes = raised.collect();
        }
        Some(value)
    }

    /// When it was written, in microseconds since 1970, by the clock of the client that wrote it.
    pub fn written(&self) -> u64 {
        self.written
    }

    pub(super) fn date(&mut self, written: u64) {
        self.written = written;
    }

    /// As nodes keep it.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = vec![FORMAT];
        out.extend(self.version.0.to_be_bytes());
        out.extend(self.gone.to_be_bytes());
        out.extend(self.fence.to_be_bytes());
        out.extend(self.written.to_be_bytes());
        out.extend(self.forgotten.to_be_bytes());
        out.push(self.changes.len() as u8);
        for change in &self.changes {
            out.extend(change.number.to_be_bytes());
            out.extend(change.owner);
        }
        out.extend(&*self.bytes);
        out
    }

    /// Reads a value that a node keeps.
    ///
    /// # Errors
    ///
    /// It is of another format.
    pub fn read(bytes: &[u8]) -> Result<Self, InvalidValue> {
        Self::read_all(bytes).ok_or(InvalidValue {
            format: bytes.first().copied().filter(|format| *format > FORMAT),
        })
    }

    fn read_all(bytes: &[u8]) -> Option<Self> {
        let mut rest = bytes.strip_prefix(&[FORMAT])?;
        let version = Version(take_number(&mut rest)?);
        let gone = take_number(&mut rest)?;
        let fence = take_number(&mut rest)?;
        let written = take_number(&mut rest)?;
        let forgotten = take_number(&mut rest)?;
        let (count, mut rest) = rest.split_first()?;
        let count = usize::from(*count);
        if !(1..=REMEMBERED).contains(&count) {
            return None;
        }
        let mut changes = Vec::with_capacity(REMEMBERED);
        for _ in 0..count {
            let number = take_number(&mut rest)?;
            let (owner, others) = rest.split_first_chunk()?;
            rest = others;
            let owner = *owner;
            changes.push(ChangeId { number, owner });
        }
        Some(Self {
            version,
            gone,
            fence,
            written,
            forgotten,
            changes,
            bytes: rest.into(),
        })
    }

    /// Has this ballot made one of the last changes?
    pub(super) fn was_made_by(&self, ballot: Ballot) -> bool {
        self.changes.contains(&ChangeId::of(ballot))
    }

    /// Does the value remember all clients that have made a change since this number?
    pub(super) fn remembers_since(&self, number: u64) -> bool {
        self.forgotten < number
    }

    /// No change below this number is one of this register's: it was deleted since.
    pub(super) fn gone(&self) -> u64 {
        self.gone
    }
}

/// Takes the number at the beginning of these bytes off them.
fn take_number(bytes: &mut &[u8]) -> Option<u64> {
    let (number, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(u64::from_be_bytes(*number))
}

/// A node has a value that is not a register of this format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidValue {
    /// Its format, if it is a later one.
    pub format: Option<u8>,
}

/// What a node has accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Accepted {
    pub ballot: Ballot,
    /// `None`: the register is deleted.
    pub value: Option<Stored>,
}

impl Accepted {
    /// Reads what a node keeps.
    ///
    /// # Errors
    ///
    /// It is of another format.
    pub fn read(bytes: &[u8]) -> Result<Self, InvalidValue> {
        let (ballot, rest) = Ballot::read(bytes).ok_or(InvalidValue { format: None })?;
        let value = match rest {
            [] => None,
            bytes => Some(Stored::read(bytes)?),
        };
        Ok(Self { ballot, value })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use redlatch_protocol::engine::Token;

    fn ballot(number: u64) -> Ballot {
        Ballot::new(number, Token::new([number as u8; Token::LEN])).unwrap()
    }

    fn value(numbers: std::ops::RangeInclusive<u64>) -> Stored {
        let mut value: Option<Stored> = None;
        for number in numbers {
            let made = (ballot(number), 0);
            let bytes = Arc::from(&b"bytes"[..]);
            let mut next = Stored::changed(value.as_ref().ok_or(7), made, bytes, number);
            next.date(1 << 50);
            value = Some(next);
        }
        value.unwrap()
    }

    #[test]
    fn every_value_is_read_back_and_no_part_of_one() {
        for last in 1..20 {
            let value = value(1..=last);
            let bytes = value.to_bytes();
            assert_eq!(Stored::read(&bytes), Ok(value));
            let head = bytes.len() - b"bytes".len();
            for length in 0..head {
                assert_eq!(
                    Stored::read(&bytes[..length]),
                    Err(InvalidValue { format: None })
                );
            }
        }
        let mut bytes = value(1..=3).to_bytes();
        for count in [0, 9, 255] {
            bytes[41] = count;
            assert!(Stored::read(&bytes).is_err(), "{count}");
        }
        bytes[0] = 2;
        assert_eq!(Stored::read(&bytes), Err(InvalidValue { format: Some(2) }));
    }

    #[test]
    fn a_value_remembers_eight_clients_and_its_creation() {
        let value = value(1..=10);
        let made: Vec<bool> = (1..=11)
            .map(|number| value.was_made_by(ballot(number)))
            .collect();
        let mut expected = vec![false, false];
        expected.extend([true; 8]);
        expected.push(false);
        assert_eq!(made, expected);
        assert!(value.remembers_since(3) && !value.remembers_since(2));
        assert_eq!((value.gone(), value.fence()), (7, Some(10)));
        let other = Ballot::new(10, Token::new([8; Token::LEN])).unwrap();
        assert!(!value.was_made_by(other), "another owner's");

        // However often one of eight clients makes a change, the others are not forgotten.
        let mut value = value;
        for number in 11..100 {
            let owner = Token::new([10; Token::LEN]);
            let made = (Ballot::new(number, owner).unwrap(), 0);
            value = Stored::changed(Ok(&value), made, Arc::from([]), 0);
        }
        assert!((3..10).all(|number| value.was_made_by(ballot(number))));
        assert!(
            !value.was_made_by(ballot(10)),
            "its last change is a later one"
        );
        assert!(value.remembers_since(3) && !value.remembers_since(2));
        assert_eq!(value.changes.len(), REMEMBERED, "it is as long as before");
    }

    #[test]
    fn versions_grow_with_the_changes_of_a_ballot_and_from_ballot_to_ballot() {
        let versions = [(1, 0), (1, 1), (1, 63), (2, 0)].map(|(n, i)| Version::new(ballot(n), i));
        assert!(versions.is_sorted_by(|a, b| a < b));
        assert_eq!(Version::from_u64(versions[1].as_u64()), versions[1]);
        let top = Version::new(ballot(Ballot::NUMBER_END - 1), 63);
        assert_eq!(top.as_u64(), (1 << 59) - 1);
    }
}
