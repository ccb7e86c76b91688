//! A lock with one key that nobody has queued for is released: see [`GIVE`](super::GIVE).

use super::{Call, Room, Script, removal, yes_or_no};
use crate::engine::{Removal, Request};
use crate::node::command::value_of;

/// Deletes the lock's key if it still holds our token, and reserves the lock for the first waiter:
/// `KEYS[1]` the key, `ARGV[1]` the token, `ARGV[2]` the number.
///
/// What only a lock with waiters needs comes last: Lua makes no closures for the others.
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
