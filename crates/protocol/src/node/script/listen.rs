//! The server tells this connection when a key changes: the commands for that, one after another.

use super::{LISTEN, NodeCommand, Script, ScriptCall, vote};
use crate::engine::{Listen, ListenStep, Vote};
use crate::node::command::{NodeReply, name_of_channel};
use crate::resp::{Elements, Reply, encode_command};

/// Is this push message the answer to `SUBSCRIBE`, or to `SSUBSCRIBE`?
pub fn is_subscribed(message: &Elements<'_>) -> bool {
    matches!(
        message.iter().next(),
        Some(Reply::Bulk(b"subscribe" | b"ssubscribe"))
    )
}

impl NodeCommand for Listen {
    fn script(&self) -> Option<Script> {
        matches!(self.step, ListenStep::Read(_)).then_some(LISTEN)
    }

    fn encode(&self, call: ScriptCall<'_>, out: &mut Vec<u8>) {
        match self.step {
            ListenStep::Subscribe(channel) => {
                let subscribe: &[u8] = if channel.is_sharded {
                    b"SSUBSCRIBE"
                } else {
                    b"SUBSCRIBE"
                };
                encode_command(out, &[subscribe, &name_of_channel(channel, call.tag())]);
            }
            ListenStep::Enable => encode_command(out, &[b"CLIENT", b"TRACKING", b"ON", b"OPTIN"]),
            ListenStep::OptIn => encode_command(out, &[b"CLIENT", b"CACHING", b"YES"]),
            ListenStep::Read(_) => call.run_on(LISTEN, &[&self.key], &[], out),
        }
    }

    fn read(&self, number: i64, reply: &Reply<'_>, _: Option<&[u8]>) -> Option<NodeReply> {
        let is_done = match self.step {
            // With RESP3 the answer is a push message.
            ListenStep::Subscribe(_) => {
                matches!(reply, Reply::Push(message) if is_subscribed(message))
            }
            ListenStep::Enable | ListenStep::OptIn => matches!(reply, Reply::Simple(b"OK")),
            ListenStep::Read(_) => return vote(number, reply).map(NodeReply::of),
        };
        is_done.then(|| NodeReply::of(Vote::Granted))
    }
}
