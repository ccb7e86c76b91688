//! Ballots: who may decide the next value of a register.

use super::{Group, Stored, Version};
use redlatch_protocol::engine::Token;
use std::fmt;
use std::sync::Arc;

/// The bits of a ballot's number that count within an epoch.
const COUNTER_BITS: u32 = 40;

/// A ballot: a number, and who has drawn it.
///
/// Numbers are compared as numbers. Owners are only compared for equality: of two owners with one
/// number, a node serves the one that came first, so no order of owners is needed, and a tie often
/// leaves a winner.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Ballot {
    number: u64,
    owner: Token,
}

impl Ballot {
    /// Numbers are below this: a script counts with numbers of 53 bits.
    pub const NUMBER_END: u64 = 1 << 53;

    /// The highest count within an epoch.
    pub(super) const COUNT_MAX: u64 = (1 << COUNTER_BITS) - 1;

    /// The digits of a number, as it is sent and stored.
    const DIGITS: usize = 16;

    /// The bytes of a ballot, as it is sent and stored: the digits of its number and its owner.
    pub const LEN: usize = Self::DIGITS + Token::LEN;

    /// The ballot with this number, if it is small enough.
    pub fn new(number: u64, owner: Token) -> Option<Self> {
        (number < Self::NUMBER_END).then_some(Self { number, owner })
    }

    pub fn number(self) -> u64 {
        self.number
    }

    /// Whose it is: a client.
    pub fn owner(self) -> Token {
        self.owner
    }

    /// The ballot that an accepted one promises, if numbers are left.
    pub fn next(self) -> Option<Self> {
        Self::new(self.number + 1, self.owner)
    }

    /// The number below all ballots of this epoch.
    pub fn beginning(epoch: u64) -> u64 {
        epoch
            .checked_shl(COUNTER_BITS)
            .unwrap_or(Self::NUMBER_END)
            .min(Self::NUMBER_END)
    }

    /// As it is sent and stored.
    pub fn to_bytes(self) -> [u8; Self::LEN] {
        let mut bytes = [0; Self::LEN];
        bytes[..Self::DIGITS].copy_from_slice(format!("{:016}", self.number).as_bytes());
        bytes[Self::DIGITS..].copy_from_slice(self.owner.as_bytes());
        bytes
    }

    /// Reads the ballot at the beginning of these bytes, and returns it with the rest of them.
    pub fn read(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (digits, rest) = bytes.split_at_checked(Self::DIGITS)?;
        let (owner, rest) = rest.split_first_chunk()?;
        if !digits.iter().all(u8::is_ascii_digit) {
            return None;
        }
        let number = std::str::from_utf8(digits).ok()?.parse().ok()?;
        Some((Self::new(number, Token::new(*owner))?, rest))
    }
}

impl fmt::Debug for Ballot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {:?}", self.number, self.owner)
    }
}

// What a client remembers of a register between two changes.

/// The most that a ballot is above all that were seen, as a number of bits.
const STEP_BITS_MAX: u32 = 12;

/// What a client remembers of a register from one change to the next.
///
/// Its owner must be drawn for it alone, and never be used again: a ballot stands for one value.
#[derive(Clone, Debug)]
pub struct Proposer {
    owner: Token,
    /// The group that has promised, in its epoch.
    group: Option<Group>,
    /// The highest number that was seen.
    highest: u64,
    /// The ballot that a majority has promised with the last change, and the value of that change.
    pub(super) next: Option<(Ballot, Stored)>,
}

impl Proposer {
    /// Knows nothing of the register.
    pub fn new(owner: Token) -> Self {
        Self {
            owner,
            group: None,
            highest: 0,
            next: None,
        }
    }

