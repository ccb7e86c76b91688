//! The commands that take no script: a plain lock is taken, and a server answers.

use super::{NodeCommand, ScriptCall};
use crate::engine::{Claim, Ping, Vote};
use crate::node::command::{NodeReply, value_of};
use crate::resp::Word::{Bytes, Key, Number};
use crate::resp::{Reply, encode_command, encode_words};

impl Claim {
    /// Sets the key of a lock with one key and no counter, if the key does not exist.
    pub(super) fn encode_set(&self, call: ScriptCall<'_>, out: &mut Vec<u8>) {
        let Self { lock, ttl, .. } = self;
        let key = Key(&lock.key);
        let value = value_of(lock);
        let ttl = Number(call.kept_for(*ttl));
        let words = [
            Bytes(b"SET"),
            key,
            Bytes(&value),
            Bytes(b"NX"),
            Bytes(b"PX"),
            ttl,
        ];
        encode_words(out, 6, call.tag(), words);
    }

    pub(super) fn read_set(reply: &Reply<'_>) -> Option<NodeReply> {
        match reply {
            Reply::Simple(b"OK") => Some(NodeReply {
                is_new: true,
                ..NodeReply::of(Vote::Granted)
            }),
            Reply::Null => Some(NodeReply::of(Vote::Refused)),
            _ => None,
        }
    }
}

impl NodeCommand for Ping {
    fn encode(&self, _: ScriptCall<'_>, out: &mut Vec<u8>) {
        encode_command(out, &[b"PING"]);
    }

    fn read(&self, _: i64, reply: &Reply<'_>, _: Option<&[u8]>) -> Option<NodeReply> {
        matches!(reply, Reply::Simple(b"PONG")).then(|| NodeReply::of(Vote::Granted))
    }
}
