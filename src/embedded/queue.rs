//! The scripts of the queue, in Rust, and what other scripts do with the queue of a lock.
//!
//! Beside a lock's key there are the queue, a sorted set of the waiters' names; the lease of each
//! waiter; and its bell, which is set when the key is reserved for it.

use super::command::{Call, integer};
use super::reply::OwnedReply;
use super::script_steps::{
    first, is_there, malformed, millis, no, proof, put, read_set, remaining, remove, value,
    withdraw, yes, yes_if,
};
use super::scripts::{Outcome, Raised, Words};
use super::sharing::{SHARED, wants_share};
use super::sorted_set::SortedSet;
use crate::node::command::RESERVED;
use crate::node::script::SHOWN_MAX;

/// How many waiters `inspect.lua` looks at.
const SHOWN_WAITERS_MAX: usize = 100;

pub(super) fn reservation(waiter: &[u8]) -> Vec<u8> {
    [RESERVED, waiter].concat()
}

/// The scripts look at the prefix alone.
pub(super) fn is_reservation(value: &[u8]) -> bool {
    value.starts_with(RESERVED)
}

pub(super) fn queue_of(key: &[u8]) -> Vec<u8> {
    [key, b":redlatch:queue"].concat()
}

pub(super) fn lease_of(key: &[u8], waiter: &[u8]) -> Vec<u8> {
    [key, b":redlatch:lease:", waiter].concat()
}

pub(super) fn bell_of(key: &[u8], waiter: &[u8]) -> Vec<u8> {
    [key, b":redlatch:bell:", waiter].concat()
}

/// Reserves a free key for the first waiter, if there is one. `line` is that of the reservation;
/// the script ignores other errors.
pub(super) fn reserve_for_first(
    call: &mut Call<'_>,
    key: &[u8],
    ttl: &[u8],
    line: u32,
) -> Result<(), Raised> {
    if let Ok(Some(head)) = first(call, &queue_of(key), line) {
        put(call, key, &reservation(&head), ttl, line)?;
        let _ = put(call, &bell_of(key, &head), b"", ttl, line);
    }
    Ok(())
}

/// Rings the bell of the first waiter, so that it asks. The script ignores errors of these steps.
pub(super) fn ring_first(call: &mut Call<'_>, key: &[u8]) {
    if let Ok(Some(head)) = first(call, &queue_of(key), 1) {
        let _ = put(call, &bell_of(key, &head), b"", b"1000", 1);
    }
}

/// A waiter has the lock: its bell is taken away, and its lease says that it does not wait any
/// more.
pub(super) fn silence(
    call: &mut Call<'_>,
    key: &[u8],
    waiter: &[u8],
    (ttl, line): (i64, u32),
) -> Result<(), Raised> {
    remove(call, &bell_of(key, waiter));
    let lease = lease_of(key, waiter);
    let left = remaining(call, &lease).min(ttl);
    if left > 0 { put(call, &lease, b"", left.to_string().as_bytes(), line) } else { Ok(()) }
}

/// A waiter leaves the queue, and the server forgets its bell. The scripts ignore errors of these
/// steps.
pub(super) fn depart(call: &mut Call<'_>, key: &[u8], waiter: &[u8]) {
    let _ = withdraw(call, &queue_of(key), waiter, 1);
    let bell = bell_of(key, waiter);
    let _ = put(call, &bell, b"", b"1000", 1);
    remove(call, &lease_of(key, waiter));
    remove(call, &bell);
}

/// Rings the bell of the waiter behind a claimer, if the lock may end before it renews its entry.
pub(super) fn ring_if_far(
    call: &mut Call<'_>,
    (key, waiter): (&[u8], &[u8]),
    (ttl, front): (i64, &[u8]),
    line: u32,
) -> Result<(), Raised> {
    let limit = integer(front).map_err(|failure| (failure, line))?.min(ttl);
    if remaining(call, &lease_of(key, waiter)) > limit {
        put(call, &bell_of(key, waiter), b"", front, line)?;
    }
    Ok(())
}

/// Removes waiters without a lease from behind the first `rank`, and returns the first of them that
/// has one.
pub(super) fn living(
    call: &mut Call<'_>,
    key: &[u8],
    rank: usize,
    line: u32,
) -> Result<Option<Vec<u8>>, Raised> {
    let queue = queue_of(key);
    loop {
        let member = |set: &SortedSet| set.members().nth(rank).map(<[u8]>::to_vec);
        let Some(head) = read_set(call, &queue, line, member)? else { return Ok(None) };
        if is_there(call, &lease_of(key, &head)) {
            return Ok(Some(head));
        }
        withdraw(call, &queue, &head, line)?;
    }
}

