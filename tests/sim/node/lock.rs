//! Lock commands: a node runs them, and the checker observes it.

use super::Node;
use crate::checker::{Command, Execution, Invariant, Keeping, Kind, Name, hex, name};
use crate::context::Context;
use crate::mistake::Mistake;
use redlatch::internal::Time;
use redlatch::internal::embedded::OwnedReply;
use redlatch::internal::node::command::{COUNTER_SUFFIX, is_reservation};

impl Node {
    /// Runs a lock command, and reports it to the checker.
    pub(super) fn execute(
        &mut self,
        context: &mut Context,
        connection: usize,
        words: &[&[u8]],
        command: &Command<'_>,
    ) -> OwnedReply {
        let now = self.clock.read(context.queue.now());
        self.sync(now);
        let before: Vec<Keeping> = command.keys.iter().map(|key| self.keeping(now, key)).collect();
        let reply = self.carry_out(context, connection, words, command);
        let after = command.keys.iter().map(|key| self.keeping(now, key));
        let keys: Vec<(Keeping, Keeping)> = before.into_iter().zip(after).collect();
        let client = self.served.get(&connection).map_or((0, 0), |served| served.client);
        context.trace(|| {
            format!("node {}: {} by {client:?}: {}", self.index, show(words), show_reply(&reply))
        });
        for left in command.keys.iter().filter_map(|key| Some(self.look(now, key)?.1)) {
            if left > context.options.ttl.1 {
                let text = format!("node {}: a key that lives for {left} ms", self.index);
                context.checker.report_violation(Invariant::Residue, text);
            }
        }
        if command.kind == Kind::Queue {
            self.check_lives(context, words[3], words[4]);
        }
        if command.kind == Kind::Look {
            let seen = keys.iter().filter_map(|(before, _)| *before);
            seen.for_each(|(token, _)| context.checker.saw(client, token));
        }
        context.checker.executed(&Execution {
            client,
            node: self.index,
            now: context.queue.now(),
            command,
            keys: &keys,
            is_granted: is_granted(&reply),
        });
        let is_avoidable = self.is_avoidable(context, connection);
        if is_avoidable && command.kind == Kind::Take {
            context.checker.expect_wanted(self.index, command.token, &keys);
        }
        let is_late = context.network.connections[connection].is_abandoned;
        if is_late && !is_avoidable && !matches!(command.kind, Kind::Remove | Kind::Queue) {
            command.token.into_iter().for_each(|token| context.checker.allow_leftover(token));
        }
        reply
    }

    /// Runs a command, or what a mistake makes of it.
    fn carry_out(
        &mut self,
        context: &Context,
        connection: usize,
        words: &[&[u8]],
        command: &Command<'_>,
    ) -> OwnedReply {
        let now = self.clock.read(context.queue.now());
        let has = |mistake| context.options.has(mistake);
        match command.kind {
            Kind::Remove if has(Mistake::ReleaseWithoutComparing) => {}
            Kind::Remove if has(Mistake::QueueForgotten) && self.is_held_by(now, command) => {}
            Kind::Force if has(Mistake::UnseenRemoved) => {}
            Kind::Extend if has(Mistake::ExtensionShortens) => {
                let reply = self.ask(now, connection, words);
                let ttl = words[3 + command.keys.len() + 1];
                let ours = command.keys.iter().filter(|_| is_granted(&reply) == Some(true));
                ours.for_each(|key| {
                    self.run_foreign_command(context.queue.now(), &[b"PEXPIRE", key, ttl]);
                });
                return reply;
            }
            Kind::Remove if has(Mistake::CounterForgotten) => {
                let counters = command.keys.iter().map(|key| [key, COUNTER_SUFFIX].concat());
                for key in counters {
                    self.run_foreign_command(context.queue.now(), &[b"DEL", &key]);
                }
                return self.ask(now, connection, words);
            }
            _ => return self.ask(now, connection, words),
        }
        // The reply of the script.
        match self.ask(now, connection, &[&[&b"DEL"[..]], command.keys].concat()) {
            OwnedReply::Integer(count) => {
                let number = words.last().and_then(|word| std::str::from_utf8(word).ok());
                let number: i64 = number.and_then(|it| it.parse().ok()).expect("it has a number");
                OwnedReply::Integer(if count > 0 { number } else { -number })
            }
            other => other,
        }
    }

    /// Does the first key hold the command's token?
    fn is_held_by(&self, now: Time, command: &Command<'_>) -> bool {
        let held = command.keys.first().and_then(|key| self.look(now, key));
        held.is_some_and(|(token, _)| Some(token) == command.token)
    }

    /// The lock of a key, and its remaining milliseconds. A reservation is no lock.
    pub(crate) fn look(&self, now: Time, key: &[u8]) -> Option<(Name, u64)> {
        let found = self.keyspace.live_key(now, 0, key)?;
        let value = found.value.filter(|value| !is_reservation(value))?;
        Some((name(value), found.remaining?.as_millis() as u64))
    }

    /// The lock of a key, and until when it lives, in true time.
    fn keeping(&self, now: Time, key: &[u8]) -> Keeping {
        let (token, left) = self.look(now, key)?;
        // It expires with the first millisecond after its last.
        let last = now.as_nanos() / 1_000_000 + left;
        Some((token, self.clock.when(Time::from_millis(last + 1))))
    }
}

/// Was the request granted? The only place that interprets a reply.
fn is_granted(reply: &OwnedReply) -> Option<bool> {
    match reply {
        OwnedReply::Simple(_) => Some(true),
        // A script whose reply is the client's number says no with a negative sign.
        OwnedReply::Integer(number) => Some(*number > 0),
        OwnedReply::Null => Some(false),
        OwnedReply::Error(text) if text.starts_with(b"WRONGTYPE") => Some(false),
        OwnedReply::Array(list) => match list.first() {
            Some(OwnedReply::Integer(number)) => Some(*number > 0),
            _ => None,
        },
        _ => None,
    }
}

/// A command as shown in the trace.
pub(super) fn show(words: &[&[u8]]) -> String {
    let first = String::from_utf8_lossy(words[0]).into_owned();
    match Command::of(words) {
        Some(command) => {
            let key = command.keys.join(&b'+');
            let key = String::from_utf8_lossy(&key);
            let before = command.predecessor.map(|token| format!(" from {}", hex(token)));
            let token = command.token.map(hex).unwrap_or_default();
            let before = before.unwrap_or_default();
            format!("{:?} ({first}) {key} {token}{before}", command.kind)
        }
        None => first,
    }
}

fn show_reply(reply: &OwnedReply) -> String {
    match reply {
        OwnedReply::Error(text) => String::from_utf8_lossy(text).into_owned(),
        other => format!("{other:?}"),
    }
}
