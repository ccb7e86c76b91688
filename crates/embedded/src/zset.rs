//! The commands on sorted sets: `ZADD` and others.

use super::command::{Call, integer};
use super::database::StoredValue;
use super::reply::{CommandError, CommandResult, OwnedReply, Protocol, count, refuse};
use std::collections::{BTreeMap, BTreeSet};

/// `ZADD key [NX | XX] score member [score member ...]`
pub(super) fn zadd(call: &mut Call<'_>) -> CommandResult {
    let mut if_absent = false;
    let mut if_present = false;
    let mut rest = &call.args[2..];
    while let [option, behind @ ..] = rest {
        match option.to_ascii_uppercase().as_slice() {
            b"NX" => if_absent = true,
            b"XX" => if_present = true,
            b"GT" | b"LT" | b"CH" | b"INCR" => {
                return refuse("ERR embedded nodes know only NX and XX of ZADD");
            }
            _ => break,
        }
        rest = behind;
    }
    let pairs = rest.chunks_exact(2);
    if rest.is_empty() || !pairs.remainder().is_empty() {
        return Err(CommandError::syntax());
    }
    if if_absent && if_present {
        return refuse("ERR XX and NX options at the same time are not compatible");
    }
    let mut scores = Vec::new();
    for pair in pairs.clone() {
        let Some(score) = score(pair[0]) else {
            return refuse("ERR value is not a valid float");
        };
        scores.push(score);
    }
    let (database, args) = call.parts();
    let found = database.sorted_set(args[1])?;
    let is_new = found.is_none();
    let mut added = 0;
    let mut has_changed = false;
    let mut created = SortedSet::default();
    let set = found.unwrap_or(&mut created);
    for (pair, score) in pairs.zip(scores) {
        let is_there = set.score(pair[1]).is_some();
        if if_absent && is_there || if_present && !is_there {
            continue;
        }
        has_changed |= set.insert(pair[1], score);
        added += usize::from(!is_there);
    }
    if has_changed && is_new {
        database.insert(args[1], StoredValue::SortedSet(created), None);
    } else if has_changed {
        database.touch(args[1]);
    }
    Ok(count(added))
}

/// `ZREM key member [member ...]`
pub(super) fn zrem(call: &mut Call<'_>) -> CommandResult {
    let members = &call.args[2..];
    take_out(call, |set| {
        members.iter().filter(|member| set.remove(member)).count()
    })
}

/// `ZREMRANGEBYSCORE key min max`
pub(super) fn zremrangebyscore(call: &mut Call<'_>) -> CommandResult {
    let range = ScoreRange::parse(call.args)?;
    take_out(call, |set| {
        let members: Vec<_> = range.of(set).map(|(member, _)| member.to_vec()).collect();
        members.iter().filter(|member| set.remove(member)).count()
    })
}

/// Removes members of a sorted set, and the key with its last member. `remove` returns how many it
/// has removed.
fn take_out(call: &mut Call<'_>, remove: impl FnOnce(&mut SortedSet) -> usize) -> CommandResult {
    let (database, args) = call.parts();
    let Some(set) = database.sorted_set(args[1])? else {
        return Ok(count(0));
    };
    let removed = remove(set);
    let left = set.len();
    if left == 0 {
        database.remove(args[1]);
    } else if removed > 0 {
        database.touch(args[1]);
    }
    Ok(count(removed))
}

/// What `read` finds in a sorted set, which is empty if there is no key.
pub(super) fn read<T>(
    call: &mut Call<'_>,
    read: impl FnOnce(&SortedSet) -> T,
) -> Result<T, CommandError> {
    let (database, args) = call.parts();
    let empty = SortedSet::default();
    Ok(read(
        database.sorted_set(args[1])?.map_or(&empty, |set| set),
    ))
}

/// `ZCOUNT key min max`
pub(super) fn zcount(call: &mut Call<'_>) -> CommandResult {
    let range = ScoreRange::parse(call.args)?;
    read(call, |set| count(range.of(set).count()))
}

