//! A lock is removed by force.

use super::{Call, Room, Script, yes_or_no};
use crate::engine::{Action, Request};

/// Deletes a lock's key `KEYS[1]`, whatever token it holds, if its value is one of those that were
/// read before: all of `ARGV` but the last, which is the number.
pub const REMOVE: Script = lua_script!("waiting.lua", "sharing.lua", "remove.lua");

pub(super) const ROOM: Room = Room {
    script: REMOVE,
    encode,
    read: yes_or_no,
};

fn encode(request: &Request, call: Call<'_>, out: &mut Vec<u8>) {
    let Action::Remove { key, seen } = &request.action else { unreachable!("{request:?}") };
    let seen: Vec<_> = seen.iter().map(Vec::as_slice).collect();
    call.run_on(&[key], &seen, out);
}
