//! An embedded node, on which the library's own Lua runs, or Lua with a small mistake.

use models::words;
use models::{Change, changed};
use redlatch_embedded::model::{ConnectionState, Keyspace, NodeOptions, OwnedReply, Protocol};
use redlatch_protocol::engine;
use redlatch_protocol::node::command::{Form, NodeReply, encode, read};
use redlatch_protocol::node::script;
use redlatch_protocol::resp::decode;
use redlatch_protocol::time::Time;
use std::collections::{BTreeMap, HashMap};

/// The lock's key.
pub(crate) const KEY: &[u8] = NAMES[0];

/// The keys of both locks.
pub(crate) const NAMES: [&[u8]; 2] = [b"k", b"l"];

/// How many milliseconds that lasts which only a step of the search ends.
pub(crate) const LONG: u64 = 1_000_000_000;

/// What a node's clock shows at each command.
pub(crate) const NOW: u64 = 1_000_000;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    Text(Vec<u8>),
    /// In its order, with scores.
    Set(Vec<(Vec<u8>, u64)>),
}

/// The keys that exist, and for how many milliseconds.
pub(crate) type Keys = BTreeMap<Vec<u8>, (Value, u64)>;

/// The number that answers repeat.
const PROOF: u64 = 7;

/// A node, and the connection on which commands come.
pub(crate) struct Embedded {
    pub(crate) keyspace: Keyspace,
    caller: ConnectionState,
    /// The digests of the scripts that run, by those of the library's.
    digests: HashMap<Vec<u8>, Vec<u8>>,
}

impl Embedded {
    pub(crate) fn new(changes: &[Change]) -> Self {
        let options = NodeOptions::default().wall_clock(Time::from_millis(0), 0);
        let mut keyspace = Keyspace::new(options);
        let caller = keyspace.connect();
        let mut node = Self {
            keyspace,
            caller,
            digests: HashMap::new(),
        };
        for script in script::ALL {
            let source = changed(*script, changes);
            let loaded = node.ask(&[b"SCRIPT", b"LOAD", source.as_bytes()]);
            let OwnedReply::Bulk(digest) = loaded else {
                panic!("{loaded:?}")
            };
            node.digests.insert(script.sha1.into(), digest);
        }
        node
    }

    fn ask(&mut self, words: &[&[u8]]) -> OwnedReply {
        self.keyspace
            .execute(Time::from_millis(NOW), &mut self.caller, words)
    }

    /// The node has these keys, and no others.
    pub(crate) fn write(&mut self, keys: &Keys) {
        self.ask(&[b"FLUSHALL"]);
        for (name, (value, ttl)) in keys {
            let ttl = ttl.to_string();
            match value {
                Value::Text(text) => {
                    self.ask(&[b"SET", name, text, b"PX", ttl.as_bytes()]);
                }
                Value::Set(members) => {
                    for (member, score) in members {
                        self.ask(&[b"ZADD", name, score.to_string().as_bytes(), member]);
                    }
                    self.ask(&[b"PEXPIRE", name, ttl.as_bytes()]);
                }
            }
        }
    }

    pub(crate) fn read(&self) -> Keys {
        let now = Time::from_millis(NOW);
        let keys = self.keyspace.live_keys(now).map(|key| {
            let value = key
                .value
                .map(|text| Value::Text(text.to_vec()))
                .unwrap_or_else(|| {
                    let members = self.keyspace.live_members(now, key.database, key.key);
                    Value::Set(
                        members
                            .map(|(member, score)| (member.to_vec(), score))
                            .collect(),
                    )
                });
            let left = key.remaining.expect("every key expires").as_millis();
            (key.key.to_vec(), (value, left as u64))
        });
        keys.collect()
    }

    /// A command as the library sends it, to scripts that may be changed, and what it reads in the
    /// answer.
    pub(crate) fn send(&mut self, request: &engine::Request) -> NodeReply {
        let bytes = bytes(request);
        let mut words = words(&bytes);
        if words[0] == b"EVALSHA" {
            words[1] = &self.digests[words[1]];
        }
        let now = Time::from_millis(NOW);
        let reply = self.keyspace.execute(now, &mut self.caller, &words);
        let mut bytes = Vec::new();
        reply.encode(Protocol::Resp3, &mut bytes);
        let (reply, _) = decode(&bytes).expect("a reply").expect("all of it");
        read(request, PROOF, &reply, None).unwrap_or_else(|why| panic!("{request:?}: {why:?}"))
    }

    /// A connection that has sent this command.
    pub(crate) fn connect(&mut self, request: &engine::Request) -> ConnectionState {
        let mut link = self.keyspace.connect();
        self.keyspace
            .execute(Time::from_millis(NOW), &mut link, &words(&bytes(request)));
        link
    }
}

fn bytes(request: &engine::Request) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode(request, Form::Digest, PROOF, None, &mut bytes);
    bytes
}