/// `ZSCORE key member`
pub(super) fn zscore(call: &mut Call<'_>) -> CommandResult {
    let member = call.args[2];
    let score = read(call, |set| set.score(member))?;
    Ok(score.map_or(OwnedReply::Null, OwnedReply::Double))
}

/// `ZRANK key member`
pub(super) fn zrank(call: &mut Call<'_>) -> CommandResult {
    let member = call.args[2];
    Ok(read(call, |set| set.rank(member))?.map_or(OwnedReply::Null, count))
}

/// `ZRANGE key start stop [WITHSCORES]`, with ranks that count from the end if they are negative.
pub(super) fn zrange(call: &mut Call<'_>) -> CommandResult {
    let options = RangeOptions::parse(&call.args[4..], false)?;
    let start = integer(call.args[2])?;
    let stop = integer(call.args[3])?;
    let protocol = call.protocol();
    read(call, |set| {
        let first = rank(start, set.len());
        let end = rank(stop, set.len()).saturating_add(1);
        let first = usize::try_from(first).unwrap_or(0);
        let end = usize::try_from(end).unwrap_or(0);
        options.reply(set.between(first, end), protocol)
    })
}

/// The rank of this index in a set of this length. It is negative before the first member.
fn rank(index: i64, len: usize) -> i64 {
    match index {
        ..0 => index.saturating_add(i64::try_from(len).unwrap_or(i64::MAX)),
        _ => index,
    }
}

/// `ZRANGEBYSCORE key min max [WITHSCORES] [LIMIT offset count]`
pub(super) fn zrangebyscore(call: &mut Call<'_>) -> CommandResult {
    let range = ScoreRange::parse(call.args)?;
    let options = RangeOptions::parse(&call.args[4..], true)?;
    let protocol = call.protocol();
    // A negative offset finds nothing, and a negative count has no limit.
    let offset = usize::try_from(options.offset).unwrap_or(usize::MAX);
    let limit = usize::try_from(options.limit).unwrap_or(usize::MAX);
    read(call, |set| {
        options.reply(range.of(set).skip(offset).take(limit).collect(), protocol)
    })
}

/// A score as Redis reads it.
fn score(text: &[u8]) -> Option<Score> {
    let number = std::str::from_utf8(text).ok()?.parse().ok()?;
    Score::new(number)
}

/// The scores from one limit to another, both included.
struct ScoreRange {
    min: Score,
    max: Score,
}

impl ScoreRange {
    /// From the third and fourth word. A limit behind `(` is not included: the next number is.
    fn parse(args: &[&[u8]]) -> Result<Self, CommandError> {
        match (limit(args[2], 1), limit(args[3], -1)) {
            (Some(min), Some(max)) => Ok(Self { min, max }),
            _ => refuse("ERR min or max is not a float"),
        }
    }

    /// The members with these scores.
    fn of<'a>(&self, set: &'a SortedSet) -> impl Iterator<Item = (&'a [u8], f64)> + use<'a> {
        let max = self.max;
        set.from(self.min)
            .take_while(move |(_, number)| Score::new(*number) <= Some(max))
    }
}

/// The score of a limit; behind `(`, the number that is this step away.
fn limit(text: &[u8], step: i64) -> Option<Score> {
    match text.strip_prefix(b"(") {
        Some(text) => score(text).map(|Score(place)| Score(place + step)),
        None => score(text),
    }
}

struct RangeOptions {
    with_scores: bool,
    offset: i64,
    limit: i64,
}

impl RangeOptions {
    fn parse(words: &[&[u8]], may_limit: bool) -> Result<Self, CommandError> {
        let mut options = Self {
            with_scores: false,
            offset: 0,
            limit: -1,
        };
        let mut rest = words;
        while let [option, behind @ ..] = rest {
            rest = match (option.to_ascii_uppercase().as_slice(), behind) {
                (b"WITHSCORES", _) => {
                    options.with_scores = true;
                    behind
                }
                (b"LIMIT", [offset, limit, behind @ ..]) if may_limit => {
                    options.offset = integer(offset)?;
                    options.limit = integer(limit)?;
                    behind
                }
                (b"BYSCORE" | b"BYLEX" | b"REV" | b"LIMIT", _) if !may_limit => {
                    return refuse("ERR embedded nodes know only WITHSCORES of ZRANGE");
                }
                _ => return Err(CommandError::syntax()),
            };
        }
        Ok(options)
    }

