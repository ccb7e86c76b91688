//! A node that is being made a member gets the state of a register.

use super::register::{call, done, register};
use super::{Call, Room, Script};
use crate::engine::Request;
use crate::engine::register::{Ballot, RegisterCommand};

/// Replaces the state of a register, and raises the floor: `KEYS` as for
/// [`PREPARE`](super::PREPARE), `ARGV[1]` how the mark of the node begins that is being made a
/// member, `ARGV[2]` the ballot of what counts as accepted, `ARGV[3]` its value, `ARGV[4]` the
/// floor, `ARGV[5]` the number. Without a ballot, the register has no keys afterwards.
pub const INSTALL: Script = script!("member.lua", "install.lua");

pub(super) const ROOM: Room = Room { script: INSTALL, encode, read: done };

fn encode(request: &Request, script: Call<'_>, out: &mut Vec<u8>) {
    let request = register(request);
    let RegisterCommand::Install { state, floor } = &request.command else {
        unreachable!("{request:?}")
    };
    let ballot = state.as_ref().map(|(ballot, _)| Ballot::to_bytes(*ballot));
    let value = state.as_ref().map_or(&[][..], |(_, value)| value);
    let floor = floor.to_string();
    let ballot = ballot.as_ref().map_or(&[][..], |ballot| ballot);
    call(request, script, &[ballot, value, floor.as_bytes()], out);
}
