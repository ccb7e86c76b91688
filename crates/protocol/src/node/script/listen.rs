//! The server tells this connection when a key changes.

use super::{Call, Room, Script, yes_or_no};
use crate::engine::{Action, Request};

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
