//! The scripts about shares of a lock, in Rust: readers and permits.

use super::claims::{Counter, counter, no_counter, raise};
use super::command::Call;
use super::joining::{floor, floor_of};
use super::moved::{MOVED, is_taken, moved_member};
use super::queue::{bell_of, is_reservation, lease_of, reservation};
use super::reply::OwnedReply;
use super::script_steps::{
    digits, enter, expire, first, malformed, millis, no, number, proof, put, read_set, remaining,
    remove, value, withdraw, yes, yes_if,
};
use super::scripts::{Outcome, Raised, Words};
use super::sharing::{
    SHARED, Sharing, WALKED_MAX, behind, first_names, free_slot, member, moment, parts,
    wanted_permits,
};
use super::sorted_set::SortedSet;
use crate::node::script::FENCE_MAX;

/// `share.lua`
pub(super) fn share(call: &mut Call<'_>, words: Words<'_>) -> Outcome {
    let [key, ..] = *words.keys else { return Err(malformed()) };
    let [ours, _, _, _, waiter, front, _, _, _] = *words.argv else { return Err(malformed()) };
    let (proof, ttl) = (proof(words)?, millis(words, 1)?);
    // All words are looked at before anything is changed.
    let (_, _) = (number(words, 2)?, number(words, 6)?);
    if !words.argv[3].is_empty() {
        number(words, 3)?;
    }
    let sharing = Sharing::of(key);
    let held = value(call, key, behind(1))?;
    match held.as_deref() {
        Some(SHARED) => {}
        Some(held) if waiter.is_empty() || held != reservation(waiter) => return Ok(no(proof)),
        _ => {
            remove(call, &sharing.holders);
        }
    }
    sharing.purge(call, behind(9))?;
    let found = sharing.find_holder(call, ours, number(words, 2)?)?;
    let place = match waiter.is_empty() {
        true => None,
        false => {
            read_set(call, &sharing.queue, behind(11), |set| set.number(waiter)).unwrap_or(None)
        }
    };
    let mut ends = moment(call.now_ms.saturating_add(ttl));
    let slot = match (&found, place) {
        (Some(found), _) => {
            let before = read_set(call, &sharing.holders, behind(15), |set| set.number(found))?;
            ends = ends.max(before.unwrap_or(0));
            parts(found).map(|(slot, _)| slot.to_vec())
        }
        (None, Some(_)) => slot_in_turn(call, &sharing, words)?,
        (None, None) => untaken_slot(call, &sharing, words)?,
    };
    let is_here = |slot: &Vec<u8>| digits(slot).is_none_or(|slot| slot < MOVED);
    let Some(slot) = slot.filter(is_here) else { return Ok(no(proof)) };
    let fence = match words.keys.get(1) {
        None => 0,
        Some(key) => match raise_for_share(call, key, words)? {
            Ok(fence) => fence,
            Err(error) => return Ok(error),
        },
    };
    enter(call, &sharing.holders, (&member(&slot, ours), ends), behind(56))?;
    sharing.set_expiry(call)?;
    if !waiter.is_empty() {
        if let Some(place) = place {
            if place > floor(call, key) {
                let place = place.to_string();
                put(call, &floor_of(key), place.as_bytes(), front, behind(60))?;
            }
        }
        // The script ignores an error of this step.
        let _ = withdraw(call, &sharing.queue, waiter, behind(62));
        remove(call, &lease_of(key, waiter));
        remove(call, &bell_of(key, waiter));
        sharing.ring(call, front)?;
    }
    let fence = i64::try_from(fence).map_err(|_| malformed())?;
    let slot = digits(&slot).map_or(-1, |slot| i64::try_from(slot).unwrap_or(i64::MAX));
    Ok(OwnedReply::Array([proof, 1, fence, slot].map(OwnedReply::Integer).into()))
}

/// The permit for a waiter whose turn it is, or the empty one of a reader.
fn slot_in_turn(
    call: &mut Call<'_>,
    sharing: &Sharing<'_>,
    words: Words<'_>,
) -> Result<Option<Vec<u8>>, Raised> {
    let (permits, waiter) = (number(words, 2)?, words.argv[4]);
    let mut called = sharing.called(call, WALKED_MAX)?.first.into_iter();
    let slot = called.find(|(name, _)| name == waiter).map(|(_, slot)| slot);
    if slot.is_none() || permits == 0 || words.argv[3].is_empty() {
        return Ok(slot);
    }
    named_slot(call, sharing, (permits, number(words, 3)?))
}