    /// From now on ballots are those of this epoch of this group.
    ///
    /// What another group has promised, or the same one in another epoch, says nothing of what this
    /// one has: also if the numbers of the epochs are the same, as those of two groups are of which
    /// the second was formed when the first had lost its memory.
    pub fn enter(&mut self, group: &Group) {
        self.highest = self.highest.max(Ballot::beginning(group.epoch));
        if self.group.as_ref() != Some(group) {
            self.next = None;
            self.group = Some(group.clone());
        }
    }

    /// Begins above this count of the epoch.
    ///
    /// Clients that know nothing of a register count from the time, so that the first ballot of
    /// each is above those that were drawn before it. That only saves a refusal: a clock that is
    /// wrong costs one.
    pub fn count_from(&mut self, count: u64) {
        let beginning = Ballot::beginning(self.group.as_ref().map_or(0, |group| group.epoch));
        self.see(Some(beginning.saturating_add(count.min(Ballot::COUNT_MAX))));
    }

    /// Another ballot has this number.
    pub(super) fn see(&mut self, number: Option<u64>) {
        self.highest = self.highest.max(number.unwrap_or(0));
    }

    /// A majority has accepted this last: what was promised to follow another one is of no use.
    pub fn saw(&mut self, accepted: Option<Ballot>) {
        self.see(accepted.map(Ballot::number));
        let promised = accepted.and_then(Ballot::next);
        self.next = self.next.take().filter(|(next, _)| Some(*next) == promised);
    }

    /// A ballot above all that were seen. With each refusal it is further above: a client that
    /// changes the register in one round after another has gone on by the time a ballot arrives.
    pub(super) fn draw(&mut self, refusals: u32) -> Option<Ballot> {
        let step = 1_u64 << (2 * refusals).min(STEP_BITS_MAX);
        self.highest = self.highest.saturating_add(step);
        Ballot::new(self.highest, self.owner)
    }
}

// The changes that one ballot makes: one, or those of several threads, one after another.

/// What a ballot is to propose: the value as it is, and the changes of it so far.
#[derive(Clone, Debug)]
pub struct Draft {
    ballot: Ballot,
    /// What was there before the ballot; without a value, the number of the last deletion, or a
    /// floor above it.
    base: Result<Stored, u64>,
    current: Option<Stored>,
    changes: usize,
    /// May a call take part that began after the promise?
    pub(super) is_shared: bool,
}

impl Draft {
    pub(super) fn new(ballot: Ballot, base: Result<Stored, u64>) -> Self {
        Self {
            ballot,
            current: base.clone().ok(),
            base,
            changes: 0,
            is_shared: false,
        }
    }

    /// The value, with the changes so far; `None` if there is none.
    pub fn current(&self) -> Option<&Stored> {
        self.current.as_ref()
    }

    /// Replaces the value. A fencing token that is given becomes the value's if it is the largest.
    pub fn put(&mut self, bytes: Arc<[u8]>, fence: Option<u64>) -> Version {
        let before = self.current.as_ref().and_then(Stored::fence);
        let fence = fence.max(before).unwrap_or(0);
        let made = (self.ballot, self.changes);
        let value = Stored::changed(self.base.as_ref().map_err(|gone| *gone), made, bytes, fence);
        self.changes += 1;
        self.current.insert(value).version()
    }

    /// Notes when the value was written, in microseconds since 1970.
    pub fn date(&mut self, written: u64) {
        if let Some(value) = &mut self.current {
            value.date(written);
        }
    }

    /// Deletes the value.
    pub fn delete(&mut self) {
        if self.current.take().is_some() {
            // From here on the register is a new one.
            self.base = Err(self.ballot.number());
            self.changes += 1;
        }
    }

    /// Another call takes part, which may have begun after the promise: what that showed is current
    /// for it only when the ballot is accepted.
    pub fn share(&mut self) {
        self.is_shared = true;
    }

    /// Is there no change?
    pub fn is_unchanged(&self) -> bool {
        self.changes == 0
    }

    /// The ballot that is to propose it.
    pub fn ballot(&self) -> Ballot {
        self.ballot
    }

