//! A node promises a ballot for a register.

use super::register::{call, promise, register};
use super::{Call, Room, Script};
use crate::engine::Request;
use crate::engine::register::RegisterCommand;

/// Promises a ballot for a register: `KEYS` its value, its promise, the node's mark and the floor,
/// `ARGV[1]` how the mark of a member begins, `ARGV[2]` the ballot, `ARGV[3]` the number. Refuses
/// if a higher ballot was promised, or one of another owner with this number; without a promise, if
/// the floor is not below it. Answers the number, what was accepted, and the floor.
pub const PREPARE: Script = script!("member.lua", "promise.lua", "prepare.lua");

pub(super) const ROOM: Room = Room { script: PREPARE, encode, read: promise };

fn encode(request: &Request, script: Call<'_>, out: &mut Vec<u8>) {
    let request = register(request);
    let RegisterCommand::Prepare(ballot) = &request.command else { unreachable!("{request:?}") };
    call(request, script, &[&ballot.to_bytes()], out);
}
