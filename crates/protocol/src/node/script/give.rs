//! An exclusive lock is given up, or a waiter leaves its queue.

use super::{Call, Room, Script, name_of, removal, yes_or_no};
use crate::engine::{Removal, Request};
use crate::node::command::{decimal, value_of};

/// Gives a lock up: `KEYS` the lock's keys, `ARGV[1]` our value, `ARGV[2]` the waiter that leaves
/// the queue, or nothing, `ARGV[3]` for how many milliseconds the lock stays taken, or nothing,
/// `ARGV[4]` the number. Each key that holds our value is deleted, and the lock is reserved for the
/// first waiter; and so is a lock that was reserved for the waiter that leaves. If that one was the
/// first and the lock is another client's, the next is told to ask.
///
/// A lock that stays taken is not deleted: its key says from now on that the lock is left, and
/// until when. If somebody waits, the key stays for a second longer, in which only the first waiter
/// gets the lock: it is told when to ask.
///
/// Answers yes if all keys held our value. If a key cannot be read, the others are given up all the
/// same, and the answer is the server's error.
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
