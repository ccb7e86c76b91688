//! A lock, or a share of one, is given up, or a waiter leaves its queue.

use super::{
    GIVE, HOLDERS_SUFFIX, NodeCommand, OF_SHARES, QUEUE_SUFFIX, RELEASE, RELEASE_READER,
    RELEASE_SHARED, Script, ScriptCall, name_of,
};
use crate::engine::{Removal, Share};
use crate::node::command::value_of;
use crate::resp::Word::{Bytes, Number};

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
    fn script(&self) -> Option<Script> {
        Some(match (self.lock.share(), self.is_special()) {
            (None, true) => RELEASE,
            (None, false) => GIVE,
            (Some(_), true) => RELEASE_READER,
            (Some(_), false) => RELEASE_SHARED,
        })
    }

    fn encode(&self, call: ScriptCall<'_>, out: &mut Vec<u8>) {
        let of_lock = value_of(&self.lock);
        let value = Bytes(&of_lock);
        let waiter = Bytes(name_of(self.waiter.as_ref()));
        let keep_for = self
            .keep_for
            .map_or(Bytes(b""), |time| Number(call.kept_for(time)));
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
