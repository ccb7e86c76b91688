//! The steps of `sharing.lua`, with which the scripts about shares of a lock begin.
//!
//! A share is held beside others: by a reader, or with a permit. While a lock's key has the value
//! [`SHARED`], a sorted set beside it has a member for each share, whose number is the end of the
//! share on the node's clock in milliseconds. A member consists of the permit's number, or nothing
//! for a reader, a colon, and the client's value; see `moved.rs` for larger numbers.

use std::collections::BTreeSet;

use super::command::{Call, integer};
use super::moved::MOVED;
use super::queue::{bell_of, lease_of, queue_of, reserve_for_first};
use super::script_steps::{
    digits, enter, expire, malformed, put, read_set, remaining, remove, value, withdraw,
    withdraw_up_to,
};
use super::scripts::Raised;
use super::sorted_set::SortedSet;

/// The value of a lock's key that has shares.
pub(super) use crate::node::command::SHARED;

/// How many waiters `called` looks at.
pub(super) const WALKED_MAX: usize = 32;

/// How many bells ring at a time.
const RUNG_MAX: usize = 8;

/// The number of lines of `sharing.lua`: the lines of the scripts behind it count from there.
const PRELUDE_LINES: u32 = lines(include_str!("../node/sharing.lua").as_bytes());

pub(super) const fn lines(source: &[u8]) -> u32 {
    let (mut count, mut index) = (0, 0);
    while index < source.len() {
        count += (source[index] == b'\n') as u32;
        index += 1;
    }
    count
}

/// A line of a script that has `sharing.lua` before it.
pub(super) const fn behind(line: u32) -> u32 {
    PRELUDE_LINES + line
}

pub(super) fn holders_of(key: &[u8]) -> Vec<u8> {
    [key, b":redlatch:holders"].concat()
}

/// The member of a share.
pub(super) fn member(slot: &[u8], value: &[u8]) -> Vec<u8> {
    [slot, b":", value].concat()
}

/// The digits in front of a text, and the rest.
pub(super) fn split_digits(text: &[u8]) -> (&[u8], &[u8]) {
    let count = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    text.split_at(count)
}

/// The permit and the value in a member, if it is one of a share.
pub(super) fn parts(member: &[u8]) -> Option<(&[u8], &[u8])> {
    let (slot, rest) = split_digits(member);
    Some((slot, rest.strip_prefix(b":")?))
}

/// What follows the time in the value of a lease that is one of a waiter for a share.
fn behind_time(lease: &[u8]) -> Option<&[u8]> {
    let (time, rest) = split_digits(lease);
    rest.strip_prefix(b"s").filter(|_| !time.is_empty())
}

/// Is a lease with this value one of a waiter for a share?
pub(super) fn wants_share(lease: &[u8]) -> bool {
    behind_time(lease).is_some()
}

/// How many permits there are for the waiter whose lease has this value; 0 for a reader. `None` if
/// it waits for an exclusive lock.
pub(super) fn wanted_permits(lease: &[u8]) -> Option<u64> {
    let (permits, rest) = split_digits(behind_time(lease)?);
    digits(permits).filter(|_| rest.starts_with(b" "))
}

/// The first free permit, if there is one. The search begins at `first`.
pub(super) fn free_slot(used: &Slots, permits: u64, first: u64) -> Option<u64> {
    let mut numbers = (first..first.saturating_add(permits)).map(|number| number % permits);
    numbers.find(|slot| !used.contains(slot))
}

/// Permits that have been given.
pub(super) type Slots = BTreeSet<u64>;

/// The longest that a key lives which is not ours: 139 years.
const LEFT_MAX: i64 = 1 << 42;

/// A point in time in milliseconds of the node's clock, as the number of a member.
pub(super) fn moment(millis: i64) -> u64 {
    u64::try_from(millis).unwrap_or(0)
}

/// The shares of one lock.
pub(super) struct Sharing<'a> {
    pub(super) key: &'a [u8],
    pub(super) holders: Vec<u8>,
    pub(super) queue: Vec<u8>,
}

impl<'a> Sharing<'a> {
    pub(super) fn of(key: &'a [u8]) -> Self {
        Self { key, holders: holders_of(key), queue: queue_of(key) }
    }

