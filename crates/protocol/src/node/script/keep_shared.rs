//! A share of a lock is extended, or given again on a node that lost it, or gave another permit.

use super::{Call, Room, Script, kept, yes_or_no};
use crate::engine::Request;
use crate::node::command::{decimal, requested_permit, value_of};

pub const KEEP_SHARED: Script =
    lua_script!("waiting.lua", "sharing.lua", "holding.lua", "keep_shared.lua");

pub(super) const ROOM: Room = Room { script: KEEP_SHARED, encode, read: yes_or_no };

fn encode(request: &Request, call: Call<'_>, out: &mut Vec<u8>) {
    let (lock, ttl, mode) = kept(request);
    let mut millis = [0; 20];
    let permit = lock.share().map_or_else(String::new, requested_permit);
    let ttl = decimal(ttl.as_millis(), &mut millis);
    call.run(lock, &[], &[permit.as_bytes(), &value_of(lock), ttl, mode], out);
}