/// Does anybody wait? Nobody does in a queue that is no sorted set.
pub(super) fn is_awaited(call: &mut Call<'_>, key: &[u8]) -> i64 {
    read_set(call, &queue_of(key), 1, |set| i64::from(!set.is_empty())).unwrap_or(0)
}

/// The names and leases of the first waiters, as `inspect.lua` answers them.
pub(super) fn shown_waiters(call: &mut Call<'_>, key: &[u8]) -> Result<Vec<OwnedReply>, Raised> {
    let first: Vec<Vec<u8>> = read_set(call, &queue_of(key), 9, |set| {
        set.members().take(SHOWN_WAITERS_MAX).map(<[u8]>::to_vec).collect()
    })
    .unwrap_or_default();
    let mut shown = Vec::new();
    for waiter in first {
        if let Some(lease) = value(call, &lease_of(key, &waiter), 11)? {
            let lease = &lease[..lease.len().min(SHOWN_MAX)];
            shown.extend([OwnedReply::bulk(waiter), OwnedReply::bulk(lease)]);
        }
    }
    Ok(shown)
}

/// `turn.lua`
pub(super) fn turn(call: &mut Call<'_>, words: Words<'_>) -> Outcome {
    let ([key], [waiter, ours, ttl, front, _]) = (words.keys, words.argv) else {
        return Err(malformed());
    };
    let proof = proof(words)?;
    let held = value(call, key, 2)?;
    let head = first(call, &queue_of(key), 3)?;
    let may = match held {
        Some(held) => held == reservation(waiter),
        None => head.is_none_or(|head| head == **waiter),
    };
    if !may {
        return Ok(no(proof));
    }
    put(call, key, ours, ttl, 11)?;
    silence(call, key, waiter, (millis(words, 2)?, 16))?;
    let following = living(call, key, 1, 18)?;
    if let Some(following) = &following {
        ring_if_far(call, (key, following), (millis(words, 2)?, front), 26)?;
    }
    let is_awaited = i64::from(following.is_some());
    Ok(OwnedReply::Array([proof, 1, is_awaited].map(OwnedReply::Integer).into()))
}

/// `leave_queue.lua`
pub(super) fn leave_queue(call: &mut Call<'_>, words: Words<'_>) -> Outcome {
    let ([key], [ours, waiter, ttl, _]) = (words.keys, words.argv) else { return Err(malformed()) };
    let proof = proof(words)?;
    let held = value(call, key, 2).ok().flatten();
    // The script ignores the errors of these steps.
    let queue = queue_of(key);
    let was_first = first(call, &queue, 3).is_ok_and(|head| head.as_deref() == Some(*waiter));
    let _ = withdraw(call, &queue, waiter, 4);
    remove(call, &lease_of(key, waiter));
    let _ = put(call, &bell_of(key, waiter), b"", b"1", 6);
    let is_ours = held.as_deref() == Some(*ours);
    if is_ours || held == Some(reservation(waiter)) {
        remove(call, key);
        reserve_for_first(call, key, ttl, 14)?;
    } else if was_first && held.as_deref() == Some(SHARED) {
        ring_for_share(call, key, ttl)?;
    }
    Ok(yes_if(is_ours, proof))
}

/// Rings the bell of the first waiter if it wants a share. The script ignores most errors of these
/// steps.
fn ring_for_share(call: &mut Call<'_>, key: &[u8], ttl: &[u8]) -> Result<(), Raised> {
    if let Ok(Some(head)) = first(call, &queue_of(key), 10) {
        let lease = value(call, &lease_of(key, &head), 17)?;
        if lease.is_some_and(|lease| wants_share(&lease)) {
            let _ = put(call, &bell_of(key, &head), b"", ttl, 18);
        }
    }
    Ok(())
}

/// `listen.lua`
pub(super) fn listen(call: &mut Call<'_>, words: Words<'_>) -> Outcome {
    let ([bell], [_]) = (words.keys, words.argv) else { return Err(malformed()) };
    let proof = proof(words)?;
    value(call, bell, 1)?;
    Ok(yes(proof))
}
