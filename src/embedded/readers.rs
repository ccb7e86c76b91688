//! The scripts that serve readers of a lock beside other readers with little work, in Rust.

use super::command::Call;
use super::queue::{queue_of, reserve_for_first};
use super::reply::OwnedReply;
use super::script_steps::{
    enter, expire, is_there, malformed, millis, no, proof, put, read_set, remaining, remove, value,
    withdraw, yes,
};
use super::scripts::{Outcome, Raised, Words};
use super::shares;
use super::sharing::{SHARED, holders_of, lines, member, moment};

/// The number of lines of `share_reader.lua`.
const LINES: u32 = lines(include_str!("../node/share_reader.lua").as_bytes());

/// `share_reader.lua`, `sharing.lua` and `share.lua`
pub(super) fn share(call: &mut Call<'_>, words: Words<'_>) -> Outcome {
    if let ([key], [ours, _, b"0", _, b"", _, _, _, _]) = (words.keys, words.argv) {
        let proof = proof(words)?;
        if share_with_readers(call, (key, ours), words)? {
            let granted = [proof, 1, 0, -1];
            return Ok(OwnedReply::Array(granted.map(OwnedReply::Integer).into()));
        }
    }
    shares::share(call, words).map_err(|(failure, line)| (failure, LINES + line))
}

/// Gives a reader the share of a free lock, or one beside other readers, while nobody waits.
/// Returns whether it did.
fn share_with_readers(
    call: &mut Call<'_>,
    (key, ours): (&[u8], &[u8]),
    words: Words<'_>,
) -> Result<bool, Raised> {
    if is_there(call, &queue_of(key)) {
        return Ok(false);
    }
    let (ttl, now) = (millis(words, 1)?, moment(call.now_ms));
    let (holders, member) = (holders_of(key), member(b"", ours));
    match value(call, key, 3)?.as_deref() {
        None => {
            remove(call, &holders);
        }
        Some(SHARED) => {
            let has_place = read_set(call, &holders, 9, |set| {
                let first = set.numbered().next();
                let are_readers = first.is_some_and(|(it, end)| it.starts_with(b":") && end > now);
                are_readers && set.number(&member).is_none()
            })?;
            if !has_place {
                return Ok(false);
            }
        }
        Some(_) => return Ok(false),
    }
    enter(call, &holders, (&member, moment(call.now_ms.saturating_add(ttl))), 12)?;
    if remaining(call, key) < ttl {
        expire(call, &holders, ttl, 14)?;
        put(call, key, SHARED, words.argv[1], 15)?;
    }
    Ok(true)
}

/// `release_reader.lua`
pub(super) fn release_reader(call: &mut Call<'_>, words: Words<'_>) -> Outcome {
    let ([key], [ours, reservation_ms, _]) = (words.keys, words.argv) else {
        return Err(malformed());
    };
    let (proof, holders, member) = (proof(words)?, holders_of(key), member(b"", ours));
    if value(call, key, 3)?.as_deref() != Some(SHARED) {
        return Ok(no(proof));
    }
    let ends = read_set(call, &holders, 3, |set| set.number(&member))?;
    let Some(ends) = ends else { return Ok(no(proof)) };
    withdraw(call, &holders, &member, 7)?;
    let last = read_set(call, &holders, 8, |set| set.numbered().last().map(|(_, end)| end))?;
    let mut is_free = last.is_none();
    if let Some(last) = last.filter(|last| *last < ends) {
        let left = i64::try_from(last).unwrap_or(i64::MAX).saturating_sub(call.now_ms);
        expire(call, key, left, 10)?;
        is_free = !is_there(call, key);
        if !is_free {
            expire(call, &holders, left, 11)?;
        }
    }
    if is_free {
        remove(call, key);
        remove(call, &holders);
        reserve_for_first(call, key, reservation_ms, 16)?;
    }
    Ok(yes(proof))
}
