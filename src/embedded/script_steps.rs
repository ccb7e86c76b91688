//! The steps of which the scripts consist: one call of Redis each, with the line of the script that
//! an error names.

use super::command::Call;
use super::database::{Entry, Value};
use super::expiry::{Conditions, remaining_ms, set_remaining};
use super::reply::{Failure, OwnedReply};
use super::scripts::{Raised, Words};
use super::sorted_set::SortedSet;
use super::strings::set;

/// The remaining time to live of a key that does not expire.
pub(super) const ENDLESS: i64 = -1;

/// The answer to a script with other words than this library sends.
pub(super) fn malformed() -> Raised {
    (Failure::new("ERR embedded nodes run this script only as redlatch calls it"), 1)
}

pub(super) fn number(words: Words<'_>, index: usize) -> Result<u64, Raised> {
    let text = words.argv.get(index).and_then(|text| std::str::from_utf8(text).ok());
    text.and_then(|text| text.parse().ok()).ok_or_else(malformed)
}

/// A text of decimal digits only. A number that does not fit counts as the largest.
pub(super) fn digits(text: &[u8]) -> Option<u64> {
    let is_number = !text.is_empty() && text.iter().all(u8::is_ascii_digit);
    let add = |sum: u64, digit: &u8| sum.saturating_mul(10).saturating_add((digit - b'0').into());
    is_number.then(|| text.iter().fold(0, add))
}

/// A time to live in the arguments.
pub(super) fn millis(words: Words<'_>, index: usize) -> Result<i64, Raised> {
    i64::try_from(number(words, index)?).map_err(|_| malformed())
}

/// The number of the command: the last argument.
pub(super) fn proof(words: Words<'_>) -> Result<i64, Raised> {
    millis(words, words.argv.len().checked_sub(1).ok_or_else(malformed)?)
}

/// Yes: the reply repeats the number of the command.
pub(super) fn yes(number: i64) -> OwnedReply {
    OwnedReply::Integer(number)
}

/// No: the reply is the negative number of the command.
pub(super) fn no(number: i64) -> OwnedReply {
    OwnedReply::Integer(-number)
}

pub(super) fn yes_if(condition: bool, number: i64) -> OwnedReply {
    if condition { yes(number) } else { no(number) }
}

/// A number of things, in a reply.
pub(super) fn count(amount: usize) -> i64 {
    i64::try_from(amount).unwrap_or(i64::MAX)
}

/// `GET key`
pub(super) fn value(call: &mut Call<'_>, key: &[u8], line: u32) -> Result<Option<Vec<u8>>, Raised> {
    let now_ms = call.now_ms;
    let found = call.database().string(now_ms, key).map(|value| value.map(<[u8]>::to_vec));
    call.remember_declared();
    found.map_err(|failure| (failure, line))
}

/// `PTTL key`
pub(super) fn remaining(call: &mut Call<'_>, key: &[u8]) -> i64 {
    let now_ms = call.now_ms;
    let left = remaining_ms(call.database(), now_ms, key);
    call.remember_declared();
    left
}

/// Does the key expire in less than `limit` milliseconds, or is it missing?
pub(super) fn ends_before(call: &mut Call<'_>, key: &[u8], limit: i64) -> bool {
    let left = remaining(call, key);
    left != ENDLESS && left < limit
}

/// `EXISTS key`
pub(super) fn is_there(call: &mut Call<'_>, key: &[u8]) -> bool {
    let now_ms = call.now_ms;
    let is_there = call.database().find(now_ms, key).is_some();
    call.remember_declared();
    is_there
}

/// `DEL key`
pub(super) fn remove(call: &mut Call<'_>, key: &[u8]) -> bool {
    let now_ms = call.now_ms;
    call.database().remove(now_ms, key)
}

/// `SET key value PX ttl`
pub(super) fn put(
    call: &mut Call<'_>,
    key: &[u8],
    value: &[u8],
    ttl: &[u8],
    line: u32,
) -> Result<(), Raised> {
    let options: [&[u8]; 5] = [b"SET", key, value, b"PX", ttl];
    set(&mut call.with_args(&options)).map_err(|failure| (failure, line))?;
    Ok(())
}

/// What `read` finds in a sorted set, which is empty if there is no key: `ZRANGE`, `ZSCORE` and
/// other commands that change nothing.
pub(super) fn read_set<T>(
    call: &mut Call<'_>,
    key: &[u8],
    line: u32,
    read: impl FnOnce(&SortedSet) -> T,
) -> Result<T, Raised> {
    let now_ms = call.now_ms;
    let found = match call.database().sorted_set(now_ms, key) {
        Ok(Some(set)) => Ok(read(set)),
        Ok(None) => Ok(read(&SortedSet::default())),
        Err(failure) => Err((failure, line)),
    };
    call.remember_declared();
    found
}

/// `ZRANGE key 0 0`: the first member.
pub(super) fn first(call: &mut Call<'_>, key: &[u8], line: u32) -> Result<Option<Vec<u8>>, Raised> {
    read_set(call, key, line, |set| set.members().next().map(<[u8]>::to_vec))
}

/// `PEXPIRE key ttl`
pub(super) fn expire(call: &mut Call<'_>, key: &[u8], ttl: i64, line: u32) -> Result<(), Raised> {
    let (now_ms, unconditional) = (call.now_ms, Conditions::default());
    set_remaining(call.database(), now_ms, key, ttl, "pexpire", &unconditional)
        .map_err(|failure| (failure, line))?;
    Ok(())
}

/// `ZADD key number member`
pub(super) fn enter(
    call: &mut Call<'_>,
    key: &[u8],
    (member, number): (&[u8], u64),
    line: u32,
) -> Result<(), Raised> {
    let now_ms = call.now_ms;
    let database = call.database();
    match database.sorted_set(now_ms, key).map_err(|failure| (failure, line))? {
        Some(set) => {
            if set.insert(member, number) {
                database.touch(key);
            }
        }
        None => {
            let mut set = SortedSet::default();
            set.insert(member, number);
            let entry = Entry { value: Value::SortedSet(set), expires_at_ms: None };
            database.insert(now_ms, key, entry);
        }
    }
    Ok(())
}

/// `ZREM key member`, which removes the key with its last member. Returns whether the member was
/// there.
pub(super) fn withdraw(
    call: &mut Call<'_>,
    key: &[u8],
    member: &[u8],
    line: u32,
) -> Result<bool, Raised> {
    take_out(call, key, line, |set| set.remove(member))
}

/// `ZREMRANGEBYSCORE key -inf limit`
pub(super) fn withdraw_up_to(
    call: &mut Call<'_>,
    key: &[u8],
    limit: u64,
    line: u32,
) -> Result<(), Raised> {
    take_out(call, key, line, |set| set.remove_up_to(limit)).map(|_| ())
}

/// Removes members of a sorted set, and the key with its last member. Returns what `remove` does:
/// whether it has removed any.
fn take_out(
    call: &mut Call<'_>,
    key: &[u8],
    line: u32,
    remove: impl FnOnce(&mut SortedSet) -> bool,
) -> Result<bool, Raised> {
    let now_ms = call.now_ms;
    let database = call.database();
    let found = database.sorted_set(now_ms, key).map_err(|failure| (failure, line))?;
    let Some(set) = found else { return Ok(false) };
    let (has_removed, is_empty) = (remove(set), set.is_empty());
    if is_empty {
        database.remove(now_ms, key);
    } else if has_removed {
        database.touch(key);
    }
    Ok(has_removed)
}
