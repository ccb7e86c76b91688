//! The nodes: what a command does there, the library's own Lua does, or Lua with a mistake.
//!
//! The library encodes the command, an embedded node that has the keys of the search's node runs
//! the script, and the library reads the answer. States of nodes, commands and answers are
//! numbered, so a transition that was seen before costs a look at a table.

use models::words;
use models::{Change, changed};
use redlatch_embedded::model::{ConnectionState, Keyspace, NodeOptions, OwnedReply, Protocol};
use redlatch_protocol::engine::{self, Drift, Node, Rules};
use redlatch_protocol::node::command::{Form, encode, read};
use redlatch_protocol::node::script;
use redlatch_protocol::resp::decode;
use redlatch_protocol::time::Time;
use redlatch_registers as own;
use redlatch_registers::{
    Epoch, GROUP_REGISTER, Group, MarkStep, Member, MemberAddress, NodeMark, RegisterCommand,
    RegisterKeys, RegisterReply, RegisterRequest,
};
use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

/// The epoch of the nodes.
const EPOCH: u64 = 1;

/// What a node's clock shows at each command.
const NOW: Time = Time::from_millis(1_000_000);

/// The number that answers repeat.
const PROOF: u64 = 7;

/// The number of the register in which the group decides its next epoch.
pub(crate) const GROUP: u8 = u8::MAX;

/// The command that lists the names of which a node has keys. Its answer is the node's state.
pub(crate) const LIST: Command = Command::MAX;

/// The number of a state of a node: which keys it has.
pub(crate) type NodeState = u32;

/// The number of a command about a register.
pub(crate) type Command = u32;

/// The number of an answer.
pub(crate) type Answer = u32;

/// The keys of a node.
type Keys = BTreeMap<Vec<u8>, Vec<u8>>;

/// A node.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Kept {
    keys: Keys,
    /// Which run of its server this is.
    run: u8,
    /// How often it has begun to join: its clock goes on with each, so that no number that it
    /// draws comes twice, also after it has forgotten.
    joins: u8,
}

/// A command about a register.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) register: u8,
    /// How the mark of a node begins that may do this.
    pub(crate) mark: Arc<[u8]>,
    pub(crate) command: RegisterCommand,
}

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
    nodes: Numbered<Kept>,
    commands: Numbered<Vec<u8>>,
    /// The commands by their numbers.
    asked: Vec<Asked>,
    answers: Numbered<String>,
    replies: Vec<RegisterReply>,
    seen: HashMap<(NodeState, Command), (NodeState, Answer)>,
}

impl Server {
    pub(crate) fn new(changes: &[Change]) -> Self {
        let mut keyspace =
            Keyspace::new(NodeOptions::default().wall_clock(Time::from_millis(0), 0));
        let mut caller = keyspace.connect();
        let mut digests = HashMap::new();
        for script in script::ALL.iter().chain(own::script::ALL) {
            let source = changed(*script, changes);
            let words: [&[u8]; 3] = [b"SCRIPT", b"LOAD", source.as_bytes()];
            let loaded = keyspace.execute(NOW, &mut caller, &words);
            let OwnedReply::Bulk(digest) = loaded else {
                panic!("{loaded:?}")
            };
            digests.insert(script.sha1.into(), digest);
        }
        Self {
            keyspace,
            caller,
            digests,
            nodes: Numbered {
                things: Vec::new(),
                numbers: HashMap::new(),
            },
            commands: Numbered {
                things: Vec::new(),
                numbers: HashMap::new(),
            },
            asked: Vec::new(),
            answers: Numbered {
                things: Vec::new(),
                numbers: HashMap::new(),
            },
            replies: Vec::new(),
            seen: HashMap::new(),
        }
    }

    /// How many transitions are remembered.
    pub(crate) fn seen(&self) -> usize {
        self.seen.len()
    }

    /// A member that has kept no register so far: which one, and of how many.
    pub(crate) fn formed(&mut self, index: usize, nodes: usize) -> NodeState {
        let epoch = epoch(nodes);
        let id = index as u64 + 1;
        let run = index as u8 * 16;
        let member = Member {
            epoch,
            run_id: run_id(run),
            id,
            is_durable: false,
        };
        let mark = member.to_bytes().to_vec();
        let keys = Keys::from([(keys(0).mark.to_vec(), mark)]);
        self.nodes.number(Kept {
            keys,
            run,
            joins: 0,
        })
    }

    /// A node that has lost all its keys.
    pub(crate) fn emptied(&mut self, node: NodeState) -> NodeState {
        let kept = self.nodes.things[node as usize].clone();
        self.nodes.number(Kept {
            keys: Keys::new(),
            ..kept
        })
    }

    /// A node whose server was started again, with the keys that it had in an older state.
    pub(crate) fn restarted(&mut self, node: NodeState, older: NodeState) -> NodeState {
        let now = &self.nodes.things[node as usize];
        let older = &self.nodes.things[older as usize];
        let kept = Kept {
            keys: older.keys.clone(),
            run: now.run + 1,
            joins: now.joins,
        };
        self.nodes.number(kept)
    }

    pub(crate) fn command(&mut self, asked: Asked) -> Command {
        let mut bytes = Vec::new();
        encode(&request(&asked, 0), Form::Digest, PROOF, None, &mut bytes);
        let number = self.commands.number(bytes);
        if number as usize == self.asked.len() {
            self.asked.push(asked);
        }
        number
    }

