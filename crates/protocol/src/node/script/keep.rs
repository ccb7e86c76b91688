//! An exclusive lock is extended, or set again on a node that lost it.

use super::{Call, Room, Script, kept, yes_or_no};
use crate::engine::Request;
use crate::node::command::{decimal, value_of};

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
