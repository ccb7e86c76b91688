//! What a member has accepted is read, for another node that is being made one.

use super::register::{call, promise, register};
use super::{Call, Room, Script};
use crate::engine::Request;

/// Answers the number, what was accepted, and the floor: `KEYS` and `ARGV[1]` as for
/// [`PREPARE`](super::PREPARE), `ARGV[2]` the number. Changes nothing.
pub const COPY: Script = script!("member.lua", "copy.lua");

pub(super) const ROOM: Room = Room { script: COPY, encode, read: promise };

fn encode(request: &Request, script: Call<'_>, out: &mut Vec<u8>) {
    call(register(request), script, &[], out);
}
