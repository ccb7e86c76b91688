//! The share of a reader that did not wait is given back: see
//! [`RELEASE_SHARED`](super::RELEASE_SHARED).

use super::{Call, Room, Script, removal, yes_or_no};
use crate::engine::{Removal, Request};
use crate::node::command::value_of;

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
