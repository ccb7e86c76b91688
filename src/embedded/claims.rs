//! Most of this library's scripts, in Rust. The conformance test compares them with the Lua, as
//! this library calls them. With too few arguments they return an error of their own.

use super::command::{Call, integer};
use super::expiry::{Conditions, remaining_ms, set_remaining};
use super::reply::{Failure, OwnedReply};
use super::scripts::{Outcome, Raised, Words, put, remove};
use super::strings::set;
use crate::node::script::{FENCE_MAX, SHOWN_MAX};

/// The remaining time to live of a key that does not expire.
const ENDLESS: i64 = -1;

pub(super) fn malformed() -> Raised {
    (Failure::new("ERR embedded nodes run this script only as redlatch calls it"), 1)
}

fn number(words: Words<'_>, index: usize) -> Result<u64, Raised> {
    let text = words.argv.get(index).and_then(|text| std::str::from_utf8(text).ok());
    text.and_then(|text| text.parse().ok()).ok_or_else(malformed)
}

/// The keys of the locks, whose number is in `ARGV[1]`, and the keys of the counters.
fn split(words: Words<'_>) -> Result<(Keys<'_>, Keys<'_>), Raised> {
    let locks = usize::try_from(number(words, 0)?).map_err(|_| malformed())?;
    words.keys.split_at_checked(locks).ok_or_else(malformed)
}

