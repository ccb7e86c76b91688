//! The nodes: what a command does there, the library's own Lua does, or Lua with a mistake.
//!
//! The library encodes the command, an embedded node that has the keys of the search's node runs
//! the script, and the library reads the answer. States of nodes, commands and answers are
//! numbered, so a transition that was seen before costs a look at a table.

use crate::change::{Change, changed};
use crate::words::words;
use redlatch::internal::Time;
use redlatch::internal::embedded::{ConnectionState, Keyspace, Options, OwnedReply, Protocol};
use redlatch::internal::engine::register::{
    Epoch, Group, Member, RegisterCommand, RegisterKeys, RegisterReply, RegisterRequest,
};
use redlatch::internal::engine::{self, Action, Drift, Rules};
use redlatch::internal::node::command::{Form, Meaning, encode, meaning};
use redlatch::internal::node::script;
use redlatch::internal::resp::decode;
use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;
use std::sync::Arc;

/// The epoch of the nodes.
const EPOCH: u64 = 1;

/// What a node's clock shows at each command.
const NOW: Time = Time::from_millis(1_000_000);

/// The number that answers repeat.
const PROOF: u64 = 7;

/// The run of every server.
const RUN: &str = "run";

/// The number of a state of a node: which keys it has.
pub(crate) type NodeState = u32;

/// The number of a command about a register.
pub(crate) type Command = u32;

/// The number of an answer.
pub(crate) type Answer = u32;

/// The keys of a node.
type Keys = BTreeMap<Vec<u8>, Vec<u8>>;

/// Things by their numbers, and the numbers by the things.
#[derive(Default)]
struct Numbered<T> {
    things: Vec<T>,
    numbers: HashMap<T, u32>,
}

impl<T: Clone + Eq + Hash> Numbered<T> {
    fn number(&mut self, thing: T) -> u32 {
        *self.numbers.entry(thing).or_insert_with_key(|thing| {
            self.things.push(thing.clone());
            self.things.len() as u32 - 1
        })
    }
}

/// What runs the commands of a search.
pub(crate) struct Server {
    keyspace: Keyspace,
    caller: ConnectionState,
    /// The digests of the scripts that run, by those of the library's.
    digests: HashMap<Vec<u8>, Vec<u8>>,
    nodes: Numbered<Keys>,
    commands: Numbered<Vec<u8>>,
    /// The commands by their numbers.
    requests: Vec<(u8, RegisterCommand, engine::Request)>,
    answers: Numbered<String>,
    replies: Vec<RegisterReply>,
    seen: HashMap<(NodeState, Command), (NodeState, Answer)>,
}

impl Server {
    pub(crate) fn new(changes: &[Change]) -> Self {
        let mut keyspace = Keyspace::new(Options::new().wall_clock(Time::from_millis(0), 0));
        let mut caller = keyspace.connect();
        let mut digests = HashMap::new();
        for script in script::ALL {
            let source = changed(*script, changes);
            let words: [&[u8]; 3] = [b"SCRIPT", b"LOAD", source.as_bytes()];
            let loaded = keyspace.execute(NOW, &mut caller, &words);
            let OwnedReply::Bulk(digest) = loaded else { panic!("{loaded:?}") };
            digests.insert(script.sha1.into(), digest);
        }
        Self {
            keyspace,
            caller,
            digests,
            nodes: Numbered { things: Vec::new(), numbers: HashMap::new() },
            commands: Numbered { things: Vec::new(), numbers: HashMap::new() },
            requests: Vec::new(),
            answers: Numbered { things: Vec::new(), numbers: HashMap::new() },
            replies: Vec::new(),
            seen: HashMap::new(),
        }
    }

    /// How many transitions are remembered.
    pub(crate) fn seen(&self) -> usize {
        self.seen.len()
    }

    /// A member that has kept no register so far.
    pub(crate) fn formed(&mut self) -> NodeState {
        let epoch = Epoch { group: group(), members: [1; 3].into() };
        let member = Member { epoch, run_id: RUN.into(), id: 1, is_durable: false };
        let mark = member.to_bytes().to_vec();
        self.nodes.number(Keys::from([(keys(0).mark.to_vec(), mark)]))
    }

