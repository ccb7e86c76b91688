//! The server tells this connection when a key changes.

use super::{Call, Room, Script, yes_or_no};
use crate::engine::{Action, Listen, Request};

/// Reads a lock's key `KEYS[1]`, so that the server tells this connection when it changes.
/// `ARGV[1]` is the number. Answers yes if there is such a key.
pub const LISTEN: Script = script!("listen.lua");

pub(super) const ROOM: Room = Room {
    script: LISTEN,
    is_for,
    encode,
    read: |_, number, reply| yes_or_no(number, reply),
};

fn is_for(request: &Request) -> bool {
    matches!(request.action, Action::Listen { step: Listen::Read(_), .. })
}

fn encode(request: &Request, call: Call<'_>, out: &mut Vec<u8>) {
    let Action::Listen { key, .. } = &request.action else { unreachable!("{request:?}") };
    call.run_on(&[key], &[], out);
}
