//! An exclusive lock is given up, or a waiter leaves its queue.

use super::{Call, Room, Script, name_of, removal, yes_or_no};
use crate::engine::{Removal, Request};
use crate::node::command::{decimal, value_of};

pub const GIVE: Script = lua_script!("waiting.lua", "give.lua");

pub(super) const ROOM: Room = Room {
    script: GIVE,
    encode,
    read: yes_or_no,
};

fn encode(request: &Request, call: Call<'_>, out: &mut Vec<u8>) {
    let Some(Removal { lock, linger, waiter, .. }) = removal(request) else {
        unreachable!("{request:?}")
    };
    let mut digits = [0; 20];
    let linger = linger.map_or(&[][..], |linger| decimal(linger.as_millis(), &mut digits));
    call.run(lock, &[], &[&value_of(lock), name_of(waiter.as_ref()), linger], out);
}
