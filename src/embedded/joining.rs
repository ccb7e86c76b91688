//! `queue.lua` in Rust: a waiter enters the queue of a lock, or renews its place.

use super::command::Call;
use super::queue::{bell_of, is_reservation, lease_of, living, queue_of, reservation};
use super::reply::OwnedReply;
use super::script_steps::{
    ENDLESS, count, digits, enter, expire, malformed, millis, number, proof, put, read_set,
    remaining, remove, value, withdraw,
};
use super::scripts::{Outcome, Raised, Words};
use super::sharing::{SHARED, Sharing, WALKED_MAX, behind, wanted_permits};
use super::sorted_set::{NUMBER_MAX, SortedSet};
use crate::node::script::WAITER_NUMBER_MAX;

pub(super) fn floor_of(key: &[u8]) -> Vec<u8> {
    [key, b":redlatch:floor"].concat()
}

/// The largest number of a waiter that took its share here, if that is known still.
pub(super) fn floor(call: &mut Call<'_>, key: &[u8]) -> u64 {
    let found = value(call, &floor_of(key), 12).unwrap_or(None);
    let number = found.and_then(|text| digits(&text));
    number.filter(|number| *number < WAITER_NUMBER_MAX).unwrap_or(0)
}

/// What is at the lock's key, as it concerns a waiter.
enum Held {
    /// Nothing, or a reservation.
    Free(Option<Vec<u8>>),
    /// Shares, of which the waiter wants one too. `is_changed` if its own was withdrawn.
    Shared { is_changed: bool },
    /// A token, shares beside which there is no place, or a value of another program.
    Taken,
}

/// `queue.lua`
pub(super) fn queue(call: &mut Call<'_>, words: Words<'_>) -> Outcome {
    let ([key], [waiter, _, withdrawn, lease, lease_ms, reservation_ms, _]) =
        (words.keys, words.argv)
    else {
        return Err(malformed());
    };
    let (proof, ends) = (proof(words)?, millis(words, 4)?);
    if number(words, 1)? > NUMBER_MAX {
        return Err(malformed());
    }
    let (permits, sharing) = (wanted_permits(lease), Sharing::of(key));
    let held = withdraw_try(call, &sharing, (withdrawn, permits))?;
    let number = place_in_queue(call, key, words)?;
    let queue = queue_of(key);
    put(call, &lease_of(key, waiter), lease, lease_ms, behind(32))?;
    enter(call, &queue, (waiter, number), behind(33))?;
    // Whether it expires or not: a queue that has just been made has no end yet.
    if remaining(call, &queue) < ends {
        expire(call, &queue, ends, behind(35))?;
    }
    let head = living(call, key, 0, behind(37))?.ok_or_else(malformed)?;
    let mut is_mine = false;
    if let Held::Free(before) = &held {
        is_mine = head == **waiter;
        reserve(call, (key, before.as_deref()), (&head, is_mine), reservation_ms)?;
    }
    let (mut left, lease) = (remaining(call, key), lease_of(key, &head));
    let kept = remaining(call, &lease);
    let is_others = matches!(held, Held::Free(_)) && !is_mine;
    if is_others && left > 0 && (kept == ENDLESS || kept > left) {
        expire(call, &lease, left, behind(53))?;
    }
    if let Held::Shared { is_changed } = held {
        if is_changed {
            sharing.ring(call, reservation_ms)?;
        }
        is_mine = sharing.called(call, WALKED_MAX)?.first.iter().any(|(name, _)| name == waiter);
        if permits > Some(0) {
            left = sharing.remaining(call, behind(62))?.ok_or_else(malformed)?.0;
        }
    }
    let (rank, len) = read_set(call, &queue, behind(66), |set| (set.rank(waiter), set.len()))?;
    let number = i64::try_from(number).map_err(|_| malformed())?;
    let place = count(rank.unwrap_or(0));
    let answer = [proof, number, place, i64::from(is_mine), left, count(len)];
    Ok(OwnedReply::Array(answer.map(OwnedReply::Integer).into()))
}

/// Withdraws what a failed attempt may have left at the key, and says what is there then.
fn withdraw_try(
    call: &mut Call<'_>,
    sharing: &Sharing<'_>,
    (withdrawn, permits): (&[u8], Option<u64>),
) -> Result<Held, Raised> {
    // A value that is no string is an error, and belongs to another program.
    let Ok(held) = value(call, sharing.key, behind(1)) else { return Ok(Held::Taken) };
    if held.as_deref() == Some(withdrawn) {
        remove(call, sharing.key);
        return Ok(Held::Free(None));
    }
    if held.as_deref() != Some(SHARED) {
        let is_free = held.as_deref().is_none_or(is_reservation);
        return Ok(if is_free { Held::Free(held) } else { Held::Taken });
    }
    sharing.purge(call, behind(8))?;
    let ours = match permits {
        Some(permits) => sharing.find_holder(call, withdrawn, permits)?,
        None => None,
    };
    if let Some(ours) = &ours {
        withdraw(call, &sharing.holders, ours, behind(11))?;
    }
    if read_set(call, &sharing.holders, behind(13), SortedSet::is_empty)? {
        remove(call, sharing.key);
        return Ok(Held::Free(None));
    }
    sharing.set_expiry(call)?;
    if permits.is_none() {
        return Ok(Held::Taken);
    }
    Ok(Held::Shared { is_changed: ours.is_some() })
}

/// The number of the waiter: the one that it names, the one that it has, or a new one.
fn place_in_queue(call: &mut Call<'_>, key: &[u8], words: Words<'_>) -> Result<u64, Raised> {
    let (queue, waiter, asked) = (queue_of(key), words.argv[0], number(words, 1)?);
    let before = read_set(call, &queue, behind(20), |set| set.number(waiter))?;
    if words.argv[1] != b"0" {
        return Ok(asked);
    }
    if let Some(before) = before {
        return Ok(before);
    }
    let last = read_set(call, &queue, behind(25), SortedSet::next_number)?;
    let number = last.max(floor(call, key).saturating_add(1));
    if number > WAITER_NUMBER_MAX {
        remove(call, &queue);
        remove(call, &floor_of(key));
        return Ok(1);
    }
    Ok(number)
}

/// Reserves the key for the first waiter. Its bell rings if it was not reserved for it before.
fn reserve(
    call: &mut Call<'_>,
    (key, before): (&[u8], Option<&[u8]>),
    (head, is_mine): (&[u8], bool),
    ttl: &[u8],
) -> Result<(), Raised> {
    let wanted = reservation(head);
    let is_moved = before != Some(&wanted);
    if is_moved || is_mine {
        put(call, key, &wanted, ttl, behind(44))?;
    }
    if is_moved {
        put(call, &bell_of(key, head), b"", ttl, behind(47))?;
    }
    Ok(())
}