/// The first free permit from a certain one on.
fn named_slot(
    call: &mut Call<'_>,
    sharing: &Sharing<'_>,
    (permits, first): (u64, u64),
) -> Result<Option<Vec<u8>>, Raised> {
    let (used, _) = sharing.slots_in_use(call)?;
    let slot = free_slot(&used, permits, first);
    Ok(slot.map(|slot| slot.to_string().into_bytes()))
}

/// The permit for a client that does not wait, or the empty one of a reader; `None` if somebody
/// waits, no permit is free, or readers have shares beside which there is no permit.
fn untaken_slot(
    call: &mut Call<'_>,
    sharing: &Sharing<'_>,
    words: Words<'_>,
) -> Result<Option<Vec<u8>>, Raised> {
    for name in first_names(call, &sharing.queue) {
        match value(call, &lease_of(sharing.key, &name), behind(24))? {
            None => {
                withdraw(call, &sharing.queue, &name, behind(26))?;
            }
            Some(lease) if lease.is_empty() => {}
            Some(_) => return Ok(None),
        }
    }
    let permits = number(words, 2)?;
    if sharing.are_readers(call)?.is_some_and(|readers| readers != (permits == 0)) {
        return Ok(None);
    }
    match permits {
        0 => Ok(Some(Vec::new())),
        _ => named_slot(call, sharing, (permits, number(words, 3).unwrap_or(0))),
    }
}

/// Raises the counter for a permit, or reads it for a reader, which may make it live longer. The
/// inner error is the answer of the script.
fn raise_for_share(
    call: &mut Call<'_>,
    key: &[u8],
    words: Words<'_>,
) -> Result<Result<u64, OwnedReply>, Raised> {
    let (permits, least) = (number(words, 2)?, number(words, 6)?);
    let found = match counter(call, key) {
        Counter::None => None,
        Counter::Number(number) if number < FENCE_MAX => Some(number),
        Counter::Number(_) | Counter::Other => {
            return Ok(Err(no_counter("is no number that can be raised")));
        }
    };
    let step = u64::from(permits > 0);
    let fence = least.max(found.map_or(0, |found| found + step));
    let token = fence.to_string();
    raise(call, (key, found.is_some()), token.as_bytes(), words.argv[7], behind(53))?;
    Ok(Ok(fence))
}

/// `extend_shared.lua`
pub(super) fn extend_shared(call: &mut Call<'_>, words: Words<'_>) -> Outcome {
    let ([key], [slot, ours, _, _]) = (words.keys, words.argv) else { return Err(malformed()) };
    let (proof, ttl) = (proof(words)?, millis(words, 2)?);
    let (sharing, member) = (Sharing::of(key), member(slot, ours));
    if value(call, key, behind(1))?.as_deref() != Some(SHARED) {
        return Ok(no(proof));
    }
    sharing.purge(call, behind(5))?;
    let ends = read_set(call, &sharing.holders, behind(6), |set| set.number(&member))?;
    let Some(ends) = ends else { return Ok(no(proof)) };
    if ends < moment(call.now_ms.saturating_add(ttl)) {
        sharing.hold(call, (&member, ttl), behind(11))?;
        sharing.set_expiry(call)?;
    }
    Ok(yes(proof))
}

/// `restore_shared.lua`
pub(super) fn restore_shared(call: &mut Call<'_>, words: Words<'_>) -> Outcome {
    let ([key], [slot, ours, _, _]) = (words.keys, words.argv) else { return Err(malformed()) };
    let (proof, ttl) = (proof(words)?, millis(words, 2)?);
    let (sharing, member) = (Sharing::of(key), member(slot, ours));
    let mut ends = moment(call.now_ms.saturating_add(ttl));
    match value(call, key, behind(1))?.as_deref() {
        Some(SHARED) => sharing.purge(call, behind(7))?,
        Some(held) if !is_reservation(held) => return Ok(no(proof)),
        _ => {
            remove(call, &sharing.holders);
        }
    }
    if sharing.are_readers(call)?.is_some_and(|readers| readers != slot.is_empty()) {
        return Ok(no(proof));
    }
    let before = sharing.find_holder(call, ours, u64::from(!slot.is_empty()))?;
    let is_taken = is_taken(call, &sharing, slot, before.as_deref())?;
    if is_taken && before.is_none() {
        return Ok(no(proof));
    }
    if let Some(before) = before {
        let ended = read_set(call, &sharing.holders, behind(23), |set| set.number(&before))?;
        ends = ends.max(ended.unwrap_or(0));
        withdraw(call, &sharing.holders, &before, behind(24))?;
    }
    let member = if is_taken { moved_member(slot, ours) } else { member };
    enter(call, &sharing.holders, (&member, ends), behind(26))?;
    sharing.set_expiry(call)?;
    Ok(yes_if(!is_taken, proof))
}

