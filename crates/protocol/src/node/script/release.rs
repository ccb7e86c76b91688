//! A lock with one key that nobody has queued for is released: see [`GIVE`](super::GIVE).

use super::{Call, Room, Script, removal, yes_or_no};
use crate::engine::{Removal, Request};
use crate::node::command::value_of;

pub const RELEASE: Script = lua_script!("release.lua", "waiting.lua", "release_waited_for.lua");

pub(super) const ROOM: Room = Room {
    script: RELEASE,
    encode,
    read: yes_or_no,
};

fn encode(request: &Request, call: Call<'_>, out: &mut Vec<u8>) {
    let Some(Removal { lock, .. }) = removal(request) else { unreachable!("{request:?}") };
    call.run(lock, &[], &[&value_of(lock)], out);
}
