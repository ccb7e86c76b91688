//! The counters of a lock that is held are raised.

use super::{Call, Room, Script, counters, ttl_of_counters, yes_or_no};
use crate::engine::{Action, Request};
use crate::node::command::{decimal, member_of};

/// Raises counters to a number, if the locks still hold our value: `KEYS` and `ARGV[1]` as for
/// [`CLAIM`](super::CLAIM), `ARGV[2]` our value, `ARGV[3]` the fencing token, `ARGV[4]` the least
/// ttl of the counters in milliseconds, `ARGV[5]` the number. Refuses if a key does not hold our
/// value, or if a counter is above the fencing token: another client may then have been granted
/// this token. A counter that is no number is an error.
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
