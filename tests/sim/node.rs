//! A node: the model of a server, which reads and writes bytes and has its own clock. It freezes,
//! resumes, replies with errors, crashes, and restarts with all its keys, some, or none.

mod lock;
mod memory;
mod queue;
mod registers;
mod replication;
mod served;
mod trouble;
mod wire;

pub(crate) use memory::Memory;
pub(crate) use queue::Ability;
pub(crate) use replication::Written;
pub(crate) use trouble::{ALL as TROUBLES, Trouble};
pub(crate) use wire::are_scripts;

use crate::checker::{Command, Kind, Name};
use crate::clock::Clock;
use crate::context::Context;
use crate::mistake::Mistake;
use crate::network::{Read, Side};
use lock::{HOLDERS, is_script, show};
use memory::Journal;
use queue::is_of_queue;
use redlatch_embedded::model::{Keyspace, NodeOptions, OwnedReply};
use redlatch_protocol::node::command::COUNTER_SUFFIX;
use redlatch_protocol::node::{MARKER, script};
use redlatch_protocol::time::Time;
use replication::Replicated;
use served::Served;
use std::collections::BTreeMap;
use std::time::Duration;

/// The state of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Health {
    Up,
    /// Accepts connections and bytes, and does not process them.
    Frozen,
    Down,
}

#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) index: usize,
    pub(crate) health: Health,
    pub(crate) clock: Clock,
    /// The commands that it refuses, and until when.
    trouble: Option<(Trouble, u64)>,
    keyspace: Keyspace,
    /// The keys of the other server, if two servers alternate.
    other: Keyspace,
    password: Option<&'static str>,
    ability: Ability,
    journal: Journal,
    crashed_at: Time,
    served: BTreeMap<usize, Served>,
    /// The latest connection of each client to each node on which this run of the server has run a
    /// lock command.
    latest: BTreeMap<((usize, u64), usize), usize>,
    starts: u64,
    /// That of the server, and of the other one.
    pub(crate) run_id: String,
    other_run_id: String,
    /// Set if it is a server of a replicated group.
    replicated: Option<Replicated>,
}

impl Node {
    pub(crate) fn new(
        (index, server): (usize, usize),
        clock: Clock,
        password: Option<&'static str>,
        ability: Ability,
    ) -> Self {
        let keyspace = |run_id: String| {
            let uptime = Duration::from_secs(86_400);
            let mut options = NodeOptions::default();
            (options.run_id, options.uptime) = (run_id, uptime);
            options.started = clock.read(0);
            Keyspace::new(match password {
                Some(password) => options.password(password),
                None => options,
            })
        };
        let run_id = format!("{server:02}r0");
        let other_run_id = format!("{server:02}other");
        Self {
            index,
            health: Health::Up,
            clock,
            trouble: None,
            keyspace: keyspace(run_id.clone()),
            other: keyspace(other_run_id.clone()),
            password,
            ability,
            journal: Journal::default(),
            crashed_at: Time::ZERO,
            served: BTreeMap::new(),
            latest: BTreeMap::new(),
            starts: 0,
            run_id,
            other_run_id,
            replicated: None,
        }
    }

    /// The commands that it refuses now.
    fn trouble(&self, context: &Context) -> Option<Trouble> {
        self.trouble
            .filter(|(_, until)| context.queue.now() < *until)
            .map(|(trouble, _)| trouble)
    }

    pub(crate) fn refuse(&mut self, trouble: Option<Trouble>, until: u64) {
        self.trouble = trouble.map(|trouble| (trouble, until));
    }

