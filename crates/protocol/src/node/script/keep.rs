//! An exclusive lock is extended, or set again on a node that lost it.

use super::{Call, Room, Script, kept, yes_or_no};
use crate::engine::Request;
use crate::node::command::{decimal, value_of};

/// Extends a lock, or sets it again on a node that lost it: `KEYS` the lock's keys, `ARGV[1]` our
/// value, `ARGV[2]` the ttl in milliseconds, `ARGV[3]` nothing to extend it, `restore` to set it
/// again, `ARGV[4]` the number.
///
/// All keys must hold our value; if it is set again, those that do not exist or are reserved for a
/// waiter are set. It never shortens a key's ttl, so an earlier and shorter extension may arrive at
/// any time. A key without a ttl gets none.
pub const KEEP: Script = lua_script!("keep.lua");

pub(super) const ROOM: Room = Room {
    script: KEEP,
    encode,
    read: yes_or_no,
};

fn encode(request: &Request, call: Call<'_>, out: &mut Vec<u8>) {
    let (lock, ttl, mode) = kept(request);
    let mut millis = [0; 20];
    call.run(lock, &[], &[&value_of(lock), decimal(ttl.as_millis(), &mut millis), mode], out);
}
