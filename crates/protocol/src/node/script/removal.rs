//! A lock, or a share of one, is given up, or a waiter leaves its queue.

use super::{
    HOLDERS_SUFFIX, NodeCommand, OF_SHARES, QUEUE_SUFFIX, Script, ScriptCall, lua_script, name_of,
};
use crate::engine::{Removal, Share};
use crate::node::command::value_of;
use crate::resp::Word::{Bytes, Number};

pub const RELEASE: Script = lua_script!("release.lua", "waiting.lua", "release_waited_for.lua");

pub const GIVE: Script = lua_script!("waiting.lua", "give.lua");

pub const RELEASE_READER: Script = lua_script!("waiting.lua", "release_reader.lua");

pub const RELEASE_SHARED: Script = lua_script!("waiting.lua", "sharing.lua", "release_shared.lua");

impl Removal {
    /// Can a special script carry it out? They remove a lock with one key, or a reader's share, if
    /// no waiter leaves with it and it does not stay taken.
    fn is_special(&self) -> bool {
        let is_alone = self.waiter.is_none() && self.keep_for.is_none();
        is_alone
            && !self.lock.has_more_keys()
            && self.lock.share().is_none_or(|it| it == Share::Reader)
    }
}

impl NodeCommand for Removal {
    fn script(&self) -> Option<(Script, u32)> {
        Some(match (self.lock.share(), self.is_special()) {
            (None, true) => (RELEASE, 2),
            (None, false) => (GIVE, 3),
            (Some(_), true) => (RELEASE_READER, 10),
            (Some(_), false) => (RELEASE_SHARED, 9),
        })
    }

    fn encode(&self, call: ScriptCall<'_>, out: &mut Vec<u8>) {
        let of_lock = value_of(&self.lock);
        let value = Bytes(&of_lock);
        let waiter = Bytes(name_of(self.waiter.as_ref()));
        let keep_for = self
            .keep_for
            .map_or(Bytes(b""), |time| Number(time.as_millis()));
        let mut run = |script, keys: &[_], arguments: &[_]| {
            call.run(script, &self.lock, keys, arguments, out);
        };
        match (self.lock.share(), self.is_special()) {
            (None, true) => run(RELEASE, &[QUEUE_SUFFIX], &[value]),
            (None, false) => run(GIVE, &[QUEUE_SUFFIX], &[value, waiter, keep_for]),
            (Some(_), true) => run(RELEASE_READER, &[QUEUE_SUFFIX, HOLDERS_SUFFIX], &[value]),
            (Some(share), false) => {
                let arguments = [value, Number(share.permits().into()), waiter, keep_for];
                run(RELEASE_SHARED, OF_SHARES, &arguments);
            }
        }
    }
}
