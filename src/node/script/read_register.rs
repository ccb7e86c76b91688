//! What a node has accepted of a register.

use super::register::{accepted, call, meaning, register};
use super::{Call, Room, Script};
use crate::engine::Request;
use crate::engine::register::RegisterReply;
use crate::node::command::Meaning;
use crate::resp::Reply;

/// Answers the number, and what was accepted of a register: `KEYS` and `ARGV[1]` as for
/// [`PREPARE`](super::PREPARE), `ARGV[2]` the number. Changes nothing.
pub const READ_REGISTER: Script = script!("member.lua", "read_register.lua");

pub(super) const ROOM: Room = Room { script: READ_REGISTER, encode, read };

fn encode(request: &Request, script: Call<'_>, out: &mut Vec<u8>) {
    call(register(request), script, &[], out);
}

fn read(_: &Request, number: i64, reply: &Reply<'_>) -> Option<Meaning> {
    meaning(number, reply, |rest| match rest {
        [value] => accepted(value, RegisterReply::State),
        _ => None,
    })
}
