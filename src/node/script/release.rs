//! A lock with one key that nobody has queued for is released: see [`GIVE`](super::GIVE).

use super::{Call, Room, Script, removal, yes_or_no};
use crate::engine::{Removal, Request};
use crate::node::command::value_of;

/// Deletes the lock's key if it still holds our token, and reserves the lock for the first waiter:
/// `KEYS[1]` the key, `ARGV[1]` the token, `ARGV[2]` the number.
pub const RELEASE: Script = script!("waiting.lua", "release.lua");

pub(super) const ROOM: Room = Room {
    script: RELEASE,
    is_for,
    encode,
    read: |_, number, reply| yes_or_no(number, reply),
};

fn is_for(request: &Request) -> bool {
    request.share().is_none() && removal(request).is_some_and(is_plain)
}

/// Is there one key, no waiter that leaves, and no time for which the lock stays taken?
pub(super) fn is_plain(removal: &Removal) -> bool {
    removal.waiter.is_none() && removal.linger.is_none() && !removal.lock.has_more_keys()
}

fn encode(request: &Request, call: Call<'_>, out: &mut Vec<u8>) {
    let Some(Removal { lock, .. }) = removal(request) else { unreachable!("{request:?}") };
    call.run(lock, &[], &[&value_of(lock)], out);
}
