//! The scripts about a lock that is held, in Rust: they release, extend or read it.

use super::command::Call;
use super::expiry::{Conditions, set_remaining};
use super::queue::{depart, reserve_for_first, ring_first, shown_waiters};
use super::reply::OwnedReply;
use super::script_steps::{
    ends_before, malformed, millis, no, proof, remaining, remove, value, yes, yes_if,
};
use super::scripts::{Outcome, Words};
use crate::node::script::SHOWN_MAX;

/// `release.lua`
pub(super) fn release(call: &mut Call<'_>, words: Words<'_>) -> Outcome {
    let ([key], [ours, ttl, _]) = (words.keys, words.argv) else { return Err(malformed()) };
    let proof = proof(words)?;
    if value(call, key, 1)?.as_deref() != Some(*ours) {
        return Ok(no(proof));
    }
    remove(call, key);
    reserve_for_first(call, key, ttl, 7)?;
    Ok(yes(proof))
}

/// `release_all.lua`
pub(super) fn release_all(call: &mut Call<'_>, words: Words<'_>) -> Outcome {
    let [ours, ttl, _] = *words.argv else { return Err(malformed()) };
    let proof = proof(words)?;
    let mut count = 0;
    for key in words.keys {
        if value(call, key, 3).is_ok_and(|value| value.as_deref() == Some(ours)) {
            count += usize::from(remove(call, key));
            reserve_for_first(call, key, ttl, 7)?;
        }
    }
    Ok(yes_if(count == words.keys.len(), proof))
}

/// `remove.lua`
pub(super) fn remove_seen(call: &mut Call<'_>, words: Words<'_>) -> Outcome {
    let key = *words.keys.first().ok_or_else(malformed)?;
    let proof = proof(words)?;
    let [ttl, seen @ .., _] = words.argv else { return Err(malformed()) };
    let is_seen = value(call, key, 1)?.is_some_and(|value| seen.contains(&&*value));
    if is_seen {
        remove(call, key);
        reserve_for_first(call, key, ttl, 7)?;
    }
    Ok(yes_if(is_seen, proof))
}

/// `leave.lua`
pub(super) fn leave(call: &mut Call<'_>, words: Words<'_>) -> Outcome {
    let [ours, _, waiter, _] = *words.argv else { return Err(malformed()) };
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
    if let (Some(key), false) = (words.keys.first(), waiter.is_empty()) {
        depart(call, key, waiter);
    }
    if let Some(key) = words.keys.first() {
        ring_first(call, key);
    }
    Ok(yes_if(count == words.keys.len(), proof))
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
    let ([key], [_]) = (words.keys, words.argv) else { return Err(malformed()) };
    let proof = proof(words)?;
    let found = match value(call, key, 1) {
        Ok(None) => OwnedReply::Null,
        Ok(Some(value)) => OwnedReply::bulk(&value[..value.len().min(SHOWN_MAX)]),
        // The key is not a lock's.
        Err(_) => OwnedReply::bulk([]),
    };
    let waiters = OwnedReply::Array(shown_waiters(call, key)?);
    let left = OwnedReply::Integer(remaining(call, key));
    Ok(OwnedReply::Array(vec![OwnedReply::Integer(proof), found, left, waiters]))
}
