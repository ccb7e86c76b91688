//! An exclusive lock is taken, unless by a plain `SET`.

use super::{
    CLAIM, NodeCommand, QUEUE_SUFFIX, SHARE, Script, ScriptCall, list, name_of, of_fenced, refusal,
    ttl_of_counters,
};
use crate::engine::{Before, Claim, FENCE_MAX, Vote};
use crate::node::command::{COUNTER_SUFFIX, NodeReply, is_plain, reservation, value, value_of};
use crate::resp::Reply;
use crate::resp::Word::{Bytes, Number};
use std::borrow::Cow;

impl Claim {
    /// Does `SET` take it? The lock has one key and no counter, and is taken if there is no key.
    fn is_set(&self) -> bool {
        self.before == Before::Nothing && is_plain(&self.lock)
    }

    fn encode_claim(&self, call: ScriptCall<'_>, out: &mut Vec<u8>) {
        let (before, waiter): (Cow<'_, [u8]>, _) = match &self.before {
            Before::Nothing => (Cow::Borrowed(&[]), None),
            Before::Predecessor(before) => (
                value(&before.token, before.attributes.as_deref()),
                before.waiter.as_ref(),
            ),
            Before::Turn(waiter) => (Cow::Owned(reservation(waiter)), Some(waiter)),
        };
        let Self {
            lock, ttl, fence, ..
        } = self;
        let value = value_of(lock);
        let arguments = [
            Number(lock.keys().count() as u64),
            Bytes(&before),
            Bytes(&value),
            Number(call.kept_for(*ttl)),
            Number(*fence),
            Number(ttl_of_counters(lock, call)),
            Bytes(name_of(waiter)),
        ];
        let keys = [COUNTER_SUFFIX, QUEUE_SUFFIX];
        call.run(CLAIM, lock, of_fenced(lock, &keys), &arguments, out);
    }

    fn read_claim(number: i64, reply: &Reply<'_>) -> Option<NodeReply> {
        match list(number, reply) {
            Some(
                [
                    Some(Reply::Integer(is_new @ 0..=1)),
                    Some(Reply::Integer(counter)),
                    Some(Reply::Integer(waiting)),
                ],
            ) => {
                let counter = u64::try_from(counter)
                    .ok()
                    .filter(|counter| *counter <= FENCE_MAX)?;
                let waiting = u64::try_from(waiting).ok()?;
                let is_new = is_new == 1;
                let is_awaited = waiting > 0;
                let counter = Some(counter);
                Some(NodeReply {
                    is_new,
                    counter,
                    is_awaited,
                    ..NodeReply::of(Vote::Granted)
                })
            }
            _ => refusal(number, reply),
        }
    }
}

impl NodeCommand for Claim {
    fn script(&self) -> Option<Script> {
        match self.lock.share() {
            Some(_) => Some(SHARE),
            None => (!self.is_set()).then_some(CLAIM),
        }
    }

    fn encode(&self, call: ScriptCall<'_>, out: &mut Vec<u8>) {
        match self.lock.share() {
            Some(share) => self.encode_share(share, call, out),
            None if self.is_set() => self.encode_set(call, out),
            None => self.encode_claim(call, out),
        }
    }

    fn read(&self, number: i64, reply: &Reply<'_>, _: Option<&[u8]>) -> Option<NodeReply> {
        match self.lock.share() {
            Some(share) => Self::read_share(share, number, reply),
            None if self.is_set() => Self::read_set(reply),
            None => Self::read_claim(number, reply),
        }
    }
}
