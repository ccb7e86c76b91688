//! A share of a lock is taken, by a reader or with a permit.

use super::{
    CALLED_SUFFIX, FLOOR_SUFFIX, HOLDERS_SUFFIX, PERMITS_SUFFIX, QUEUE_SUFFIX, SHARE, ScriptCall,
    list, name_of, of_fenced, refusal, ttl_of_counters,
};
use crate::engine::{Before, Claim, FENCE_MAX, Share, Token, Vote};
use crate::node::command::{COUNTER_SUFFIX, NodeReply, value_of};
use crate::resp::Reply;
use crate::resp::Word::{Bytes, Number};

impl Claim {
    /// Takes a share, in the turn of a waiter if there is one.
    pub(super) fn encode_share(&self, share: Share, call: ScriptCall<'_>, out: &mut Vec<u8>) {
        let waiter = match &self.before {
            Before::Turn(waiter) => Some(waiter),
            Before::Nothing | Before::Predecessor(_) => None,
        };
        let Self {
            lock, ttl, fence, ..
        } = self;
        let permits = share.permits();
        // Where a node begins to look, but in a waiter's turn.
        let named = share.permit().map(u64::from);
        let first = named.or_else(|| waiter.is_none().then(|| first_permit(&lock.token, permits)));
        let value = value_of(lock);
        let arguments = [
            Bytes(&value),
            Number(call.kept_for(*ttl)),
            Number(permits.into()),
            first.map_or(Bytes(b""), Number),
            Bytes(name_of(waiter)),
            Number(*fence),
            Number(ttl_of_counters(lock, call)),
        ];
        let keys = [
            COUNTER_SUFFIX,
            QUEUE_SUFFIX,
            HOLDERS_SUFFIX,
            CALLED_SUFFIX,
            PERMITS_SUFFIX,
            FLOOR_SUFFIX,
        ];
        call.run(SHARE, lock, of_fenced(lock, &keys), &arguments, out);
    }

    pub(super) fn read_share(share: Share, number: i64, reply: &Reply<'_>) -> Option<NodeReply> {
        let granted = list(number, reply).and_then(|elements| granted(share, elements));
        granted.or_else(|| refusal(number, reply))
    }
}

/// The meaning of what follows the number: 1, the counter, the permit.
fn granted(share: Share, elements: [Option<Reply<'_>>; 3]) -> Option<NodeReply> {
    let [
        Some(Reply::Integer(1)),
        Some(Reply::Integer(counter)),
        Some(Reply::Integer(permit)),
    ] = elements
    else {
        return None;
    };
    let counter = u64::try_from(counter)
        .ok()
        .filter(|counter| *counter <= FENCE_MAX)?;
    let permit = match share {
        Share::Reader => (permit == -1).then_some(None)?,
        Share::Permit { of, .. } => Some(u32::try_from(permit).ok().filter(|permit| *permit < of)?),
    };
    let counter = Some(counter);
    Some(NodeReply {
        is_new: true,
        counter,
        permit,
        ..NodeReply::of(Vote::Granted)
    })
}

/// The permit that the nodes look at first: clients that come at the same time find different ones,
/// and each client the same on every node.
fn first_permit(token: &Token, permits: u32) -> u64 {
    let [a, b, c, d, ..] = *token.as_bytes() else {
        return 0;
    };
    u64::from(u32::from_le_bytes([a, b, c, d]) % permits.max(1))
}
