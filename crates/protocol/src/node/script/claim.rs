//! An exclusive lock is taken, unless by a plain `SET`.

use super::{
    Before, Call, NodeCommand, Script, counters, list, lua_script, name_of, refusal,
    ttl_of_counters,
};
use crate::engine::{Acquisition, FENCE_MAX};
use crate::node::command::{Meaning, decimal, reservation, value, value_of};
use crate::resp::Reply;
use std::borrow::Cow;

pub const CLAIM: Script = lua_script!("counters.lua", "claim.lua");

/// Takes a lock whose keys do not exist, or hold what they may hold before.
pub(super) struct Claim<'a> {
    pub(super) new: &'a Acquisition,
    pub(super) before: Before<'a>,
}

impl NodeCommand for Claim<'_> {
    fn script(&self) -> Option<(Script, u32)> {
        Some((CLAIM, 0))
    }

    fn encode(&self, call: Call<'_>, out: &mut Vec<u8>) {
        let (before, waiter): (Cow<'_, [u8]>, _) = match self.before {
            Before::Nothing => (Cow::Borrowed(&[]), None),
            Before::Predecessor(before) => {
                (value(&before.token, before.attributes.as_deref()), before.waiter.as_ref())
            }
            Before::Turn(waiter) => (Cow::Owned(reservation(waiter)), Some(waiter)),
        };
        let Acquisition { lock, ttl, fence } = self.new;
        let [mut locks, mut millis, mut first, mut counters_ttl] = [[0; 20]; 4];
        let locks = decimal(lock.keys().count() as u64, &mut locks);
        let ttl = decimal(ttl.as_millis(), &mut millis);
        let first = decimal(*fence, &mut first);
        let counters_ttl = decimal(ttl_of_counters(lock), &mut counters_ttl);
        let (value, waiter) = (value_of(lock), name_of(waiter));
        let arguments = [locks, &before, &value, ttl, first, counters_ttl, waiter];
        call.run(CLAIM, lock, &counters(lock), &arguments, out);
    }

    fn read(&self, number: i64, reply: &Reply<'_>, _: Option<&[u8]>) -> Option<Meaning> {
        match list(number, reply) {
            Some(
                [
                    Some(Reply::Integer(is_new @ 0..=1)),
                    Some(Reply::Integer(counter)),
                    Some(Reply::Integer(waiting)),
                ],
            ) => {
                let counter =
                    u64::try_from(counter).ok().filter(|counter| *counter <= FENCE_MAX)?;
                let waiting = u64::try_from(waiting).ok()?;
                Some(Meaning::Claimed { is_new: is_new == 1, counter, waiting, permit: None })
            }
            _ => refusal(number, reply),
        }
    }
}
