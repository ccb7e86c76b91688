//! An exclusive lock is taken, unless by a plain `SET`.

use super::{Call, Room, Script, counters, list, name_of, refusal, ttl_of_counters};
use crate::engine::{Acquisition, Action, FENCE_MAX, Request, Token};
use crate::node::command::{Meaning, decimal, reservation, value, value_of};
use crate::resp::Reply;

pub const CLAIM: Script = lua_script!("counters.lua", "claim.lua");

pub(super) const ROOM: Room = Room {
    script: CLAIM,
    encode,
    read,
};

fn encode(request: &Request, call: Call<'_>, out: &mut Vec<u8>) {
    match &request.action {
        Action::Acquire(new) => claim(call, new, &[], None, out),
        Action::Handoff { new, predecessor, .. } => {
            let before = value(&predecessor.token, predecessor.attributes.as_deref());
            claim(call, new, &before, predecessor.waiter.as_ref(), out);
        }
        Action::Turn { new, waiter } => {
            claim(call, new, &reservation(waiter), Some(waiter), out);
        }
        other => unreachable!("no claim: {other:?}"),
    }
}

/// Takes a lock whose keys do not exist, or hold the value `before`.
fn claim(
    call: Call<'_>,
    new: &Acquisition,
    before: &[u8],
    waiter: Option<&Token>,
    out: &mut Vec<u8>,
) {
    let Acquisition { lock, ttl, fence } = new;
    let [mut locks, mut millis, mut first, mut counters_ttl] = [[0; 20]; 4];
    let locks = decimal(lock.keys().count() as u64, &mut locks);
    let ttl = decimal(ttl.as_millis(), &mut millis);
    let first = decimal(*fence, &mut first);
    let counters_ttl = decimal(ttl_of_counters(lock), &mut counters_ttl);
    let (value, waiter) = (value_of(lock), name_of(waiter));
    let arguments = [locks, before, &value, ttl, first, counters_ttl, waiter];
    call.run(lock, &counters(lock), &arguments, out);
}

/// The meaning of the answer to a claim.
fn read(_: &Request, number: i64, reply: &Reply<'_>) -> Option<Meaning> {
    match list(number, reply) {
        Some(
            [
                Some(Reply::Integer(is_new @ 0..=1)),
                Some(Reply::Integer(counter)),
                Some(Reply::Integer(waiting)),
            ],
        ) => {
            let counter = u64::try_from(counter).ok().filter(|counter| *counter <= FENCE_MAX)?;
            let waiting = u64::try_from(waiting).ok()?;
            Some(Meaning::Claimed { is_new: is_new == 1, counter, waiting, permit: None })
        }
        _ => refusal(number, reply),
    }
}
