//! A lock, or a share of one, is extended, or given again on a node that lost it, or that gave
//! another permit.

use super::{
    CALLED_SUFFIX, HOLDERS_SUFFIX, NodeCommand, PERMITS_SUFFIX, Script, ScriptCall, lua_script,
};
use crate::engine::Keep;
use crate::node::command::{requested_permit, value_of};
use crate::resp::Word::{Bytes, Number};

pub const KEEP: Script = lua_script!("keep.lua");

pub const KEEP_SHARED: Script = lua_script!(
    "waiting.lua",
    "sharing.lua",
    "holding.lua",
    "keep_shared.lua"
);

impl NodeCommand for Keep {
    fn script(&self) -> Option<(Script, u32)> {
        Some(if self.lock.share().is_some() {
            (KEEP_SHARED, 8)
        } else {
            (KEEP, 1)
        })
    }

    fn encode(&self, call: ScriptCall<'_>, out: &mut Vec<u8>) {
        let of_lock = value_of(&self.lock);
        let value = Bytes(&of_lock);
        let ttl = Number(self.ttl.as_millis());
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
