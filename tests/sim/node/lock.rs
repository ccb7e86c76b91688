//! Lock commands: a node runs them, and the checker observes it.

use super::Node;
use crate::checker::{Command, Execution, Invariant, Keeping, Kept, Kind, Name, hex, name};
use crate::context::Context;
use crate::mistake::Mistake;
use redlatch_embedded::model::OwnedReply;
use redlatch_protocol::node::command::{COUNTER_SUFFIX, SHARED, is_reservation};
use redlatch_protocol::node::command::{read_left, read_member};
use redlatch_protocol::node::script;
use redlatch_protocol::time::Time;

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
        let before: Vec<Keeping> = command
            .keys
            .iter()
            .map(|key| self.keeping(now, key))
            .collect();
        let reply = self.carry_out(context, connection, words, command);
        let after = command.keys.iter().map(|key| self.keeping(now, key));
        let keys: Vec<(Keeping, Keeping)> = before.into_iter().zip(after).collect();
        let client = self
            .served
            .get(&connection)
            .map_or((0, 0), |served| served.client);
        context.trace(|| {
            format!(
                "node {}: {} by {client:?}: {}",
                self.index,
                show(words),
                show_reply(&reply)
            )
        });
        self.expect_no_residue(context, now, command);
        if command.kind == Kind::Queue {
            let waiter = argument(words, 0);
            command
                .keys
                .iter()
                .for_each(|key| self.check_lives(context, key, waiter));
        }
        if command.kind == Kind::Look {
            let seen = keys.iter().flat_map(|(before, _)| before);
            seen.for_each(|kept| context.checker.saw(client, kept.token));
        }
        if is_restored_permit(words) && is_granted(&reply) == Some(true) {
            context.tally.restored_permits += 1;
        }
        let has = |keeping: &Keeping| keeping.iter().any(|it| Some(it.token) == command.token);
        let is_set = keys
            .iter()
            .any(|(before, after)| has(after) && !has(before));
        if self.is_of_group() && command.kind == Kind::Extend && is_set {
            context.tally.reclaimed += 1;
        }
        context.checker.executed(&Execution {
            client,
            node: self.index,
            now: context.queue.now(),
            command,
            keys: &keys,
            is_granted: is_granted(&reply),
            permit: permit(words, &reply),
        });
        self.judge_late(context, connection, command, &keys);
        reply
    }

    /// No key lives for longer than the longest ttl, and in a group by what the clocks of two
    /// servers differ: longer by that than its lock, and it may have been set by the other clock.
    fn expect_no_residue(&self, context: &mut Context, now: Time, command: &Command<'_>) {
        let groups = context.options.groups.as_ref();
        let skew = groups.map_or(0, |groups| groups.skew.as_millis() as u64);
        for Holder { left, .. } in command.keys.iter().flat_map(|key| self.holders(now, key)) {
            if left > context.options.ttl.1 + 2 * skew {
                let text = format!("node {}: a key that lives for {left} ms", self.index);
                context.checker.report_violation(Invariant::Residue, text);
            }
        }
    }

    /// What a command did although its client did not wait for it any more.
    fn judge_late(
        &self,
        context: &mut Context,
        connection: usize,
        command: &Command<'_>,
        keys: &[(Keeping, Keeping)],
    ) {
        let is_avoidable = self.is_avoidable(context, connection);
        if is_avoidable && command.kind == Kind::Take {
            context
                .checker
                .expect_wanted(self.index, command.token, keys);
        }
        let is_late = context.network.connections[connection].is_abandoned;
        if is_late && !is_avoidable && !matches!(command.kind, Kind::Remove | Kind::Queue) {
            command
                .token
                .into_iter()
                .for_each(|token| context.checker.allow_leftover(token));
        }
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
                let ttl = argument(words, 1);
                let ours = command
                    .keys
                    .iter()
                    .filter(|_| is_granted(&reply) == Some(true));
                ours.for_each(|key| {
                    self.run_foreign_command(context.queue.now(), &[b"PEXPIRE", key, ttl]);
                });
                return reply;
            }
            Kind::Remove if has(Mistake::CounterForgotten) => {
                let counters = command
                    .keys
                    .iter()
                    .map(|key| [key, COUNTER_SUFFIX].concat());
                for key in counters {
                    self.run_foreign_command(context.queue.now(), &[b"DEL", &key]);
                }
                return self.ask(now, connection, words);
            }
            Kind::Take if context.options.sharing.permille > 0 => {
                return self.take(context, connection, words, command);
            }
            _ => return self.ask(now, connection, words),
        }
        // The reply of the script.
        match self.ask(now, connection, &[&[&b"DEL"[..]], command.keys].concat()) {
            OwnedReply::Integer(count) => {
                let number = words.last().and_then(|word| std::str::from_utf8(word).ok());
                let number: i64 = number
                    .and_then(|it| it.parse().ok())
                    .expect("it has a number");
                OwnedReply::Integer(if count > 0 { number } else { -number })
            }
            other => other,
        }
    }

    /// Runs a command that takes a lock or a share of it, or what a mistake makes of it.
    fn take(
        &mut self,
        context: &Context,
        connection: usize,
        words: &[&[u8]],
        command: &Command<'_>,
    ) -> OwnedReply {
        let now = self.clock.read(context.queue.now());
        let has = |mistake| context.options.has(mistake);
        let key = command.keys[0];
        let is_share = is_script(words, script::SHARE);
        let is_shared = self
            .keyspace
            .live_key(now, 0, key)
            .is_some_and(|it| it.value == Some(SHARED));
        let lost: Option<&[u8]> = match is_share {
            false if has(Mistake::SharesIgnored) && is_shared => Some(b""),
            true if has(Mistake::PermitsReused) => Some(HOLDERS),
            true if has(Mistake::ReadersPass) || has(Mistake::PermitsPass) => {
                Some(b":redlatch:queue")
            }
            _ => None,
        };
        if let Some(suffix) = lost {
            let key = [key, suffix].concat();
            self.run_foreign_command(context.queue.now(), &[b"DEL", &key]);
        }
        if has(Mistake::ReadersRefused) && is_share && is_shared {
            let number = words.last().and_then(|word| std::str::from_utf8(word).ok());
            let number: i64 = number
                .and_then(|it| it.parse().ok())
                .expect("it has a number");
            return OwnedReply::Integer(-number);
        }
        let mut reply = self.ask(now, connection, words);
        if let OwnedReply::Array(list) = &mut reply {
            if is_share && has(Mistake::ReadersUncounted) && list[3] == OwnedReply::Integer(-1) {
                list[2] = OwnedReply::Integer(0);
            }
        }
        reply
    }

    /// Does the first key hold the command's token?
    fn is_held_by(&self, now: Time, command: &Command<'_>) -> bool {
        let held = command
            .keys
            .iter()
            .take(1)
            .flat_map(|key| self.holders(now, key));
        held.into_iter()
            .any(|holder| Some(holder.token) == command.token)
    }

    /// Who holds the lock of a key: several if it is shared. A reservation is not a lock.
    pub(crate) fn holders(&self, now: Time, key: &[u8]) -> Vec<Holder> {
        let Some(found) = self.keyspace.live_key(now, 0, key) else {
            return Vec::new();
        };
        let Some(value) = found.value.filter(|value| !is_reservation(value)) else {
            return Vec::new();
        };
        if value == SHARED {
            return self
                .shares(now, key)
                .into_iter()
                .filter_map(Holder::of_share)
                .collect();
        }
        let Some(left) = found.remaining else {
            return Vec::new();
        };
        let left = left.as_millis() as u64;
        if let Some((grace, value)) = read_left(value) {
            // A lock that was left, behind whose time the key is kept for those who wait.
            let left = left.saturating_sub(grace);
            let holder = Holder {
                token: name(value),
                permit: None,
                left,
                ends_in: left,
            };
            return if left > 0 { vec![holder] } else { Vec::new() };
        }
        // A key expires with the first millisecond after its last.
        vec![Holder {
            token: name(value),
            permit: None,
            left,
            ends_in: left + 1,
        }]
    }

    /// The shares of a lock, which it has as long as its key says so, and their remaining
    /// milliseconds.
    pub(super) fn shares(&self, now: Time, key: &[u8]) -> Vec<(Vec<u8>, u64)> {
        let now_ms = now.as_nanos() / 1_000_000;
        let set = [key, HOLDERS].concat();
        let members = self.keyspace.live_members(now, 0, &set);
        let living = members.filter_map(|(member, end)| Some((member, end.checked_sub(now_ms)?)));
        living
            .filter(|(_, left)| *left > 0)
            .map(|(it, left)| (it.to_vec(), left))
            .collect()
    }

    /// The locks and shares of a key, and until when they live, in true time.
    fn keeping(&self, now: Time, key: &[u8]) -> Keeping {
        let now_ms = now.as_nanos() / 1_000_000;
        let kept = |Holder {
                        token,
                        permit,
                        ends_in,
                        ..
                    }| {
            let until = self.clock.when(Time::from_millis(now_ms + ends_in));
            Kept {
                token,
                until,
                permit,
            }
        };
        self.holders(now, key).into_iter().map(kept).collect()
    }
}