    /// A node that has lost all its keys.
    pub(crate) fn emptied(&mut self) -> NodeState {
        self.nodes.number(Keys::new())
    }

    pub(crate) fn command(&mut self, register: u8, command: RegisterCommand) -> Command {
        let request = request(register, command.clone());
        let mut bytes = Vec::new();
        encode(&request, Form::Digest, PROOF, &mut bytes);
        let number = self.commands.number(bytes);
        if number as usize == self.requests.len() {
            self.requests.push((register, command, request));
        }
        number
    }

    /// The register and the command that have this number.
    pub(crate) fn asked(&self, command: Command) -> (u8, &RegisterCommand) {
        let (register, command, _) = &self.requests[command as usize];
        (*register, command)
    }

    pub(crate) fn reply(&self, answer: Answer) -> &RegisterReply {
        &self.replies[answer as usize]
    }

    pub(crate) fn is_done(&self, answer: Answer) -> bool {
        *self.reply(answer) == RegisterReply::Done
    }

    /// The keys of a node, in words.
    pub(crate) fn tell(&self, node: NodeState) -> String {
        let keys = self.nodes.things[node as usize].iter();
        let shown = keys.filter(|(key, _)| !key.ends_with(RegisterKeys::MARK));
        let shown =
            shown.map(|(key, value)| format!("{} = {}", key.escape_ascii(), value.escape_ascii()));
        shown.collect::<Vec<_>>().join(", ")
    }

    /// Has a node carry out a command.
    pub(crate) fn run(&mut self, node: NodeState, command: Command) -> (NodeState, Answer) {
        if let Some(done) = self.seen.get(&(node, command)) {
            return *done;
        }
        self.write(node);
        let reply = self.send(command);
        let answer = self.answers.number(format!("{reply:?}"));
        if answer as usize == self.replies.len() {
            self.replies.push(reply);
        }
        let keys = self.read();
        let done = (self.nodes.number(keys), answer);
        self.seen.insert((node, command), done);
        done
    }

    fn send(&mut self, command: Command) -> RegisterReply {
        let mut words = words(&self.commands.things[command as usize]);
        words[1] = &self.digests[words[1]];
        let reply = self.keyspace.execute(NOW, &mut self.caller, &words);
        let mut bytes = Vec::new();
        reply.encode(Protocol::Resp3, &mut bytes);
        let (reply, _) = decode(&bytes).expect("a reply").expect("all of it");
        match meaning(&self.requests[command as usize].2, PROOF, &reply, None) {
            Meaning::Register(reply) => reply,
            other => panic!("{other:?} of {reply:?}"),
        }
    }

    /// The node has these keys, and no others.
    fn write(&mut self, node: NodeState) {
        self.keyspace.execute(NOW, &mut self.caller, &[b"FLUSHALL"]);
        for (key, value) in &self.nodes.things[node as usize] {
            self.keyspace.execute(NOW, &mut self.caller, &[b"SET", key, value]);
        }
    }

    fn read(&self) -> Keys {
        let keys = self.keyspace.live_keys(NOW).map(|key| {
            assert!(key.remaining.is_none(), "no key of a register expires");
            (key.key.to_vec(), key.value.expect("a string").to_vec())
        });
        keys.collect()
    }
}

pub(crate) fn group() -> Group {
    Group { id: 5, epoch: EPOCH, token: 6 }
}

fn keys(register: u8) -> RegisterKeys {
    RegisterKeys::new(b"", &[b'a' + register])
}

fn request(register: u8, command: RegisterCommand) -> engine::Request {
    let (keys, epoch, run_id) = (keys(register), group().to_bytes(), Arc::from(RUN));
    let request = RegisterRequest { keys, epoch, run_id, command };
    let rules = Rules::new(3, Drift::from_factor(0.01).expect("a factor"));
    engine::Request::to_all(&rules, NOW, Action::Register(Box::new(request)))
}
