//! The counters of a lock that is held are raised.

use super::{Call, Room, Script, counters, ttl_of_counters, yes_or_no};
use crate::engine::{Action, Request};
use crate::node::command::{decimal, member_of};

pub const FENCE: Script = lua_script!("counters.lua", "fence.lua");

pub(super) const ROOM: Room = Room {
    script: FENCE,
    encode,
    read: yes_or_no,
};

fn encode(request: &Request, call: Call<'_>, out: &mut Vec<u8>) {
    let Action::Fence { lock, fence } = &request.action else { unreachable!("{request:?}") };
    let [mut locks, mut first, mut counters_ttl] = [[0; 20]; 3];
    let locks = decimal(lock.keys().count() as u64, &mut locks);
    let first = decimal(*fence, &mut first);
    let counters_ttl = decimal(ttl_of_counters(lock), &mut counters_ttl);
    call.run(lock, &counters(lock), &[locks, &member_of(lock), first, counters_ttl], out);
}
