//! A share of a lock is given back.

use super::{Call, Room, Script, name_of, removal, yes_or_no};
use crate::engine::{Removal, Request, Share};
use crate::node::command::{decimal, value_of};

pub const RELEASE_SHARED: Script = lua_script!("waiting.lua", "sharing.lua", "release_shared.lua");

pub(super) const ROOM: Room = Room {
    script: RELEASE_SHARED,
    encode,
    read: yes_or_no,
};

fn encode(request: &Request, call: Call<'_>, out: &mut Vec<u8>) {
    let Some(Removal { lock, linger, waiter, .. }) = removal(request) else {
        unreachable!("{request:?}")
    };
    let [mut all, mut stay] = [[0; 20]; 2];
    let permits = lock.share().map_or(0, Share::permits);
    let permits = decimal(permits.into(), &mut all);
    let linger = linger.map_or(&[][..], |linger| decimal(linger.as_millis(), &mut stay));
    call.run(lock, &[], &[&value_of(lock), permits, name_of(waiter.as_ref()), linger], out);
}
