//! A node: the model of a server behind bytes, with a clock of its own. It freezes, continues,
//! crashes, and comes back with all its keys or with none.

use crate::checker::{Checker, Invariant, hex};
use crate::clock::Clock;
use crate::network::{Read, Side};
use crate::sabotage::Sabotage;
use crate::stage::Stage;
use redlatch::internal::embedded::{ConnectionState, Keyspace, Options, OwnedReply};
use redlatch::internal::resp::{Decoder, Reply};
use std::collections::BTreeMap;
use std::time::Duration;

/// How a node is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Health {
    Up,
    /// Takes connections and bytes, and does nothing with them.
    Frozen,
    Down,
}

/// What a node knows of one connection.
#[derive(Debug)]
struct Served {
    state: ConnectionState,
    client: (usize, u64),
    bytes: Vec<u8>,
    decoder: Decoder,
}

#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) index: usize,
    pub(crate) health: Health,
    keyspace: Keyspace,
    /// A connection of ours, to look at keys.
    observer: ConnectionState,
    clock: Clock,
    served: BTreeMap<usize, Served>,
    starts: u64,
}

impl Node {
    pub(crate) fn new(index: usize, clock: Clock) -> Self {
        let options = Options::new()
            .run_id(format!("{index:02}-0"))
            .uptime(Duration::from_secs(86_400))
            .started(clock.read(0));
        let mut keyspace = Keyspace::new(options);
        let observer = keyspace.connect();
        let (health, served) = (Health::Up, BTreeMap::new());
        Self { index, health, keyspace, observer, clock, served, starts: 0 }
    }

    /// A connection has been made.
    pub(crate) fn accept(&mut self, connection: usize, client: (usize, u64)) {
        let state = self.keyspace.connect();
        let served = Served { state, client, bytes: Vec::new(), decoder: Decoder::new() };
        self.served.insert(connection, served);
    }

    /// Reads what has come on a connection and answers it.
    pub(crate) fn serve(&mut self, stage: &mut Stage, connection: usize) {
        if self.health != Health::Up {
            return;
        }
        let Some(mut served) = self.served.remove(&connection) else { return };
        loop {
            match stage.network.read(connection, Side::Node, usize::MAX) {
                Read::Bytes(bytes) => {
                    served.bytes.extend_from_slice(&bytes);
                    self.run(stage, connection, &mut served);
                }
                Read::Empty => break,
                Read::Finished => return,
            }
        }
        self.served.insert(connection, served);
    }

    fn run(&mut self, stage: &mut Stage, connection: usize, served: &mut Served) {
        let bytes = std::mem::take(&mut served.bytes);
        let mut rest = &bytes[..];
        let mut replies = Vec::new();
        while let Some((reply, used)) = served.decoder.decode(rest).expect("a client sends RESP") {
            let Reply::Array(elements) = reply else { panic!("a client sends arrays") };
            let words: Vec<&[u8]> = elements
                .iter()
                .map(|element| match element {
                    Reply::Bulk(word) => word,
                    other => panic!("{other:?} in a command"),
                })
                .collect();
            let reply = self.execute(stage, connection, served, &words);
            reply.encode(served.state.protocol(), &mut replies);
            rest = &rest[used..];
        }
        served.bytes = rest.to_vec();
        let Stage { network, queue, random, .. } = stage;
        network.send(queue, random, connection, Side::Client, &replies);
    }

    fn execute(
        &mut self,
        stage: &mut Stage,
        connection: usize,
        served: &mut Served,
        words: &[&[u8]],
    ) -> OwnedReply {
        let now = self.clock.read(stage.queue.now());
        let (key, token) = match words {
            [b"SET", key, token, ..] => (*key, *token),
            [b"EVAL" | b"EVALSHA", _, _, key, token, ..] => (*key, *token),
            _ => return self.keyspace.execute(now, &mut served.state, words),
        };
        let before = self.value(now, key);
        let is_removal = words.len() == 5;
        let reply = match stage.options.sabotage {
            Some(Sabotage::ReleaseWithoutComparing) if is_removal => {
                self.keyspace.execute(now, &mut served.state, &[b"DEL", key])
            }
            _ => self.keyspace.execute(now, &mut served.state, words),
        };
        let after = self.value(now, key);
        let name = String::from_utf8_lossy(words[0]).into_owned();
        let what = format!("{name} {} {}", String::from_utf8_lossy(key), hex(token));
        stage.say(|| format!("node {}: {what} by {:?}: {reply:?}", self.index, served.client));
        let checker = &mut stage.checker;
        checker.executed(served.client, before.as_deref(), after.as_deref(), &what);
        if after.is_some() {
            self.check_ttl(checker, now, key, stage.options.ttl.1);
        }
        if stage.network.connections[connection].is_abandoned && !is_removal {
            checker.excuse(token);
        }
        reply
    }

    fn value(&mut self, now: redlatch::internal::Time, key: &[u8]) -> Option<Vec<u8>> {
        match self.keyspace.execute(now, &mut self.observer, &[b"GET", key]) {
            OwnedReply::Bulk(value) => Some(value),
            _ => None,
        }
    }

    fn check_ttl(
        &mut self,
        checker: &mut Checker,
        now: redlatch::internal::Time,
        key: &[u8],
        longest: u64,
    ) {
        match self.keyspace.execute(now, &mut self.observer, &[b"PTTL", key]) {
            OwnedReply::Integer(left) if (0..=longest as i64).contains(&left) => {}
            other => checker.accuse(
                Invariant::Liveness,
                format!("node {}: a key that lives for {other:?}", self.index),
            ),
        }
    }

    pub(crate) fn thaw(&mut self, stage: &mut Stage) {
        if self.health == Health::Frozen {
            self.health = Health::Up;
            // Which connection is looked at first is for the kernel to say.
            let mut waiting: Vec<usize> = self.served.keys().copied().collect();
            while !waiting.is_empty() {
                let next = stage.random.below(waiting.len() as u64) as usize;
                self.serve(stage, waiting.swap_remove(next));
            }
        }
    }

    pub(crate) fn crash(&mut self, stage: &mut Stage) {
        self.health = Health::Down;
        for connection in std::mem::take(&mut self.served).into_keys() {
            let is_told = stage.random.chance(700);
            let Stage { network, queue, random, .. } = stage;
            network.forget(queue, random, connection, is_told);
        }
    }

    pub(crate) fn restart(&mut self, now: u64, keep_data: bool) {
        self.starts += 1;
        let run_id = format!("{:02}-{}", self.index, self.starts);
        self.keyspace.restart(self.clock.read(now), keep_data, run_id);
        self.observer = self.keyspace.connect();
        self.health = Health::Up;
    }

    pub(crate) fn forget_scripts(&mut self) {
        self.keyspace.flush_scripts();
    }

    /// The tokens that are there now.
    pub(crate) fn tokens(&self, now: u64) -> Vec<Vec<u8>> {
        let keys = self.keyspace.live_keys(self.clock.read(now));
        keys.filter_map(|key| key.value.map(<[u8]>::to_vec)).collect()
    }
}
