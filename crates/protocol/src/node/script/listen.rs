//! The server tells this connection when a key changes.

use super::{Call, Room, Script, yes_or_no};
use crate::engine::{Action, Request};

/// Reads a lock's key `KEYS[1]`, so that the server tells this connection when it changes.
/// `ARGV[1]` is the number. Answers yes if there is such a key.
pub const LISTEN: Script = lua_script!("listen.lua");

pub(super) const ROOM: Room = Room {
    script: LISTEN,
    encode,
    read: yes_or_no,
};

fn encode(request: &Request, call: Call<'_>, out: &mut Vec<u8>) {
    let Action::Listen { key, .. } = &request.action else { unreachable!("{request:?}") };
    call.run_on(&[key], &[], out);
}
