//! Sorted sets: members with a number each, as the scripts of the queue use them.

use std::collections::{BTreeMap, BTreeSet};

/// The largest number of a member. Redis has floating-point numbers, which count exactly up to it.
pub(super) const NUMBER_MAX: u64 = 1 << 53;

/// Members ordered by number, and members with equal numbers by their bytes, as in Redis.
#[derive(Debug, Default)]
pub(super) struct SortedSet {
    order: BTreeSet<(u64, Vec<u8>)>,
    numbers: BTreeMap<Vec<u8>, u64>,
}

impl SortedSet {
    /// Adds a member, or changes its number. Returns whether that changes anything.
    pub(super) fn insert(&mut self, member: &[u8], number: u64) -> bool {
        let number = number.min(NUMBER_MAX);
        let before = self.numbers.insert(member.to_vec(), number);
        if let Some(before) = before {
            self.order.remove(&(before, member.to_vec()));
        }
        self.order.insert((number, member.to_vec()));
        before != Some(number)
    }

    /// Removes a member. Returns whether it was there.
    pub(super) fn remove(&mut self, member: &[u8]) -> bool {
        let number = self.numbers.remove(member);
        number.is_some_and(|number| self.order.remove(&(number, member.to_vec())))
    }

    pub(super) fn number(&self, member: &[u8]) -> Option<u64> {
        self.numbers.get(member).copied()
    }

    /// How many members come before this one. Counts from both ends: most questions are about the
    /// first or the last.
    pub(super) fn rank(&self, member: &[u8]) -> Option<usize> {
        let place = (self.number(member)?, member.to_vec());
        let (mut before, mut from) = (self.order.range(..&place), self.order.range(&place..));
        (0..).find_map(|count| match (before.next(), from.next()) {
            (None, _) => Some(count),
            (_, None) => Some(self.len() - count),
            _ => None,
        })
    }

    /// The members in their order.
    pub(super) fn members(&self) -> impl Iterator<Item = &[u8]> {
        self.order.iter().map(|(_, member)| member.as_slice())
    }

    /// The members in their order, with their numbers.
    pub(super) fn numbered(&self) -> impl DoubleEndedIterator<Item = (&[u8], u64)> {
        self.order.iter().map(|(number, member)| (member.as_slice(), *number))
    }

    /// Removes the members with this number or a smaller one. Returns whether there were any.
    pub(super) fn remove_up_to(&mut self, number: u64) -> bool {
        let before = self.len();
        while self.order.first().is_some_and(|(first, _)| *first <= number) {
            if let Some((_, member)) = self.order.pop_first() {
                self.numbers.remove(&member);
            }
        }
        self.len() < before
    }

    /// The number above the largest, or 1 if there are no members.
    pub(super) fn next_number(&self) -> u64 {
        self.order.last().map_or(1, |(number, _)| (number + 1).min(NUMBER_MAX))
    }

    pub(super) fn len(&self) -> usize {
        self.order.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.order.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_ordered_by_number_and_then_by_their_bytes() {
        let mut set = SortedSet::default();
        assert_eq!(set.next_number(), 1);
        for (member, number) in [("b", 2), ("c", 10), ("a", 2), ("ab", 2)] {
            assert!(set.insert(member.as_bytes(), number));
        }
        assert!(!set.insert(b"a", 2));
        assert_eq!(set.members().collect::<Vec<_>>(), [&b"a"[..], b"ab", b"b", b"c"]);
        assert!(set.insert(b"a", 11));
        assert_eq!((set.rank(b"a"), set.rank(b"c"), set.rank(b"x")), (Some(3), Some(2), None));
        assert_eq!((set.next_number(), set.len()), (12, 4));
        assert!(set.remove(b"a") && !set.remove(b"a"));
        assert_eq!(set.next_number(), 11);
        assert!(set.remove_up_to(2) && !set.remove_up_to(9));
        assert_eq!(set.numbered().collect::<Vec<_>>(), [(&b"c"[..], 10)]);
        assert_eq!((set.number(b"ab"), set.number(b"c")), (None, Some(10)));
    }
}
