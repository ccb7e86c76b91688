//! The scripts that take a lock or pass it on, in Rust, and those of the counters. The conformance
//! test compares them with the Lua, as this library calls them. With too few arguments they return
//! an error of their own.

use super::command::{Call, integer};
use super::queue::{depart, is_awaited, is_reservation, living, queue_of, ring_if_far, silence};
use super::reply::{Failure, OwnedReply};
use super::script_steps::{
    ENDLESS, digits, ends_before, first, malformed, millis, no, number, proof, put, read_set,
    remaining, value, yes,
};
use super::scripts::{Outcome, Raised, Words};
use super::sharing::{SHARED, holders_of};
use super::strings::set;
use crate::node::script::FENCE_MAX;

/// The keys of the locks, whose number is in `ARGV[1]`, and the keys of the counters.
fn split(words: Words<'_>) -> Result<(Keys<'_>, Keys<'_>), Raised> {
    let locks = usize::try_from(number(words, 0)?).map_err(|_| malformed())?;
    words.keys.split_at_checked(locks).ok_or_else(malformed)
}

type Keys<'a> = &'a [&'a [u8]];

/// `claim.lua`
pub(super) fn claim(call: &mut Call<'_>, words: Words<'_>) -> Outcome {
    let (locks, counters) = split(words)?;
    let [_, before, ours, ttl, _, life, waiter, front, _] = *words.argv else {
        return Err(malformed());
    };
    let proof = proof(words)?;
    let (is_restore, is_turn) = (before == ours, is_reservation(before));
    let queue = queue_of(words.keys.first().ok_or_else(malformed)?);
    let mut held = Vec::new();
    for key in locks {
        let value = value(call, key, 5)?.filter(|value| !(is_restore && is_reservation(value)));
        if value.as_deref().is_some_and(|value| before.is_empty() || value != before) {
            return Ok(no(proof));
        }
        if is_turn {
            let head = first(call, &queue, 12)?;
            if value.is_none() && head.is_some_and(|head| head != waiter) {
                return Ok(no(proof));
            }
        }
        held.push(value.is_some());
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
    for (key, is_held) in locks.iter().zip(&held) {
        if !(is_restore && *is_held) || ends_before(call, key, limit) {
            put(call, key, ours, ttl, 30)?;
        }
    }
    for (key, is_found) in counters.iter().zip(found) {
        raise(call, (key, is_found), fence.to_string().as_bytes(), life, 39)?;
    }
    let key = *words.keys.first().ok_or_else(malformed)?;
    if is_turn {
        silence(call, key, waiter, (limit, 47))?;
    } else if !waiter.is_empty() {
        depart(call, key, waiter);
    }
    // A queue that is no sorted set is nobody's.
    let following = living(call, key, usize::from(is_turn), 59).unwrap_or(None);
    if let Some(following) = following.as_deref().filter(|_| is_turn) {
        ring_if_far(call, (key, following), (limit, front), 64)?;
    }
    let is_new = i64::from(is_turn || held.contains(&false));
    let fence = i64::try_from(fence).map_err(|_| malformed())?;
    let answer = [proof, is_new, fence, i64::from(following.is_some())];
    Ok(OwnedReply::Array(answer.map(OwnedReply::Integer).into()))
}

/// Sets a counter. The time to live of an existing counter is not shortened.
pub(super) fn raise(
    call: &mut Call<'_>,
    (key, is_found): (&[u8], bool),
    value: &[u8],
    life: &[u8],
    line: u32,
) -> Result<(), Raised> {
    let left = if is_found { remaining(call, key) } else { 0 };
    if left == ENDLESS {
        let endless: [&[u8]; 3] = [b"SET", key, value];
        return set(&mut call.with_args(&endless)).map(|_| ()).map_err(|failure| (failure, line));
    }
    let life = integer(life).map_err(|failure| (failure, line))?.max(left);
    put(call, key, value, life.to_string().as_bytes(), line)
}

/// The value of a counter's key.
pub(super) enum Counter {
    None,
    /// Decimal digits only.
    Number(u64),
    Other,
}

pub(super) fn counter(call: &mut Call<'_>, key: &[u8]) -> Counter {
    let text = match value(call, key, 1) {
        Ok(None) => return Counter::None,
        Ok(Some(text)) => text,
        Err(_) => return Counter::Other,
    };
    digits(&text).map_or(Counter::Other, Counter::Number)
}

pub(super) fn no_counter(complaint: &str) -> OwnedReply {
    Failure::new(format!("FENCE a counter of this lock {complaint}")).into()
}

/// `fence.lua`
pub(super) fn fence(call: &mut Call<'_>, words: Words<'_>) -> Outcome {
    let (locks, counters) = split(words)?;
    let [_, ours, token, life, _] = *words.argv else { return Err(malformed()) };
    let proof = proof(words)?;
    for key in locks {
        let held = value(call, key, 3)?;
        let is_ours = match held.as_deref() {
            Some(SHARED) => read_set(call, &holders_of(key), 5, |set| set.number(ours).is_some())?,
            held => held == Some(ours),
        };
        if !is_ours {
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
        raise(call, (key, is_found), token, life, 27)?;
    }
    Ok(yes(proof))
}

/// `handoff.lua`
pub(super) fn handoff(call: &mut Call<'_>, words: Words<'_>) -> Outcome {
    let ([key], [before, token, ttl, waiter, _]) = (words.keys, words.argv) else {
        return Err(malformed());
    };
    let proof = proof(words)?;
    let held = value(call, key, 2)?;
    if held.as_deref().is_some_and(|held| held != *before) {
        return Ok(no(proof));
    }
    put(call, key, token, ttl, 6)?;
    if !waiter.is_empty() {
        depart(call, key, waiter);
    }
    let answer = [proof, i64::from(held.is_none()), is_awaited(call, key)];
    Ok(OwnedReply::Array(answer.map(OwnedReply::Integer).into()))
}

/// `restore.lua`
pub(super) fn restore(call: &mut Call<'_>, words: Words<'_>) -> Outcome {
    let ([key], [ours, ttl, _]) = (words.keys, words.argv) else { return Err(malformed()) };
    let proof = proof(words)?;
    if value(call, key, 1)?.is_some_and(|held| !is_reservation(&held)) {
        return Ok(no(proof));
    }
    put(call, key, ours, ttl, 5)?;
    Ok(yes(proof))
}