    /// Removes the shares that have expired.
    pub(super) fn purge(&self, call: &mut Call<'_>, line: u32) -> Result<(), Raised> {
        let now = moment(call.now_ms);
        withdraw_up_to(call, &self.holders, now, line)
    }

    /// `ZADD holders now+ttl member`
    pub(super) fn hold(
        &self,
        call: &mut Call<'_>,
        (member, ttl): (&[u8], i64),
        line: u32,
    ) -> Result<(), Raised> {
        let ends = moment(call.now_ms.saturating_add(ttl));
        enter(call, &self.holders, (member, ends), line)
    }

    /// Are the holders readers? `None` if there are none.
    pub(super) fn are_readers(&self, call: &mut Call<'_>) -> Result<Option<bool>, Raised> {
        read_set(call, &self.holders, 18, |set| {
            set.members().next().map(|first| first.starts_with(b":"))
        })
    }

    /// The remaining times of the shares that end first and last.
    pub(super) fn remaining(
        &self,
        call: &mut Call<'_>,
        line: u32,
    ) -> Result<Option<(i64, i64)>, Raised> {
        let now_ms = call.now_ms;
        let left = |end: u64| (i64::try_from(end).unwrap_or(i64::MAX) - now_ms).min(LEFT_MAX);
        read_set(call, &self.holders, line, |set| {
            let mut ends = set.numbered().map(|(_, end)| left(end));
            let first = ends.next()?;
            Some((first, ends.next_back().unwrap_or(first)))
        })
    }

    /// The permits that have been given, and how often one of them has been given twice.
    pub(super) fn slots_in_use(&self, call: &mut Call<'_>) -> Result<(Slots, usize), Raised> {
        read_set(call, &self.holders, 24, |set| {
            let slots = set.members().filter_map(|it| digits(split_digits(it).0));
            let (mut used, mut twice) = (Slots::new(), 0);
            slots.for_each(|slot| twice += usize::from(!used.insert(slot % MOVED)));
            (used, twice)
        })
    }

    /// The member with a value, whichever permit it has.
    pub(super) fn find_holder(
        &self,
        call: &mut Call<'_>,
        value: &[u8],
        permits: u64,
    ) -> Result<Option<Vec<u8>>, Raised> {
        if permits == 0 {
            let member = member(b"", value);
            let is_there = |set: &SortedSet| set.number(&member).is_some();
            let is_there = read_set(call, &self.holders, 45, is_there)?;
            return Ok(is_there.then_some(member));
        }
        if self.are_readers(call)? == Some(true) {
            return Ok(None);
        }
        read_set(call, &self.holders, 47, |set| find_value(set, value))
    }

    /// The key lives as long as the share that ends last.
    pub(super) fn set_expiry(&self, call: &mut Call<'_>) -> Result<(), Raised> {
        let (_, left) = self.remaining(call, 59)?.ok_or_else(malformed)?;
        expire(call, &self.holders, left, 60)?;
        put(call, self.key, SHARED, left.to_string().as_bytes(), 61)
    }

    /// The first waiters that can have a share, and the permit of each, which is empty for a
    /// reader. Removes waiters without a lease from the front of the queue.
    pub(super) fn called(&self, call: &mut Call<'_>, most: usize) -> Result<Called, Raised> {
        let mut called = Called::default();
        let (mut readers, mut used, mut from) = (self.are_readers(call)?, None, 0);
        for name in first_names(call, &self.queue) {
            let Some(lease) = value(call, &lease_of(self.key, &name), 67)? else {
                withdraw(call, &self.queue, &name, 70)?;
                continue;
            };
            // An exclusive claimer, which does not wait any more.
            if lease.is_empty() {
                continue;
            }
            let permits = wanted_permits(&lease);
            let readers = *readers.get_or_insert(permits == Some(0));
            let is_of_kind = permits.is_some_and(|permits| (permits == 0) == readers);
            if !is_of_kind || called.first.len() == most {
                called.following = Some(name);
                break;
            }
            let (used, twice) = match used.take() {
                Some(before) => used.insert(before),
                None if readers => used.insert((Slots::new(), 0)),
                None => used.insert(self.slots_in_use(call)?),
            };
            while used.contains(&from) {
                from += 1;
            }
            let last = (from..).filter(|slot| !used.contains(slot)).nth(*twice);
            let has_one = last.zip(permits).is_some_and(|(last, permits)| last < permits);
            if !readers && !has_one {
                called.following = Some(name);
                break;
            }
            let slot = if readers { Vec::new() } else { from.to_string().into_bytes() };
            called.first.push((name, slot));
            from += 1;
        }
        Ok(called)
    }

