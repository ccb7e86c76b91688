//! The keys of a deleted register are removed.

use super::register::{call, done, register};
use super::{Call, Room, Script};
use crate::engine::Request;
use crate::engine::register::{Ballot, RegisterCommand};

/// Removes the keys of a register and raises the floor to its promise, in one step: `KEYS` and
/// `ARGV[1]` as for [`PREPARE`](super::PREPARE), `ARGV[2]` the ballot, `ARGV[3]` the number. Does
/// nothing unless the register was deleted with this ballot; if none is given, unless nothing was
/// ever accepted.
///
/// A deletion is collected when all nodes have accepted it. The floor takes the place of what was
/// promised: a key that is absent refuses all that was ever prepared or sent before.
pub const COLLECT: Script = script!("member.lua", "collect.lua");

pub(super) const ROOM: Room = Room { script: COLLECT, encode, read: done };

fn encode(request: &Request, script: Call<'_>, out: &mut Vec<u8>) {
    let request = register(request);
    let RegisterCommand::Collect(ballot) = &request.command else { unreachable!("{request:?}") };
    let ballot = ballot.map(Ballot::to_bytes);
    call(request, script, &[ballot.as_ref().map_or(&[], |ballot| &ballot[..])], out);
}
