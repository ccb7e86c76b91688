//! A server says how it is.

use super::{NodeCommand, ScriptCall};
use crate::engine::{Question, Said, Vote};
use crate::node::command::NodeReply;
use crate::node::diagnostics::Examination;
use crate::resp::{Reply, encode_command};

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