/// `release_shared.lua`, which has no `sharing.lua` before it.
pub(super) fn release_shared(call: &mut Call<'_>, words: Words<'_>) -> Outcome {
    let ([key], [_, _, waiter, linger, reservation_ms, _]) = (words.keys, words.argv) else {
        return Err(malformed());
    };
    let (proof, ttl) = (proof(words)?, millis(words, 4)?);
    if !linger.is_empty() {
        millis(words, 3)?;
    }
    let sharing = Sharing::of(key);
    // A value that is no string belongs to another program.
    let held = value(call, key, 4).unwrap_or_else(|_| Some(Vec::new()));
    let mut was_first = false;
    if !waiter.is_empty() {
        was_first =
            first(call, &sharing.queue, 6).is_ok_and(|head| head.as_deref() == Some(*waiter));
        let _ = withdraw(call, &sharing.queue, waiter, 7);
        remove(call, &lease_of(key, waiter));
        put(call, &bell_of(key, waiter), b"", b"1", 9)?;
    }
    let (mut found, mut is_shared, mut is_free) = (None, false, held.is_none());
    if held.as_deref() == Some(SHARED) {
        (found, is_shared) = give_back(call, &sharing, words)?;
        is_free = !is_shared;
    } else if !waiter.is_empty() && held == Some(reservation(waiter)) {
        remove(call, key);
        is_free = true;
    }
    // A queue that is no sorted set is nobody's.
    let head = first(call, &sharing.queue, 36).unwrap_or(None);
    if let (Some(head), true) = (&head, is_free) {
        put(call, key, &reservation(head), reservation_ms, 38)?;
        put(call, &bell_of(key, head), b"", reservation_ms, 39)?;
    }
    if let Some(head) = head.filter(|_| is_shared && (found.is_some() || was_first)) {
        let lease = lease_of(key, &head);
        let permits = value(call, &lease, 41)?.and_then(|lease| wanted_permits(&lease));
        let slot = found.as_deref().and_then(|found| digits(parts(found)?.0));
        let has_one = |permits| was_first || slot.is_some_and(|slot| slot % MOVED < permits);
        if !linger.is_empty() || permits.is_some_and(has_one) {
            put(call, &bell_of(key, &head), b"", reservation_ms, 44)?;
            if remaining(call, &lease) > ttl {
                expire(call, &lease, ttl, 46)?;
            }
        }
    }
    Ok(yes_if(found.is_some(), proof))
}

/// The first permit with a value.
fn find_permit(set: &SortedSet, value: &[u8]) -> Option<Vec<u8>> {
    let is_its =
        |it: &&[u8]| parts(it).is_some_and(|(slot, other)| !slot.is_empty() && other == value);
    set.members().find(is_its).map(<[u8]>::to_vec)
}

/// Removes a share, or keeps it for a while. Returns its member, if there was one, and whether
/// there are any now.
fn give_back(
    call: &mut Call<'_>,
    sharing: &Sharing<'_>,
    words: Words<'_>,
) -> Result<(Option<Vec<u8>>, bool), Raised> {
    let [ours, permits, _, linger, ..] = *words.argv else { return Err(malformed()) };
    sharing.purge(call, 14)?;
    let mut found = match permits {
        b"0" => Some(member(b"", ours)),
        _ => read_set(call, &sharing.holders, 16, |set| find_permit(set, ours))?,
    };
    if let Some(member) = &found {
        let was_there = withdraw(call, &sharing.holders, member, 19)?;
        found = found.filter(|_| was_there);
    }
    if let (Some(member), false) = (&found, linger.is_empty()) {
        sharing.hold(call, (member, millis(words, 3)?), 21)?;
    }
    let left = sharing.remaining(call, 23)?;
    match left {
        Some((_, left)) => {
            expire(call, &sharing.holders, left, 26)?;
            put(call, sharing.key, SHARED, left.to_string().as_bytes(), 27)?;
        }
        None => {
            remove(call, sharing.key);
        }
    }
    Ok((found, left.is_some()))
}
