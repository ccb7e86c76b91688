//! A node's queues of waiters: the messages that it pushes, and servers that lack a part of what
//! the queue needs.

use super::lock::is_script;
use super::registers::is_of_registers;
use super::{Health, Node};
use crate::checker::Invariant;
use crate::context::Context;
use crate::mistake::Mistake;
use crate::network::Side;
use redlatch_embedded::model::OwnedReply;
use redlatch_protocol::node::command::RESERVED;
use redlatch_protocol::node::script;
use redlatch_protocol::time::Time;

/// The parts of their names by which the keys of queues are known.
const INFIXES: [&[u8]; 4] = [
    b":redlatch:queue",
    b":redlatch:lease:",
    b":redlatch:called",
    b":redlatch:floor",
];

/// What a server has for queues.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Ability {
    #[default]
    All,
    /// It speaks RESP2 only.
    Resp2,
    /// It refuses `CLIENT TRACKING`.
    NoTracking,
    /// Its users have no right to the channels.
    NoChannels,
    /// Its users have no right to the commands of the queue.
    NoRights,
}

/// Does this key belong to the queue of a lock?
pub(super) fn is_of_queue(key: &[u8]) -> bool {
    let is_one = !is_of_registers(key);
    is_one
        && INFIXES
            .iter()
            .any(|infix| key.windows(infix.len()).any(|part| part == *infix))
}

impl Node {
    /// The refusal of a command by a server that lacks a part of what the queue needs.
    pub(super) fn lacks(&self, words: &[&[u8]]) -> Option<&'static str> {
        let is_script = |script| is_script(words, script);
        match self.ability {
            Ability::Resp2 if words[0] == b"HELLO" => Some("ERR unknown command `HELLO`"),
            Ability::NoTracking if words.starts_with(&[b"CLIENT", b"TRACKING"]) => {
                Some("NOPERM this user has no permissions to run the 'client|tracking' command")
            }
            Ability::NoChannels if words[0] == b"SUBSCRIBE" => {
                Some("NOPERM this user has no permissions to access one of the channels")
            }
            Ability::NoRights => {
                let is_turn = is_script(script::CLAIM)
                    && words[3..].iter().any(|word| word.starts_with(RESERVED));
                let is_share = [script::SHARE, script::KEEP_SHARED];
                let is_refused =
                    is_script(script::QUEUE) || is_turn || is_share.into_iter().any(is_script);
                is_refused.then_some("NOPERM this user has no permissions to run 'zadd'")
            }
            _ => None,
        }
    }

    /// Sends messages of channels, and about keys that have changed: after the reply on the
    /// connection whose command caused them, and at once on the others.
    pub(super) fn push(
        &mut self,
        context: &mut Context,
        mut current: Option<(usize, &mut Vec<u8>)>,
    ) {
        while let Some((id, message)) = self.keyspace.poll_push() {
            let found = self.served.iter().find(|(_, served)| served.state.id == id);
            let Some((connection, served)) = found else {
                continue;
            };
            if context.options.has(Mistake::PushesLost) {
                continue;
            }
            let connection = *connection;
            let mut bytes = Vec::new();
            message.encode(served.state.protocol, &mut bytes);
            context.trace(|| {
                let text = bytes.escape_ascii();
                format!("node {}: a push to {:?}: {text}", self.index, served.client)
            });
            context.tally.pushes += 1;
            match &mut current {
                Some((this, out)) if *this == connection => out.extend_from_slice(&bytes),
                _ => {
                    let Context {
                        network,
                        queue,
                        random,
                        ..
                    } = context;
                    network.send(queue, random, connection, Side::Client, &bytes);
                    context.repeat(connection, &bytes);
                }
            }
        }
    }

    /// Another program changes keys, and the clients that watch them are told.
    pub(crate) fn run_foreign(&mut self, context: &mut Context, words: &[&[u8]]) -> OwnedReply {
        let reply = self.run_foreign_command(context.queue.now(), words);
        if self.health == Health::Up {
            self.push(context, None);
        }
        reply
    }

    /// Removes expired keys that clients watch.
    pub(crate) fn sweep(&mut self, context: &mut Context) {
        if self.health == Health::Up && self.keyspace.is_tracking() {
            let now = self.clock.read(context.queue.now());
            self.keyspace.expire_tracked(now);
            self.push(context, None);
        }
    }

    /// Does this key exist, whatever it holds?
    pub(crate) fn has_key(&self, now: Time, key: &[u8]) -> bool {
        self.keyspace.live_key(now, 0, key).is_some()
    }

    /// The keys of queues that exist.
    pub(crate) fn keys_of_queues(&self, now: u64) -> Vec<Vec<u8>> {
        let keys = self.keyspace.live_keys(self.clock.read(now));
        keys.filter(|key| is_of_queue(key.key))
            .map(|key| key.key.to_vec())
            .collect()
    }

    /// No key of a queue and no reservation lives longer than clients ask for.
    pub(super) fn check_lives(&self, context: &mut Context, key: &[u8], waiter: &[u8]) {
        let now = self.clock.read(context.queue.now());
        let longest = context.options.queueing.longest_lease_millis();
        let longest = longest.max(context.options.longest_reservation_millis());
        let keys = [
            key.to_vec(),
            [key, b":redlatch:queue"].concat(),
            [key, b":redlatch:lease:", waiter].concat(),
            [key, b":redlatch:called"].concat(),
        ];
        for key in keys {
            let Some(found) = self.keyspace.live_key(now, 0, &key) else {
                continue;
            };
            let left = found.remaining.map(|left| left.as_millis() as u64);
            if left.is_none_or(|left| left > longest.max(context.options.ttl.1)) {
                let key = key.escape_ascii().to_string();
                let text = format!("node {}: {key} lives for {left:?} ms", self.index);
                context.checker.report_violation(Invariant::Residue, text);
            }
        }
    }
}
