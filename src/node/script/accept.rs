//! A node accepts a value of a register.

use super::register::{call, done, register};
use super::{Call, Room, Script};
use crate::engine::Request;
use crate::engine::register::RegisterCommand;

/// Accepts a value of a register, and promises the ballot that follows: `KEYS` and `ARGV[1]` as for
/// [`PREPARE`](super::PREPARE), `ARGV[2]` the ballot, `ARGV[3]` the one that follows, `ARGV[4]` the
/// value, `ARGV[5]` the number. If it was accepted before, nothing changes. Refuses as `PREPARE`.
///
/// A value that is not longer than the one before, such as that of a deletion, is accepted also at
/// `maxmemory`.
pub const ACCEPT: Script = script!("member.lua", "promise.lua", "accept.lua");

pub(super) const ROOM: Room = Room { script: ACCEPT, encode, read: done };

fn encode(request: &Request, script: Call<'_>, out: &mut Vec<u8>) {
    let request = register(request);
    let RegisterCommand::Accept { ballot, next, value } = &request.command else {
        unreachable!("{request:?}")
    };
    call(request, script, &[&ballot.to_bytes(), &next.to_bytes(), value], out);
}
