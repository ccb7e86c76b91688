//! Sorted sets: members with a score each.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

/// Members ordered by score, and members with equal scores by their bytes, as in Redis.
#[derive(Debug, Default)]
pub(super) struct SortedSet {
    order: BTreeSet<(Score, Vec<u8>)>,
    scores: BTreeMap<Vec<u8>, Score>,
}

/// A floating-point number that can be compared: no NaN, and no negative zero.
#[derive(Clone, Copy, Debug)]
pub(super) struct Score(f64);

impl Score {
    pub(super) fn new(score: f64) -> Option<Self> {
        (!score.is_nan()).then_some(Self(score + 0.0))
    }
}

impl Ord for Score {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.total_cmp(&other.0)
    }
}

impl PartialOrd for Score {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Eq for Score {}

impl PartialEq for Score {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl SortedSet {
    /// Adds a member, or changes its score. Returns whether that changes anything.
    pub(super) fn insert(&mut self, member: &[u8], score: Score) -> bool {
        let before = self.scores.insert(member.to_vec(), score);
        if let Some(before) = before {
            self.order.remove(&(before, member.to_vec()));
        }
        self.order.insert((score, member.to_vec()));
        before != Some(score)
    }

    /// Removes a member. Returns whether it was there.
    pub(super) fn remove(&mut self, member: &[u8]) -> bool {
        let score = self.scores.remove(member);
        score.is_some_and(|score| self.order.remove(&(score, member.to_vec())))
    }

    pub(super) fn score(&self, member: &[u8]) -> Option<f64> {
        self.scores.get(member).map(|score| score.0)
    }

    /// How many members come before this one. Counts from both ends: most questions are about the
    /// first or the last.
    pub(super) fn rank(&self, member: &[u8]) -> Option<usize> {
        let place = (*self.scores.get(member)?, member.to_vec());
        let (mut before, mut from) = (self.order.range(..&place), self.order.range(&place..));
        (0..).find_map(|count| match (before.next(), from.next()) {
            (None, _) => Some(count),
            (_, None) => Some(self.len() - count),
            _ => None,
        })
    }

    /// The members in their order, with their scores.
    pub(super) fn scored(&self) -> impl DoubleEndedIterator<Item = (&[u8], f64)> {
        self.order.iter().map(|(score, member)| (member.as_slice(), score.0))
    }

    /// The members from `start` up to but not including `end`, counted from the nearer end.
    pub(super) fn between(&self, start: usize, end: usize) -> Vec<(&[u8], f64)> {
        let (end, after) = (end.min(self.len()), self.len().saturating_sub(end));
        if start <= after {
            return self.scored().take(end).skip(start).collect();
        }
        let from_last = self.scored().rev().take(self.len().saturating_sub(start));
        let mut found: Vec<_> = from_last.skip(after).collect();
        found.reverse();
        found
    }

    /// The members with at least this score, in their order.
    pub(super) fn from(&self, min: Score) -> impl Iterator<Item = (&[u8], f64)> {
        self.order.range((min, Vec::new())..).map(|(score, member)| (member.as_slice(), score.0))
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

    fn score(score: f64) -> Score {
        Score::new(score).expect("a number")
    }

    #[test]
    fn members_are_ordered_by_score_and_then_by_their_bytes() {
        let mut set = SortedSet::default();
        for (member, number) in [("b", 2.0), ("c", 10.5), ("a", 2.0), ("ab", 2.0)] {
            assert!(set.insert(member.as_bytes(), score(number)));
        }
        assert!(!set.insert(b"a", score(2.0)));
        let members = |found: Vec<(&[u8], f64)>| -> Vec<String> {
            found.iter().map(|(member, _)| String::from_utf8_lossy(member).into()).collect()
        };
        assert_eq!(members(set.scored().collect()), ["a", "ab", "b", "c"]);
        assert!(set.insert(b"a", score(11.0)));
        assert_eq!((set.rank(b"a"), set.rank(b"c"), set.rank(b"x")), (Some(3), Some(2), None));
        assert_eq!(members(set.from(score(2.5)).collect()), ["c", "a"]);
        assert!(set.remove(b"a") && !set.remove(b"a"));
        assert_eq!((set.score(b"a"), set.score(b"c"), set.len()), (None, Some(10.5), 3));
    }

    #[test]
    fn members_between_two_ranks_are_the_same_from_either_end() {
        let mut set = SortedSet::default();
        (0_u8..5).for_each(|member| assert!(set.insert(&[member], score(member.into()))));
        for start in 0..7 {
            for end in start..7 {
                let found: Vec<u8> = set.between(start, end).iter().map(|it| it.0[0]).collect();
                assert_eq!(found, (0..5).take(end).skip(start).collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn scores_are_compared_as_numbers() {
        assert!(Score::new(f64::NAN).is_none());
        assert_eq!(score(-0.0), score(0.0));
        assert!(score(f64::NEG_INFINITY) < score(-1.0) && score(1.0) < score(f64::INFINITY));
    }
}