/// The suffix that turns a lock's key into that of the set of its holders.
pub(super) const HOLDERS: &[u8] = b":redlatch:holders";

/// A lock or a share, as a node has it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Holder {
    pub(crate) token: Name,
    pub(crate) permit: Option<u32>,
    /// Its remaining milliseconds.
    pub(crate) left: u64,
    /// It is gone with this millisecond.
    ends_in: u64,
}

impl Holder {
    fn of_share((member, left): (Vec<u8>, u64)) -> Option<Self> {
        let (permit, value) = read_member(&member)?;
        Some(Self {
            token: name(value),
            permit,
            left,
            ends_in: left,
        })
    }
}

/// Is this command one of that script?
pub(super) fn is_script(words: &[&[u8]], script: script::Script) -> bool {
    matches!(words, [b"EVAL" | b"EVALSHA", named, ..]
        if *named == script.source.as_bytes() || *named == script.sha1.as_bytes())
}

/// An argument of a script.
fn argument<'a>(words: &[&'a [u8]], index: usize) -> &'a [u8] {
    let keys = std::str::from_utf8(words[2])
        .ok()
        .and_then(|digits| digits.parse::<usize>().ok());
    words[3 + keys.expect("the number of keys") + index]
}

fn is_restored_permit(words: &[&[u8]]) -> bool {
    is_script(words, script::KEEP_SHARED)
        && !argument(words, 0).is_empty()
        && !argument(words, 3).is_empty()
}

/// The permit that a node has given.
fn permit(words: &[&[u8]], reply: &OwnedReply) -> Option<u32> {
    let OwnedReply::Array(list) = reply else {
        return None;
    };
    let Some(OwnedReply::Integer(permit)) = list.get(3) else {
        return None;
    };
    u32::try_from(*permit)
        .ok()
        .filter(|_| is_script(words, script::SHARE))
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
            let before = command
                .predecessor
                .map(|token| format!(" from {}", hex(token)));
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
