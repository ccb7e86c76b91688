//! The commands that take no script: a plain lock is taken, and a server says how it is.

use super::{NodeCommand, ScriptCall};
use crate::engine::{Claim, Ping, Question, Said, Vote};
use crate::node::command::{NodeReply, value_of};
use crate::node::examination::Examination;
use crate::resp::Word::{Bytes, Key, Number};
use crate::resp::{Reply, encode_command, encode_words};

impl Claim {
    /// Sets the key of a lock with one key and no counter, if the key does not exist.
    pub(super) fn encode_set(&self, tag: &[u8], out: &mut Vec<u8>) {
        let Self { lock, ttl, .. } = self;
        let key = Key(&lock.key);
        let value = value_of(lock);
        let ttl = Number(ttl.as_millis());
        let words = [
            Bytes(b"SET"),
            key,
            Bytes(&value),
            Bytes(b"NX"),
            Bytes(b"PX"),
            ttl,
        ];
        encode_words(out, 6, tag, words);
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

impl NodeCommand for Question {
    /// Each section of `INFO` is asked for by itself, since older servers take only one, and all
    /// sections together have no bound.
    fn encode(&self, _: ScriptCall<'_>, out: &mut Vec<u8>) {
        let words: &[&[u8]] = match self {
            Self::Memory => &[b"INFO", b"memory"],
            Self::Persistence => &[b"INFO", b"persistence"],
            Self::Replication => &[b"INFO", b"replication"],
            Self::Cluster => &[b"INFO", b"cluster"],
            Self::Fsync => &[b"CONFIG", b"GET", b"appendfsync"],
            Self::Snapshots => &[b"CONFIG", b"GET", b"save"],
            Self::MemoryLimit => &[b"CONFIG", b"GET", b"maxmemory*"],
            Self::MinReplicas => &[b"CONFIG", b"GET", b"min-replicas-*"],
            Self::Backlog => &[b"CONFIG", b"GET", b"repl-backlog-ttl"],
            Self::ClusterSettings => &[b"CONFIG", b"GET", b"cluster-*"],
            // For none: it is answered at once.
            Self::Wait => &[b"WAIT", b"0", b"1"],
            Self::Time => &[b"TIME"],
        };
        encode_command(out, words);
    }

    fn read(&self, _: i64, reply: &Reply<'_>, secret: Option<&[u8]>) -> Option<NodeReply> {
        let finding = Examination::read(*self, reply, secret)?;
        Some(NodeReply::saying(Vote::Granted, Said::new(finding)))
    }
}
