//! The share of a reader that did not wait is given back: see
//! [`RELEASE_SHARED`](super::RELEASE_SHARED).

use super::{Call, Room, Script, removal, yes_or_no};
use crate::engine::{Removal, Request};
use crate::node::command::value_of;

/// Gives back the share of a reader that did not wait, as [`RELEASE_SHARED`](super::RELEASE_SHARED)
/// does with less work: `KEYS[1]` the key, `ARGV[1]` our value, `ARGV[2]` the number. It removes no
/// shares that have expired: a waiter that asks ([`QUEUE`](super::QUEUE)) sees to that. So yes may
/// be the answer also if our share had expired: nobody had the lock since then but others with a
/// share.
pub const RELEASE_READER: Script = lua_script!("waiting.lua", "release_reader.lua");

pub(super) const ROOM: Room = Room {
    script: RELEASE_READER,
    encode,
    read: yes_or_no,
};

fn encode(request: &Request, call: Call<'_>, out: &mut Vec<u8>) {
    let Some(Removal { lock, .. }) = removal(request) else { unreachable!("{request:?}") };
    call.run(lock, &[], &[&value_of(lock)], out);
}
