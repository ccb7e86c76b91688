//! A share is given again on a node that lost it, or gave another permit.

use super::{Call, Room, Script, keep_share, yes_or_no};
use crate::engine::{Action, Request};

/// Gives a share again on a node that lost it, or gave another permit, which is given up, in the
/// words of [`EXTEND_SHARED`](super::EXTEND_SHARED). Refuses if another client has this permit, or
/// the lock itself.
pub const RESTORE_SHARED: Script = script!("waiting.lua", "sharing.lua", "restore_shared.lua");

pub(super) const ROOM: Room = Room {
    script: RESTORE_SHARED,
    is_for,
    encode,
    read: |_, number, reply| yes_or_no(number, reply),
};

fn is_for(request: &Request) -> bool {
    matches!(request.action, Action::Restore { .. }) && request.share().is_some()
}

fn encode(request: &Request, call: Call<'_>, out: &mut Vec<u8>) {
    let Action::Restore { lock, ttl } = &request.action else { unreachable!("{request:?}") };
    keep_share(call, lock, *ttl, out);
}
