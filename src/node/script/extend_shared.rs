//! A share of a lock is extended.

use super::{Call, Room, Script, keep_share, yes_or_no};
use crate::engine::{Action, Request};

/// Extends a share of a lock, as [`KEEP`](super::KEEP) does a lock: `KEYS[1]` the key, `ARGV[1]`
/// the permit or nothing, `ARGV[2]` our value, `ARGV[3]` the new ttl in milliseconds, `ARGV[4]` the
/// number.
pub const EXTEND_SHARED: Script = script!("waiting.lua", "sharing.lua", "extend_shared.lua");

pub(super) const ROOM: Room = Room {
    script: EXTEND_SHARED,
    is_for,
    encode,
    read: |_, number, reply| yes_or_no(number, reply),
};

fn is_for(request: &Request) -> bool {
    matches!(request.action, Action::Extend { .. }) && request.share().is_some()
}

fn encode(request: &Request, call: Call<'_>, out: &mut Vec<u8>) {
    let Action::Extend { lock, ttl } = &request.action else { unreachable!("{request:?}") };
    keep_share(call, lock, *ttl, out);
}
