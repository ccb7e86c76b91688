//! The counters of a lock that is held are raised.

use super::{FENCE, HOLDERS_SUFFIX, NodeCommand, Script, ScriptCall, ttl_of_counters};
use crate::engine::Fence;
use crate::node::command::{COUNTER_SUFFIX, member_of};
use crate::resp::Word::{Bytes, Number};

impl NodeCommand for Fence {
    fn script(&self) -> Option<Script> {
        Some(FENCE)
    }

    fn encode(&self, call: ScriptCall<'_>, out: &mut Vec<u8>) {
        let lock = &self.lock;
        let member = member_of(&self.lock);
        let locks = Number(lock.keys().count() as u64);
        let first = Number(self.fence);
        let arguments = [
            locks,
            Bytes(&member),
            first,
            Number(ttl_of_counters(lock, call)),
        ];
        let suffixes: &[&[u8]] = match lock.share() {
            Some(_) => &[COUNTER_SUFFIX, HOLDERS_SUFFIX],
            None => &[COUNTER_SUFFIX],
        };
        call.run(FENCE, lock, suffixes, &arguments, out);
    }
}
