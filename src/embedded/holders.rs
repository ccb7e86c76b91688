//! The scripts about a lock that is held, in Rust: they release, extend or read it.

use super::command::Call;
use super::queue::{depart, reserve_for_first, ring_first, shown_waiters};
use super::reply::OwnedReply;
use super::script_steps::{
    ends_before, expire, malformed, millis, no, proof, read_set, remaining, remove, value,
    withdraw, yes, yes_if,
};
use super::scripts::{Outcome, Words};
use super::sharing::{SHARED, Sharing, behind, holders_of, moment};
use super::sorted_set::SortedSet;
use crate::node::script::SHOWN_MAX;
use crate::resp::ELEMENTS_MAX;

/// How many shares `inspect.lua` looks at.
const SHOWN_SHARES_MAX: usize = 100;

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
    let sharing = Sharing::of(key);
    let held = value(call, key, behind(1))?;
    let is_shared = held.as_deref() == Some(SHARED);
    let mut is_seen = held.is_some_and(|held| seen.contains(&&*held));
    if is_shared {
        is_seen = false;
        sharing.purge(call, behind(4))?;
        for member in seen {
            is_seen = withdraw(call, &sharing.holders, member, behind(8))? || is_seen || {
                let is_empty = SortedSet::is_empty;
                *member == SHARED && read_set(call, &sharing.holders, behind(9), is_empty)?
            };
        }
    }
    if is_seen {
        sharing.settle(call, is_shared, ttl)?;
    }
    Ok(yes_if(is_seen, proof))
}

/// `leave.lua`
pub(super) fn leave(call: &mut Call<'_>, words: Words<'_>) -> Outcome {
    let [ours, _, waiter, _] = *words.argv else { return Err(malformed()) };
    let (rest, proof) = (millis(words, 1)?, proof(words)?);
    let mut count = 0;
    for key in words.keys {
        if value(call, key, 3).is_ok_and(|value| value.as_deref() == Some(ours)) {
            expire(call, key, rest, 4)?;
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
    for key in words.keys {
        if ends_before(call, key, limit) {
            expire(call, key, limit, lines[1])?;
        }
    }
    Ok(yes(proof))
}

/// `inspect.lua`
pub(super) fn inspect(call: &mut Call<'_>, words: Words<'_>) -> Outcome {
    let ([key], [_]) = (words.keys, words.argv) else { return Err(malformed()) };
    let proof = proof(words)?;
    let held = value(call, key, 1);
    let is_shared = matches!(&held, Ok(Some(held)) if held == SHARED);
    let found = match held {
        Ok(None) => OwnedReply::Null,
        Ok(Some(value)) => OwnedReply::bulk(&value[..value.len().min(SHOWN_MAX)]),
        // The key is not a lock's.
        Err(_) => OwnedReply::bulk([]),
    };
    let waiters = in_parts(shown_waiters(call, key)?);
    let left = OwnedReply::Integer(remaining(call, key));
    let shown = if is_shared { shown_shares(call, key) } else { Vec::new() };
    let shown = in_parts(shown);
    Ok(OwnedReply::Array(vec![OwnedReply::Integer(proof), found, left, waiters, shown]))
}

/// Lists of up to as many elements as clients accept.
pub(super) fn in_parts(list: Vec<OwnedReply>) -> OwnedReply {
    let mut parts = Vec::new();
    let mut list = list.into_iter().peekable();
    while list.peek().is_some() {
        parts.push(OwnedReply::Array(list.by_ref().take(ELEMENTS_MAX).collect()));
    }
    OwnedReply::Array(parts)
}

/// The first shares to end that have not expired, and how long each has left. The script ignores an
/// error of this step.
fn shown_shares(call: &mut Call<'_>, key: &[u8]) -> Vec<OwnedReply> {
    let now = moment(call.now_ms);
    let shown = read_set(call, &holders_of(key), 20, |set| {
        let is_shown = |ends: u64| ends > now && ends - now <= 1 << 42;
        let living = set.numbered().filter(|(_, ends)| is_shown(*ends)).take(SHOWN_SHARES_MAX);
        let pair = |(member, ends): (&[u8], u64)| {
            let left = i64::try_from(ends - now).unwrap_or(i64::MAX);
            let member = &member[..member.len().min(SHOWN_MAX)];
            [OwnedReply::bulk(member), OwnedReply::Integer(left)]
        };
        living.flat_map(pair).collect()
    });
    shown.unwrap_or_default()
}
