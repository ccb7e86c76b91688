//! What a node has to do with registers: its mark, how it keeps its keys, and mistakes.

use super::Node;
use super::lock::is_script;
use crate::context::Context;
use crate::mistake::Mistake;
use crate::register::{PREFIX, epoch_key, mark_key};
use redlatch_embedded::model::OwnedReply;
use redlatch_protocol::engine;
use redlatch_registers::script::{self, Script};
use redlatch_registers::{Accepted, Epoch, NodeMark};
use std::sync::Arc;

/// The scripts of nodes that vote.
const VOTING: [Script; 5] = [
    script::PREPARE,
    script::ACCEPT,
    script::READ_REGISTER,
    script::COLLECT,
    script::RAISE,
];

/// The scripts of registers, as shown in the trace.
const NAMES: [(Script, &str); 8] = [
    (script::PREPARE, "prepare"),
    (script::ACCEPT, "accept"),
    (script::READ_REGISTER, "read"),
    (script::COLLECT, "collect"),
    (script::COPY, "copy"),
    (script::INSTALL, "install"),
    (script::MARK, "mark"),
    (script::RAISE, "raise"),
];

/// What a mistake makes of these scripts: this text becomes that one.
type Wrong = (&'static [Script], &'static str, &'static str);

fn wrong(mistake: Mistake) -> Option<Wrong> {
    match mistake {
        Mistake::ForgetfulNodeVotes => Some((&VOTING, "if not mark or", "if mark and")),
        Mistake::AcceptedBelowPromise => Some((
            &[script::ACCEPT],
            "local refusal = outbid(ARGV[2])",
            "local refusal = not promise and outbid(ARGV[2])",
        )),
        Mistake::FloorForgotten => Some((
            &[script::COLLECT, script::RAISE],
            "if least > floor() then",
            "if false then",
        )),
        _ => None,
    }
}

/// Is this a key of a register, or the mark?
pub(super) fn is_of_registers(key: &[u8]) -> bool {
    key.starts_with(PREFIX)
}

impl Node {
    /// Runs a command that is about no lock, or what a mistake makes of it.
    pub(super) fn run_other(
        &mut self,
        context: &Context,
        connection: usize,
        words: &[&[u8]],
    ) -> OwnedReply {
        let now = self.clock.read(context.queue.now());
        let Some(registers) = &context.options.registers else {
            return self.ask(now, connection, words);
        };
        let is_durable = registers.durable[self.index];
        match words {
            [b"INFO", b"persistence"] if is_durable => OwnedReply::Text("aof_enabled:1\r\n".into()),
            [b"CONFIG", b"GET", b"appendfsync"] if is_durable => {
                let [name, value] = [&b"appendfsync"[..], b"always"];
                let bulk = |text: &[u8]| OwnedReply::Bulk(text.to_vec());
                OwnedReply::Map(vec![(bulk(name), bulk(value))])
            }
            [b"EVAL" | b"EVALSHA", _, rest @ ..] => {
                self.sync(now);
                let reply = match context.options.mistake.and_then(wrong) {
                    Some((scripts, from, to)) if scripts.iter().any(|it| is_script(words, *it)) => {
                        let of_words = scripts.iter().find(|it| is_script(words, **it));
                        let source = of_words.expect("one is").source.replace(from, to);
                        let words = [&[&b"EVAL"[..], source.as_bytes()], rest].concat();
                        self.ask(now, connection, &words)
                    }
                    _ => self.ask(now, connection, words),
                };
                context.trace(|| self.tell(connection, words, &reply));
                reply
            }
            _ => self.ask(now, connection, words),
        }
    }

    /// A line of the trace.
    fn tell(&self, connection: usize, words: &[&[u8]], reply: &OwnedReply) -> String {
        let by = self
            .served
            .get(&connection)
            .map_or((0, 0), |served| served.client);
        let name = NAMES.iter().find(|(script, _)| is_script(words, *script));
        let name = name.map_or("another script", |(_, name)| name);
        let words = words[2..]
            .iter()
            .map(|word| word.escape_ascii().to_string());
        let words = words.collect::<Vec<_>>().join(" ");
        format!("node {}: {name} by {by:?}: {words}: {reply:?}", self.index)
    }

    /// Which server this is, and its mark.
    pub(crate) fn seen(&self, now: u64) -> NodeMark {
        let mark = self.keyspace.live_key(self.clock.read(now), 0, &mark_key());
        let mark = mark.and_then(|mark| mark.value).map(Arc::from);
        NodeMark {
            node: engine::Node::new(self.index),
            mark,
            run_id: Arc::from(&*self.run_id),
        }
    }

    /// The next epoch, if it has accepted one. It need not be decided.
    pub(crate) fn next_epoch(&self, now: u64) -> Option<Epoch> {
        let key = self
            .keyspace
            .live_key(self.clock.read(now), 0, &epoch_key())?;
        Epoch::read(Accepted::read(key.value?).ok()?.value?.bytes())
    }

    /// It loses all its keys, and runs on.
    pub(crate) fn flush(&mut self, now: u64) {
        self.run_foreign_command(now, &[b"FLUSHALL"]);
    }
}