    /// Reads the bytes that have arrived on a connection, and runs their commands.
    pub(crate) fn serve(&mut self, context: &mut Context, connection: usize) {
        if self.health != Health::Up {
            return;
        }
        // Taken out while its commands run.
        let Some(served) = self.served.get_mut(&connection) else {
            return;
        };
        let mut bytes = std::mem::take(&mut served.bytes);
        let is_over = loop {
            match context.network.read(connection, Side::Node, usize::MAX) {
                Read::Bytes(more) => bytes.extend_from_slice(more),
                Read::Empty => break false,
                Read::Finished => break true,
            }
        };
        let rest = self.run(context, connection, &bytes);
        if is_over {
            if let Some(served) = self.served.remove(&connection) {
                self.keyspace.disconnect(&served.state);
            }
        } else if let Some(served) = self.served.get_mut(&connection) {
            bytes.drain(..bytes.len() - rest);
            served.bytes = bytes;
        }
    }

    /// Runs the commands in `bytes`, and returns how many bytes at the end are not a complete
    /// command.
    fn run(&mut self, context: &mut Context, connection: usize, bytes: &[u8]) -> usize {
        let mut rest = bytes;
        let mut replies = Vec::new();
        let mut left = rest.len();
        while let Some(words) = wire::next(&mut rest) {
            if self.blocks(context, connection, words.as_slice()) {
                break;
            }
            let before = replies.len();
            self.answer(context, connection, words.as_slice(), &mut replies);
            context.repeat(connection, &replies[before..]);
            left = rest.len();
        }
        let Context {
            network,
            queue,
            random,
            ..
        } = context;
        network.send(queue, random, connection, Side::Client, &replies);
        left
    }

    fn answer(
        &mut self,
        context: &mut Context,
        connection: usize,
        words: &[&[u8]],
        out: &mut Vec<u8>,
    ) {
        context.tally.commands += 1;
        if let Some(trouble) = self
            .trouble(context)
            .filter(|trouble| trouble.refuses(words))
        {
            let removed = Command::of(words).and_then(|command| command.removed());
            if let Some(token) = removed.filter(|_| trouble.is_permanent) {
                // The library sends no more commands to such a node: its keys stay until their ttl
                // has passed.
                context.checker.allow_leftover(token);
            }
            context.trace(|| format!("node {}: {} to {}", self.index, trouble.text, show(words)));
            if let [b"CLIENT", b"KILL", b"ID", id] = words {
                self.kill(context, id, Some(trouble.text));
            }
            out.push(b'-');
            out.extend_from_slice(trouble.text.as_bytes());
            return out.extend_from_slice(b"\r\n");
        }
        if let Some(refusal) = self.lacks(words) {
            out.extend_from_slice(format!("-{refusal}\r\n").as_bytes());
            return;
        }
        let hides_info =
            context.options.hides_info || context.options.has(Mistake::TwinsUnrecognised);
        let reply = match Command::of(words) {
            Some(command) if self.is_of_group() && is_script(words, script::KEEP) => {
                // An extension may reclaim the lock, and is one all the same.
                let command = Command {
                    kind: Kind::Extend,
                    ..command
                };
                self.execute(context, connection, words, &command)
            }
            Some(command) => self.execute(context, connection, words, &command),
            None if words.starts_with(&[b"CLIENT", b"KILL"]) => {
                assert!(
                    words.len() == 4 && words[2] == b"ID",
                    "a client kills only its own connections"
                );
                let refusal =
                    "NOPERM this user has no permissions to run the 'client|kill' command";
                let refusal = (!context.options.may_kill).then_some(refusal);
                self.kill(context, words[3], refusal)
            }
            None if words[0] == b"INFO" && hides_info => {
                OwnedReply::Error(b"NOPERM this user has no permissions to run 'info'".to_vec())
            }
            None if words[0] == b"WAIT" => self.count_replicas(connection),
            None => self.run_other(context, connection, words),
        };
        let reply = self.reign_as_greeted(context, connection, words, reply);
        context.tally.proofs += u64::from(replication::is_proof(words, &reply));
        self.note(context, connection, words, &reply);
        let Some(served) = self.served.get(&connection) else {
            return;
        };
        reply.encode(served.state.protocol, out);
        if context.options.has(Mistake::AnsweredTwice) && words[0] == b"SET" {
            reply.encode(served.state.protocol, out);
        }
        self.push(context, Some((connection, out)));
    }