    pub(super) fn into_current(self) -> Option<Stored> {
        self.current
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_read_back_and_nothing_else_is_a_ballot() {
        let owner = Token::new(*b"12345678901234567890");
        for number in [0, 1, Ballot::beginning(1), Ballot::NUMBER_END - 1] {
            let ballot = Ballot::new(number, owner).unwrap();
            let bytes = [&ballot.to_bytes()[..], b"rest"].concat();
            assert_eq!(Ballot::read(&bytes), Some((ballot, &b"rest"[..])));
            for length in 0..Ballot::LEN {
                assert_eq!(Ballot::read(&bytes[..length]), None);
            }
        }
        let digits = |digits: &str| [digits.as_bytes(), owner.as_bytes()].concat();
        for invalid in [
            "9007199254740992",
            "+000000000000001",
            "-000000000000001",
            "             1",
        ] {
            assert_eq!(Ballot::read(&digits(invalid)), None, "{invalid}");
        }
    }

    #[test]
    fn numbers_end_where_a_script_cannot_count_on() {
        let owner = Token::new([0; Token::LEN]);
        assert_eq!(Ballot::new(Ballot::NUMBER_END, owner), None);
        assert_eq!(
            Ballot::new(Ballot::NUMBER_END - 1, owner).unwrap().next(),
            None
        );
        assert_eq!(Ballot::beginning(3), 3 << 40);
        assert_eq!(Ballot::beginning(1 << 13), Ballot::NUMBER_END);
        assert_eq!(Ballot::beginning(u64::MAX), Ballot::NUMBER_END);
    }

    mod draft {
        use super::super::*;
        use crate::COMBINED_MAX;
        use redlatch_protocol::engine::Token;

        fn ballot(number: u64) -> Ballot {
            Ballot::new(number, Token::new([7; Token::LEN])).unwrap()
        }

        #[test]
        fn the_changes_of_one_ballot_have_versions_of_their_own_and_are_remembered_as_one() {
            let mut draft = Draft::new(ballot(5), Err(3));
            assert!(draft.is_unchanged());
            let first = draft.put(Arc::from(&b"a"[..]), Some(9));
            let second = draft.put(Arc::from(&b"b"[..]), Some(3));
            assert!(first < second);
            let value = draft.into_current().unwrap();
            assert_eq!((&**value.bytes(), value.fence()), (&b"b"[..], Some(9)));
            assert!(value.was_made_by(ballot(5)) && value.remembers_since(1));
            assert_eq!(value.gone(), 3);

            let mut draft = Draft::new(ballot(6), Ok(value));
            let third = draft.put(Arc::from(&b"c"[..]), None);
            assert!(second < third);
            let value = draft.current().unwrap();
            assert_eq!((value.gone(), value.fence()), (3, Some(9)));
        }

        #[test]
        fn a_register_that_is_deleted_and_created_in_one_ballot_is_a_new_one() {
            let mut draft = Draft::new(ballot(5), Err(3));
            draft.put(Arc::from(&b"a"[..]), Some(9));
            let value = draft.into_current();
            let mut draft = Draft::new(ballot(6), value.ok_or(0));
            draft.delete();
            assert!(draft.current().is_none() && !draft.is_unchanged());
            draft.delete();
            let version = draft.put(Arc::from(&b"b"[..]), None);
            let value = draft.into_current().unwrap();
            assert_eq!((value.gone(), value.fence()), (6, None));
            assert_eq!(version, Version::new(ballot(6), 1));
        }

        #[test]
        fn there_is_room_for_as_many_changes_as_a_ballot_has_versions() {
            let mut draft = Draft::new(ballot(5), Err(3));
            let put = |_| draft.put(Arc::from([]), None);
            let versions: Vec<Version> = (0..COMBINED_MAX).map(put).collect();
            assert!(versions.is_sorted_by(|a, b| a < b));
        }
    }
}
