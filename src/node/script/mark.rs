//! The mark of a node is read or replaced.

use super::register::{meaning, optional, register};
use super::{Call, Room, Script};
use crate::engine::Request;
use crate::engine::register::{JOINING, MarkStep, RegisterCommand, RegisterReply};
use crate::node::command::Meaning;
use crate::resp::Reply;
use std::sync::Arc;

/// Answers the number and the mark `KEYS[1]` as it is afterwards: `ARGV[1]` the step, `ARGV[2]` the
/// mark that was seen (empty: none), `ARGV[3]` the new one, `ARGV[5]` the number. A node whose mark
/// is the one that was seen gets, to `enter`, `ARGV[3]`; to `join`, `ARGV[3]` with its time in
/// microseconds and `ARGV[4]`, the run of its server. Any other step changes nothing.
pub const MARK: Script = script!("mark.lua");

pub(super) const ROOM: Room = Room { script: MARK, encode, read };

fn encode(request: &Request, script: Call<'_>, out: &mut Vec<u8>) {
    let register = register(request);
    let RegisterCommand::Mark(step) = &register.command else { unreachable!("{request:?}") };
    let (word, seen, new): (&[u8], &[u8], &[u8]) = match step {
        MarkStep::Look => (b"look", b"", b""),
        MarkStep::Join { seen } => (b"join", seen, JOINING.as_bytes()),
        MarkStep::Enter { seen, new } => (b"enter", seen, new),
    };
    let run = format!(" {} ", register.run_id);
    script.run_on(&[&register.keys.mark], &[word, seen, new, run.as_bytes()], out);
}

fn read(request: &Request, number: i64, reply: &Reply<'_>) -> Option<Meaning> {
    let run_id = Arc::clone(&register(request).run_id);
    meaning(number, reply, |rest| match rest {
        [mark] => Some(RegisterReply::Mark { mark: optional(mark)?.map(Arc::from), run_id }),
        _ => None,
    })
}
