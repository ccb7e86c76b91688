//! A share of a lock is given back.

use super::{Call, Room, Script, name_of, removal, yes_or_no};
use crate::engine::{Removal, Request, Share};
use crate::node::command::{decimal, value_of};

/// Gives a share of a lock back, whichever permit it is: `KEYS[1]` the key, `ARGV[1]` our value,
/// `ARGV[2]` how many permits there are or 0 for a reader, `ARGV[3]` the waiter by which we took
/// it, which leaves the queue, or nothing, `ARGV[4]` for how many milliseconds it is kept, or
/// nothing to remove it, `ARGV[5]` the number. After the last share, the lock is reserved for the
/// first waiter; while there are others, the first waiters that can have a share are notified, and
/// if the first has left, the one after them is told to ask. Answers yes if we had a share.
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