    /// In RESP3, a member and its score are a list of their own.
    fn reply(&self, found: Vec<(&[u8], f64)>, protocol: Protocol) -> OwnedReply {
        let parts = found.into_iter().flat_map(|(member, score)| {
            let member = OwnedReply::bulk(member);
            let score = OwnedReply::Double(score);
            match (self.with_scores, protocol) {
                (false, _) => vec![member],
                (true, Protocol::Resp2) => vec![member, score],
                (true, Protocol::Resp3) => vec![OwnedReply::Array(vec![member, score])],
            }
        });
        OwnedReply::Array(parts.collect())
    }
}

// Sorted sets: members with a score each.

/// Members ordered by score, and members with equal scores by their bytes, as in Redis.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct SortedSet {
    order: BTreeSet<(Score, Vec<u8>)>,
    scores: BTreeMap<Vec<u8>, Score>,
}

/// A floating-point number as an integer of the same order, as in [`f64::total_cmp`]: no NaN, and
/// no negative zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Score(i64);

impl Score {
    pub(super) fn new(score: f64) -> Option<Self> {
        (!score.is_nan()).then(|| Self(Self::turned((score + 0.0).to_bits() as i64)))
    }

    fn number(self) -> f64 {
        f64::from_bits(Self::turned(self.0) as u64)
    }

    /// The bits of a negative number in reverse order, but for its sign; it is its own inverse.
    fn turned(bits: i64) -> i64 {
        if bits < 0 { bits ^ i64::MAX } else { bits }
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
        self.scores.get(member).map(|score| score.number())
    }

    /// How many members come before this one. Counts from both ends: most questions are about the
    /// first or the last.
    pub(super) fn rank(&self, member: &[u8]) -> Option<usize> {
        let place = (*self.scores.get(member)?, member.to_vec());
        let mut before = self.order.range(..&place);
        let mut from = self.order.range(&place..);
        (0..).find_map(|count| match (before.next(), from.next()) {
            (None, _) => Some(count),
            (_, None) => Some(self.len() - count),
            _ => None,
        })
    }

    /// The members in their order, with their scores.
    pub(super) fn scored(&self) -> impl DoubleEndedIterator<Item = (&[u8], f64)> {
        self.order
            .iter()
            .map(|(score, member)| (member.as_slice(), score.number()))
    }

    /// The members from `start` up to but not including `end`, counted from the nearer end.
    pub(super) fn between(&self, start: usize, end: usize) -> Vec<(&[u8], f64)> {
        let after = self.len().saturating_sub(end);
        if start <= after {
            let end = end.min(self.len());
            return self.scored().take(end).skip(start).collect();
        }
        let from_last = self.scored().rev().take(self.len().saturating_sub(start));
        let mut found: Vec<_> = from_last.skip(after).collect();
        found.reverse();
        found
    }

    /// The members with at least this score, in their order.
    pub(super) fn from(&self, min: Score) -> impl Iterator<Item = (&[u8], f64)> {
        self.order
            .range((min, Vec::new())..)
            .map(|(score, member)| (member.as_slice(), score.number()))
    }

    pub(super) fn len(&self) -> usize {
        self.order.len()
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
            found
                .iter()
                .map(|(member, _)| String::from_utf8_lossy(member).into())
                .collect()
        };
        assert_eq!(members(set.scored().collect()), ["a", "ab", "b", "c"]);
        assert!(set.insert(b"a", score(11.0)));
        assert_eq!(
            (set.rank(b"a"), set.rank(b"c"), set.rank(b"x")),
            (Some(3), Some(2), None)
        );
        assert_eq!(members(set.from(score(2.5)).collect()), ["c", "a"]);
        assert!(set.remove(b"a") && !set.remove(b"a"));
        assert_eq!(
            (set.score(b"a"), set.score(b"c"), set.len()),
            (None, Some(10.5), 3)
        );
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