    fn ask(&mut self, now: Time, connection: usize, words: &[&[u8]]) -> OwnedReply {
        if self.is_replica() && matches!(words[0], b"SET" | b"DEL") {
            return replication::read_only();
        }
        let before = self.before(now);
        let reply = match self.served.get_mut(&connection) {
            Some(served) => self.keyspace.execute(now, &mut served.state, words),
            None => OwnedReply::Null,
        };
        self.write(now, before, words, reply)
    }

    pub(crate) fn thaw(&mut self, context: &mut Context) {
        if self.health == Health::Frozen {
            self.health = Health::Up;
            // The kernel determines which connection is read first.
            let mut waiting: Vec<usize> = self.served.keys().copied().collect();
            while !waiting.is_empty() {
                let next = context.random.below(waiting.len() as u64) as usize;
                self.serve(context, waiting.swap_remove(next));
            }
        }
    }

    pub(crate) fn crash(&mut self, context: &mut Context) {
        self.health = Health::Down;
        self.crashed_at = self.clock.read(context.queue.now());
        self.latest.clear();
        self.end_connections(context, |it| it.random.chance(700));
    }

    /// All connections end. Some clients learn that only when they write.
    fn end_connections(&mut self, context: &mut Context, is_reset: impl Fn(&mut Context) -> bool) {
        for connection in std::mem::take(&mut self.served).into_keys() {
            let is_reset = is_reset(context);
            let Context {
                network,
                queue,
                random,
                ..
            } = context;
            network.forget(queue, random, connection, is_reset);
        }
    }

    /// Another server takes its place at once, and its connections end.
    pub(crate) fn exchange(&mut self, context: &mut Context) {
        let health = self.health;
        self.crash(context);
        self.health = health;
        std::mem::swap(&mut self.keyspace, &mut self.other);
        std::mem::swap(&mut self.run_id, &mut self.other_run_id);
        self.journal = Journal::default();
    }

    pub(crate) fn forget_scripts(&mut self) {
        self.keyspace.flush_scripts();
    }

    /// Another program runs this command, on a connection of its own.
    pub(crate) fn run_foreign_command(&mut self, now: u64, words: &[&[u8]]) -> OwnedReply {
        let now = self.clock.read(now);
        let mut stranger = self.keyspace.connect();
        if let Some(password) = self.password {
            self.keyspace
                .execute(now, &mut stranger, &[b"AUTH", password.as_bytes()]);
        }
        let before = self.before(now);
        let reply = self.keyspace.execute(now, &mut stranger, words);
        self.keyspace.disconnect(&stranger);
        self.write(now, before, words, reply)
    }

    /// The current locks: keys and tokens, without counters.
    pub(crate) fn locks(&self, now: u64) -> Vec<(Vec<u8>, Name)> {
        let keys = self.keyspace.live_keys(self.clock.read(now));
        let keys = keys.filter(|key| !key.key.ends_with(COUNTER_SUFFIX) && !is_of_queue(key.key));
        let keys = keys.filter(|key| key.key != MARKER);
        let now = self.clock.read(now);
        let holders = |key: &[u8]| {
            let key = key.to_vec();
            self.holders(now, &key)
                .into_iter()
                .map(move |holder| (key.clone(), holder.token))
        };
        keys.flat_map(|key| holders(key.key)).collect()
    }

    /// The locks that have a set of holders.
    pub(crate) fn shared_locks(&self, now: u64) -> Vec<Vec<u8>> {
        let keys = self.keyspace.live_keys(self.clock.read(now));
        keys.filter_map(|key| key.key.strip_suffix(HOLDERS).map(<[u8]>::to_vec))
            .collect()
    }
}
