//! The scripts about counters, several keys, and keys that are only looked at, in Rust. They are
//! held against the Lua in the ways in which this library calls them; called with too few
//! arguments, they say so in words of their own.

use super::command::Call;
use super::expiry::{Conditions, remaining_ms, set_remaining};
use super::reply::{Failure, OwnedReply};
use super::scripts::{Outcome, Raised, Words, put, remove};
use crate::node::script::FENCE_MAX;

/// As much of a value as `inspect.lua` shows.
const SHOWN_MAX: usize = 1024;

fn malformed() -> Raised {
    (Failure::new("ERR embedded nodes run this script only as redlatch calls it"), 1)
}

fn number(words: Words<'_>, index: usize) -> Result<u64, Raised> {
    let text = words.argv.get(index).and_then(|text| std::str::from_utf8(text).ok());
    text.and_then(|text| text.parse().ok()).ok_or_else(malformed)
}

/// The locks' keys and the counters', of which `ARGV[1]` says how many there are.
fn split(words: Words<'_>) -> Result<(Keys<'_>, Keys<'_>), Raised> {
    let locks = usize::try_from(number(words, 0)?).map_err(|_| malformed())?;
    words.keys.split_at_checked(locks).ok_or_else(malformed)
}

type Keys<'a> = &'a [&'a [u8]];

fn value(call: &mut Call<'_>, key: &[u8], line: u32) -> Result<Option<Vec<u8>>, Raised> {
    let now_ms = call.now_ms;
    let found = call.database().string(now_ms, key).map_err(|failure| (failure, line))?;
    Ok(found.map(<[u8]>::to_vec))
}

/// `claim.lua`
pub(super) fn claim(call: &mut Call<'_>, words: Words<'_>) -> Outcome {
    let (locks, counters) = split(words)?;
    let [_, before, ours, ttl, _, life] = *words.argv else { return Err(malformed()) };
    let answer = |state, fence| {
        OwnedReply::Array(vec![OwnedReply::Integer(state), OwnedReply::Integer(fence)])
    };
    let mut held = 0;
    for key in locks {
        match value(call, key, 3)? {
            Some(value) if before.is_empty() || value != before => return Ok(answer(0, 0)),
            Some(_) => held += 1,
            None => {}
        }
    }
    let mut fence = 0;
    for key in counters {
        let next = match counter(call, key) {
            Counter::None => 0,
            Counter::Number(number) if number < FENCE_MAX => number + 1,
            Counter::Number(_) | Counter::Other => {
                return Ok(no_counter("is no number that can be raised"));
            }
        };
        fence = next.max(number(words, 4)?).max(fence);
    }
    let limit = i64::try_from(number(words, 3)?).map_err(|_| malformed())?;
    for key in locks {
        let now_ms = call.now_ms;
        if before != ours || remaining_ms(call.database(), now_ms, key) < limit {
            put(call, key, ours, ttl, 19)?;
        }
    }
    for key in counters {
        put(call, key, fence.to_string().as_bytes(), life, 23)?;
    }
    let state = if held == locks.len() { 1 } else { 2 };
    Ok(answer(state, i64::try_from(fence).map_err(|_| malformed())?))
}

/// What is found under a counter's key.
enum Counter {
    None,
    /// Decimal digits and nothing else. More than fit count as the largest number there is.
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
    let [_, ours, token, life] = *words.argv else { return Err(malformed()) };
    for key in locks {
        if value(call, key, 3)?.as_deref() != Some(ours) {
            return Ok(OwnedReply::Integer(0));
        }
    }
    for key in counters {
        match counter(call, key) {
            Counter::Number(found) if found > number(words, 2)? => {
                return Ok(OwnedReply::Integer(0));
            }
            Counter::None | Counter::Number(_) => {}
            Counter::Other => return Ok(no_counter("is no number")),
        }
    }
    for key in counters {
        put(call, key, token, life, 18)?;
    }
    Ok(OwnedReply::Integer(1))
}

/// `release_all.lua`
pub(super) fn release_all(call: &mut Call<'_>, words: Words<'_>) -> Outcome {
    let ours = words.argv.first().copied();
    let mut count = 0;
    for key in words.keys {
        let is_ours = value(call, key, 3).is_ok_and(|value| value.as_deref() == ours);
        count += usize::from(is_ours && remove(call, key));
    }
    Ok(OwnedReply::Integer(i64::from(count == words.keys.len())))
}

/// `extend_all.lua`
pub(super) fn extend_all(call: &mut Call<'_>, words: Words<'_>) -> Outcome {
    let ours = words.argv.first().copied();
    for key in words.keys {
        if value(call, key, 2)?.as_deref() != ours {
            return Ok(OwnedReply::Integer(0));
        }
    }
    let ttl = i64::try_from(number(words, 1)?).map_err(|_| malformed())?;
    let now_ms = call.now_ms;
    for key in words.keys {
        let database = call.database();
        if words.argv.len() < 3 || remaining_ms(database, now_ms, key) < ttl {
            let unconditional = Conditions::default();
            set_remaining(database, now_ms, key, ttl, "pexpire", &unconditional)
                .map_err(|failure| (failure, 8))?;
        }
    }
    Ok(OwnedReply::Integer(1))
}

/// `inspect.lua`
pub(super) fn inspect(call: &mut Call<'_>, words: Words<'_>) -> Outcome {
    let key = *words.keys.first().ok_or_else(malformed)?;
    let now_ms = call.now_ms;
    let found = match call.database().string(now_ms, key) {
        Ok(None) => OwnedReply::Null,
        Ok(Some(value)) => OwnedReply::bulk(&value[..value.len().min(SHOWN_MAX)]),
        // Something is there that is no lock's.
        Err(_) => OwnedReply::bulk([]),
    };
    let left = remaining_ms(call.database(), now_ms, key);
    Ok(OwnedReply::Array(vec![found, OwnedReply::Integer(left)]))
}
