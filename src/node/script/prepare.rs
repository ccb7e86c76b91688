//! A node promises a ballot for a register.

use super::register::{accepted, call, meaning, register};
use super::{Call, Room, Script};
use crate::engine::Request;
use crate::engine::register::{RegisterCommand, RegisterReply};
use crate::node::command::Meaning;
use crate::resp::Reply;

/// Promises a ballot for a register: `KEYS` its value, its promise, the node's mark and the floor,
/// `ARGV[1]` how the mark of a member begins, `ARGV[2]` the ballot, `ARGV[3]` the number. Refuses
/// if a higher ballot was promised, or one of another owner with this number; without a promise, if
/// the floor is not below it. Answers the number, what was accepted, and the floor.
pub const PREPARE: Script = script!("member.lua", "prepare.lua");

pub(super) const ROOM: Room = Room { script: PREPARE, encode, read };

fn encode(request: &Request, script: Call<'_>, out: &mut Vec<u8>) {
    let request = register(request);
    let RegisterCommand::Prepare(ballot) = &request.command else { unreachable!("{request:?}") };
    call(request, script, &[&ballot.to_bytes()], out);
}

fn read(_: &Request, number: i64, reply: &Reply<'_>) -> Option<Meaning> {
    meaning(number, reply, |rest| match rest {
        [value, Reply::Integer(floor)] => {
            let floor = u64::try_from(*floor).ok()?;
            accepted(value, |accepted| RegisterReply::Promise { accepted, floor })
        }
        _ => None,
    })
}