    /// The command that has this number.
    pub(crate) fn asked(&self, command: Command) -> &Asked {
        &self.asked[command as usize]
    }

    /// The names of the registers that a node has keys of.
    pub(crate) fn names(&self, node: NodeState) -> Vec<Arc<[u8]>> {
        let keys = self.nodes.things[node as usize].keys.keys();
        keys.filter_map(|key| Some(Arc::from(key.strip_prefix(RegisterKeys::PROMISE)?)))
            .collect()
    }

    /// How a node looks.
    pub(crate) fn look(&self, index: usize, node: NodeState) -> NodeMark {
        let Kept {
            keys: kept, run, ..
        } = &self.nodes.things[node as usize];
        let mark = kept.get(&*keys(0).mark).map(|mark| Arc::from(&mark[..]));
        NodeMark {
            node: Node::new(index),
            mark,
            run_id: run_id(*run).into(),
        }
    }

    pub(crate) fn reply(&self, answer: Answer) -> &RegisterReply {
        &self.replies[answer as usize]
    }

    pub(crate) fn is_done(&self, answer: Answer) -> bool {
        *self.reply(answer) == RegisterReply::Done
    }

    /// The keys of a node, in words.
    pub(crate) fn tell(&self, node: NodeState) -> String {
        let keys = self.nodes.things[node as usize].keys.iter();
        let shown =
            keys.map(|(key, value)| format!("{} = {}", key.escape_ascii(), value.escape_ascii()));
        shown.collect::<Vec<_>>().join(", ")
    }

    /// Has a node carry out a command.
    pub(crate) fn run(&mut self, node: NodeState, command: Command) -> (NodeState, Answer) {
        if command == LIST {
            return (node, node);
        }
        if let Some(done) = self.seen.get(&(node, command)) {
            return *done;
        }
        self.write(node);
        let Kept {
            run,
            joins,
            keys: before,
        } = self.nodes.things[node as usize].clone();
        let reply = self.send(command, run, joins);
        let answer = self.answers.number(format!("{reply:?}"));
        if answer as usize == self.replies.len() {
            self.replies.push(reply);
        }
        let keys = self.read();
        let joins_now = match self.asked(command).command {
            RegisterCommand::Mark(MarkStep::Join { .. }) if keys != before => joins + 1,
            _ => joins,
        };
        let done = (
            self.nodes.number(Kept {
                keys,
                run,
                joins: joins_now,
            }),
            answer,
        );
        self.seen.insert((node, command), done);
        done
    }

    fn send(&mut self, command: Command, run: u8, joins: u8) -> RegisterReply {
        let request = request(&self.asked[command as usize], run);
        let mut bytes = Vec::new();
        encode(&request, Form::Digest, PROOF, None, &mut bytes);
        let mut words = words(&bytes);
        words[1] = &self.digests[words[1]];
        let now = NOW.after(Duration::from_millis(joins.into()));
        let reply = self.keyspace.execute(now, &mut self.caller, &words);
        let mut bytes = Vec::new();
        reply.encode(Protocol::Resp3, &mut bytes);
        let (reply, _) = decode(&bytes).expect("a reply").expect("all of it");
        let read = read(&request, PROOF, &reply, None);
        let said = read
            .unwrap_or_else(|why| panic!("{why:?} of {reply:?}"))
            .said;
        said.and_then(|said| said.get().cloned()).expect("a reply")
    }

    /// The node has these keys, and no others.
    fn write(&mut self, node: NodeState) {
        self.keyspace.execute(NOW, &mut self.caller, &[b"FLUSHALL"]);
        for (key, value) in &self.nodes.things[node as usize].keys {
            self.keyspace
                .execute(NOW, &mut self.caller, &[b"SET", key, value]);
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

/// The first epoch of this many nodes.
pub(crate) fn epoch(nodes: usize) -> Epoch {
    let group = Group {
        id: 5,
        epoch: EPOCH,
        token: 6,
    };
    Epoch {
        group,
        members: (0..nodes)
            .map(|node| place_at(node, node as u64 + 1))
            .collect(),
    }
}

/// The place of this member, which is this node.
pub(crate) fn place_at(node: usize, id: u64) -> MemberAddress {
    MemberAddress::new(id, &address_of(Node::new(node)))
}

pub(crate) fn address_of(node: Node) -> String {
    format!("n{}", node.index())
}

fn run_id(run: u8) -> String {
    format!("run{run:03}")
}

fn keys(register: u8) -> RegisterKeys {
    match register {
        GROUP => RegisterKeys::new(b"", GROUP_REGISTER),
        _ => RegisterKeys::new(b"", &[b'a' + register]),
    }
}

fn request(asked: &Asked, run: u8) -> engine::Request {
    let Asked {
        register,
        mark,
        command,
    } = asked.clone();
    let keys = keys(register);
    let run_id = run_id(run).into();
    let request = RegisterRequest {
        keys,
        epoch: mark,
        run_id,
        command,
    };
    let rules = Rules::new(3, Drift::from_factor(0.01).expect("a factor"));
    engine::Request::to_all(&rules, NOW, engine::Command::Custom(Arc::new(request)))
}