    /// Rings the bells of the first waiters that can have a share. The lease of each ends with
    /// `ttl` at the latest. The waiter behind them asks, if it would not for longer.
    pub(super) fn ring(&self, call: &mut Call<'_>, ttl: &[u8]) -> Result<(), Raised> {
        let Called { first, following } = self.called(call, RUNG_MAX)?;
        let limit = || integer(ttl).map_err(|failure| (failure, 105));
        for (name, _) in first {
            put(call, &bell_of(self.key, &name), b"", ttl, 104)?;
            let lease = lease_of(self.key, &name);
            if remaining(call, &lease) > limit()? {
                expire(call, &lease, limit()?, 106)?;
            }
        }
        if let Some(name) = following {
            if remaining(call, &lease_of(self.key, &name)) > limit()? {
                put(call, &bell_of(self.key, &name), b"", ttl, 110)?;
            }
        }
        Ok(())
    }

    /// A lock or a share of it has ended.
    pub(super) fn settle(
        &self,
        call: &mut Call<'_>,
        is_shared: bool,
        ttl: &[u8],
    ) -> Result<(), Raised> {
        if is_shared && !read_set(call, &self.holders, 115, SortedSet::is_empty)? {
            self.set_expiry(call)?;
            return self.ring(call, ttl);
        }
        remove(call, self.key);
        reserve_for_first(call, self.key, ttl, 122)
    }
}

/// The waiters that can have a share.
#[derive(Default)]
pub(super) struct Called {
    /// The name of each, and the permit it can have.
    pub(super) first: Vec<(Vec<u8>, Vec<u8>)>,
    /// The waiter behind them.
    pub(super) following: Option<Vec<u8>>,
}

/// The first member with a value.
pub(super) fn find_value(set: &SortedSet, value: &[u8]) -> Option<Vec<u8>> {
    let has_value = |it: &&[u8]| parts(it).is_some_and(|(_, other)| other == value);
    set.members().find(has_value).map(<[u8]>::to_vec)
}

/// The names of the first waiters. There are none in a queue that is no sorted set.
pub(super) fn first_names(call: &mut Call<'_>, queue: &[u8]) -> Vec<Vec<u8>> {
    let names = |set: &SortedSet| set.members().take(WALKED_MAX).map(<[u8]>::to_vec).collect();
    read_set(call, queue, 66, names).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_says_what_its_waiter_wants() {
        let table: [(&[u8], bool, Option<u64>); 9] = [
            (b"12s0 owner", true, Some(0)),
            (b"12s3 owner", true, Some(3)),
            (b"12s3 ", true, Some(3)),
            (b"12s3", true, None),
            (b"12s owner", true, None),
            (b"12s3x owner", true, None),
            (b"s3 owner", false, None),
            (b"12 owner", false, None),
            (b"", false, None),
        ];
        for (lease, wants, permits) in table {
            let shown = lease.escape_ascii();
            assert_eq!((wants_share(lease), wanted_permits(lease)), (wants, permits), "{shown}");
        }
    }

    #[test]
    fn the_search_for_a_free_permit_begins_where_the_client_says_and_wraps() {
        let used = |slots: &[u64]| slots.iter().copied().collect();
        assert_eq!(free_slot(&used(&[1]), 3, 1), Some(2));
        assert_eq!(free_slot(&used(&[1, 2]), 3, 1), Some(0));
        assert_eq!(free_slot(&used(&[0, 1, 2]), 3, 1), None);
        assert_eq!(free_slot(&used(&[0]), 2, 8), Some(1));
        assert_eq!(free_slot(&used(&[]), 0, 0), None);
    }
}
