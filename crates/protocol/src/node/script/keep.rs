//! A lock, or a share of one, is extended, or given again on a node that lost it, or that gave
//! another permit.

use super::{
    CALLED_SUFFIX, HOLDERS_SUFFIX, KEEP, KEEP_SHARED, NodeCommand, PERMITS_SUFFIX, Script,
    ScriptCall,
};
use crate::engine::Keep;
use crate::node::command::{requested_permit, value_of};
use crate::resp::Word::{Bytes, Number};

impl NodeCommand for Keep {
    fn script(&self) -> Option<Script> {
        Some(if self.lock.share().is_some() {
            KEEP_SHARED
        } else {
            KEEP
        })
    }

    fn encode(&self, call: ScriptCall<'_>, out: &mut Vec<u8>) {
        let of_lock = value_of(&self.lock);
        let value = Bytes(&of_lock);
        let ttl = Number(call.kept_for(self.ttl));
        let mode = Bytes(if self.sets() { b"restore" } else { b"" });
        match self.lock.share().map(requested_permit) {
            Some(permit) => {
                let arguments = [Bytes(permit.as_bytes()), value, ttl, mode];
                let keys = [HOLDERS_SUFFIX, CALLED_SUFFIX, PERMITS_SUFFIX];
                call.run(KEEP_SHARED, &self.lock, &keys, &arguments, out);
            }
            None => call.run(KEEP, &self.lock, &[], &[value, ttl, mode], out),
        }
    }
}