type Keys<'a> = &'a [&'a [u8]];

pub(super) fn value(call: &mut Call<'_>, key: &[u8], line: u32) -> Result<Option<Vec<u8>>, Raised> {
    let now_ms = call.now_ms;
    let found = call.database().string(now_ms, key).map_err(|failure| (failure, line))?;
    Ok(found.map(<[u8]>::to_vec))
}

/// Yes: the reply repeats the number of the command.
pub(super) fn yes(number: i64) -> OwnedReply {
    OwnedReply::Integer(number)
}

/// No: the reply is the negative number of the command.
pub(super) fn no(number: i64) -> OwnedReply {
    OwnedReply::Integer(-number)
}

/// The number of the command: the last argument.
pub(super) fn proof(words: Words<'_>) -> Result<i64, Raised> {
    let last = words.argv.len().checked_sub(1).ok_or_else(malformed)?;
    i64::try_from(number(words, last)?).map_err(|_| malformed())
}

/// `claim.lua`
pub(super) fn claim(call: &mut Call<'_>, words: Words<'_>) -> Outcome {
    let (locks, counters) = split(words)?;
    let [_, before, ours, ttl, _, life, _] = *words.argv else { return Err(malformed()) };
    let proof = proof(words)?;
    let mut held = 0;
    for key in locks {
        match value(call, key, 3)? {
            Some(value) if before.is_empty() || value != before => return Ok(no(proof)),
            Some(_) => held += 1,
            None => {}
        }
    }
    let mut fence = 0;
    let mut found = Vec::new();
    for key in counters {
        let counter = counter(call, key);
        found.push(!matches!(counter, Counter::None));
        let next = match counter {
            Counter::None => 0,
            Counter::Number(number) if number < FENCE_MAX => number + 1,
            Counter::Number(_) | Counter::Other => {
                return Ok(no_counter("is no number that can be raised"));
            }
        };
        fence = next.max(number(words, 4)?).max(fence);
    }
    let limit = millis(words, 3)?;
    for key in locks {
        if before != ours || ends_before(call, key, limit) {
            put(call, key, ours, ttl, 21)?;
        }
    }
    for (key, is_found) in counters.iter().zip(found) {
        raise(call, (key, is_found), fence.to_string().as_bytes(), life)?;
    }
    let is_new = i64::from(held < locks.len());
    let fence = i64::try_from(fence).map_err(|_| malformed())?;
    Ok(OwnedReply::Array([proof, is_new, fence].map(OwnedReply::Integer).into()))
}

/// Does the key expire in less than `limit` milliseconds, or is it missing?
pub(super) fn ends_before(call: &mut Call<'_>, key: &[u8], limit: i64) -> bool {
    let now_ms = call.now_ms;
    let left = remaining_ms(call.database(), now_ms, key);
    left != ENDLESS && left < limit
}

/// Sets a counter. The time to live of an existing counter is not shortened.
fn raise(
    call: &mut Call<'_>,
    (key, is_found): (&[u8], bool),
    value: &[u8],
    life: &[u8],
) -> Result<(), Raised> {
    let now_ms = call.now_ms;
    let left = if is_found { remaining_ms(call.database(), now_ms, key) } else { 0 };
    if left == ENDLESS {
        let endless: [&[u8]; 3] = [b"SET", key, value];
        return set(&mut call.with_args(&endless)).map(|_| ()).map_err(|failure| (failure, 28));
    }
    let life = integer(life).map_err(|failure| (failure, 30))?.max(left);
    put(call, key, value, life.to_string().as_bytes(), 30)
}

/// A time to live in the arguments.
fn millis(words: Words<'_>, index: usize) -> Result<i64, Raised> {
    i64::try_from(number(words, index)?).map_err(|_| malformed())
}

/// The value of a counter's key.
enum Counter {
    None,
    /// Decimal digits only. A number that does not fit counts as the largest.
    Number(u64),
    Other,
}

fn counter(call: &mut Call<'_>, key: &[u8]) -> Counter {
    let now_ms = call.now_ms;
    let text = match call.database().string(now_ms, key) {
        Ok(None) => return Counter::None,
        Ok(Some(text)) => text,
        Err(_) => return Counter::Other,
    };
    if text.is_empty() || !text.iter().all(u8::is_ascii_digit) {
        return Counter::Other;
    }
    let digits = text.iter().map(|digit| u64::from(digit - b'0'));
    let add = |sum: u64, digit| sum.saturating_mul(10).saturating_add(digit);
    Counter::Number(digits.fold(0, add))
}

fn no_counter(complaint: &str) -> OwnedReply {
    Failure::new(format!("FENCE a counter of this lock {complaint}")).into()
}

/// `fence.lua`
pub(super) fn fence(call: &mut Call<'_>, words: Words<'_>) -> Outcome {
    let (locks, counters) = split(words)?;
    let [_, ours, token, life, _] = *words.argv else { return Err(malformed()) };
    let proof = proof(words)?;
    for key in locks {
        if value(call, key, 3)?.as_deref() != Some(ours) {
            return Ok(no(proof));
        }
    }
    let mut found = Vec::new();
    for key in counters {
        let counter = counter(call, key);
        found.push(!matches!(counter, Counter::None));
        match counter {
            Counter::Number(found) if found > number(words, 2)? => return Ok(no(proof)),
            Counter::None | Counter::Number(_) => {}
            Counter::Other => return Ok(no_counter("is no number")),
        }
    }
    for (key, is_found) in counters.iter().zip(found) {
        raise(call, (key, is_found), token, life)?;
    }
    Ok(yes(proof))
}

/// `release_all.lua`
pub(super) fn release_all(call: &mut Call<'_>, words: Words<'_>) -> Outcome {
    let [ours, _] = *words.argv else { return Err(malformed()) };
    let proof = proof(words)?;
    let mut count = 0;
    for key in words.keys {
        let is_ours = value(call, key, 3).is_ok_and(|value| value.as_deref() == Some(ours));
        count += usize::from(is_ours && remove(call, key));
    }
    Ok(if count == words.keys.len() { yes(proof) } else { no(proof) })
}

/// `leave.lua`
pub(super) fn leave(call: &mut Call<'_>, words: Words<'_>) -> Outcome {
    let [ours, _, _] = *words.argv else { return Err(malformed()) };
    let (rest, proof) = (millis(words, 1)?, proof(words)?);
    let (now_ms, unconditional) = (call.now_ms, Conditions::default());
    let mut count = 0;
    for key in words.keys {
        if value(call, key, 3).is_ok_and(|value| value.as_deref() == Some(ours)) {
            set_remaining(call.database(), now_ms, key, rest, "pexpire", &unconditional)
                .map_err(|failure| (failure, 4))?;
            count += 1;
        }
    }
    Ok(if count == words.keys.len() { yes(proof) } else { no(proof) })
}

/// `extend.lua`
pub(super) fn extend(call: &mut Call<'_>, words: Words<'_>) -> Outcome {
    extend_keys(call, words, [1, 6])
}

/// `extend_all.lua`
pub(super) fn extend_all(call: &mut Call<'_>, words: Words<'_>) -> Outcome {
    extend_keys(call, words, [2, 9])
}

/// Extends all keys, if all have our token. `lines` are the lines in which the script reads a key
/// and changes it.
fn extend_keys(call: &mut Call<'_>, words: Words<'_>, lines: [u32; 2]) -> Outcome {
    let [ours, _, _] = *words.argv else { return Err(malformed()) };
    let (limit, proof) = (millis(words, 1)?, proof(words)?);
    for key in words.keys {
        if value(call, key, lines[0])?.as_deref() != Some(ours) {
            return Ok(no(proof));
        }
    }
    let now_ms = call.now_ms;
    for key in words.keys {
        if ends_before(call, key, limit) {
            let unconditional = Conditions::default();
            set_remaining(call.database(), now_ms, key, limit, "pexpire", &unconditional)
                .map_err(|failure| (failure, lines[1]))?;
        }
    }
    Ok(yes(proof))
}

/// `inspect.lua`
pub(super) fn inspect(call: &mut Call<'_>, words: Words<'_>) -> Outcome {
    let key = *words.keys.first().ok_or_else(malformed)?;
    let proof = proof(words)?;
    let now_ms = call.now_ms;
    let found = match call.database().string(now_ms, key) {
        Ok(None) => OwnedReply::Null,
        Ok(Some(value)) => OwnedReply::bulk(&value[..value.len().min(SHOWN_MAX)]),
        // The key is not a lock's.
        Err(_) => OwnedReply::bulk([]),
    };
    let left = remaining_ms(call.database(), now_ms, key);
    Ok(OwnedReply::Array(vec![OwnedReply::Integer(proof), found, OwnedReply::Integer(left)]))
}

/// `remove.lua`
pub(super) fn remove_seen(call: &mut Call<'_>, words: Words<'_>) -> Outcome {
    let key = *words.keys.first().ok_or_else(malformed)?;
    let proof = proof(words)?;
    let seen = &words.argv[..words.argv.len() - 1];
    let is_seen = value(call, key, 1)?.is_some_and(|value| seen.contains(&&*value));
    Ok(if is_seen && remove(call, key) { yes(proof) } else { no(proof) })
}
