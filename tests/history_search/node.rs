//! What a server does with a command: the library encodes the command, an embedded node that has
//! the keys of the search's server runs the library's own Lua, or Lua with a mistake, and the
//! library reads the answer.

use crate::scheme::{Kind, Mistake, Scheme};
use models::{changed, words};
use redlatch_embedded::model::{
    ConnectionState, Keyspace, NodeOptions, OwnedReply, Protocol, Replication, Snapshot,
};
use redlatch_protocol::engine::{
    self, Before, Claim, ClaimTime, Drift, Keep, LockAttributes, LockId, QueueEntry, Removal,
    Rules, Share, Token, Ttl, Vote,
};
use redlatch_protocol::node::command::{Form, encode, read};
use redlatch_protocol::node::history::Standing;
use redlatch_protocol::node::{MARKER, script};
use redlatch_protocol::resp::decode;
use redlatch_protocol::time::Time;
use std::collections::HashMap;
use std::rc::Rc;
use std::time::Duration;

const LOCK: &[u8] = b"lock";

/// A tick of the search, in milliseconds.
pub(crate) const TICK: u64 = 1_000;

/// The number that answers repeat.
const PROOF: i64 = 7;

pub(crate) fn ticks(count: u8) -> Duration {
    Duration::from_millis(u64::from(count) * TICK)
}

fn at(tick: u8) -> Time {
    Time::from_millis(u64::from(tick) * TICK)
}

/// What a server says about itself.
#[derive(Clone, Debug)]
pub(crate) struct Said {
    pub(crate) run: u8,
    pub(crate) id: u8,
    pub(crate) former: Option<u8>,
    pub(crate) is_replica: bool,
    /// How far it has written, and how far each replica has acknowledged that.
    pub(crate) offset: u16,
    pub(crate) acknowledged: Vec<u16>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Command {
    /// Enter the queue, as the waiter of this token.
    Join {
        token: u8,
    },
    Claim {
        token: u8,
        floor: u64,
    },
    Keep {
        token: u8,
        reclaims: bool,
        is_resumed: bool,
    },
    Release {
        token: u8,
    },
    Reign {
        step: Step,
        nonce: u16,
        epoch: u8,
        replicas: u32,
    },
}

/// A step of the script that has the marker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Greet,
    Confirm,
    Prove,
    Touch,
    Check,
}

impl Step {
    fn word(self) -> &'static str {
        match self {
            Self::Greet => "greet",
            Self::Confirm => "confirm",
            Self::Prove => "prove",
            Self::Touch => "touch",
            Self::Check => "check",
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) enum Answer {
    /// With the counter, of a lock that has one.
    Vote(bool, u64),
    Standing(Rc<Standing>),
    /// The server takes no writes.
    Failed,
}

/// What runs the commands of a search.
pub(crate) struct Node {
    keyspace: Keyspace,
    caller: ConnectionState,
    /// The digests of the scripts that run, by those of the library's.
    digests: HashMap<Vec<u8>, Vec<u8>>,
    scheme: Scheme,
}

impl Node {
    pub(crate) fn new(scheme: &Scheme) -> Self {
        let changes = scheme.mistake.map_or(Vec::new(), Mistake::changes);
        let options = NodeOptions::default().wall_clock(Time::ZERO, 0);
        let mut keyspace = Keyspace::new(options);
        let mut caller = keyspace.connect();
        let mut digests = HashMap::new();
        for script in script::ALL {
            let source = changed(*script, &changes);
            let words: [&[u8]; 3] = [b"SCRIPT", b"LOAD", source.as_bytes()];
            let loaded = keyspace.execute(Time::ZERO, &mut caller, &words);
            let OwnedReply::Bulk(digest) = loaded else {
                panic!("{loaded:?}")
            };
            digests.insert(script.sha1.into(), digest);
        }
        Self {
            keyspace,
            caller,
            digests,
            scheme: *scheme,
        }
    }

    /// The keys of a group whose first reign has been known to be proven since the beginning.
    pub(crate) fn first_keys(&mut self) -> Rc<Snapshot> {
        self.marked(&["1", "1", "1", "0", "0"])
    }

    /// Keys that have nothing but this marker.
    pub(crate) fn marked(&mut self, [run, id, epoch, since, nonce]: &[&str; 5]) -> Rc<Snapshot> {
        let replicas = self.scheme.replicas.to_string();
        self.keyspace.load(&Snapshot::default());
        let fields = [
            "HSET",
            "redlatch:reign",
            "run",
            run,
            "id",
            id,
            "epoch",
            epoch,
            "since",
            since,
            "nonce",
            nonce,
            "replicas",
            &replicas,
            "former",
            "0",
            "former_run",
            "0",
            "after",
            "0",
        ];
        let words: Vec<&[u8]> = fields.iter().map(|word| word.as_bytes()).collect();
        self.keyspace.execute(Time::ZERO, &mut self.caller, &words);
        Rc::new(self.keyspace.snapshot(Time::ZERO))
    }

    /// The same keys without the marker.
    pub(crate) fn unmarked(&mut self, keys: &Snapshot, now: u8) -> Rc<Snapshot> {
        self.keyspace.load(keys);
        self.keyspace
            .execute(at(now), &mut self.caller, &[b"DEL", MARKER]);
        Rc::new(self.keyspace.snapshot(at(now)))
    }

    /// Has a server with these keys carry out a command, at this time of its clock.
    pub(crate) fn run(
        &mut self,
        keys: &Snapshot,
        said: &Said,
        now: u8,
        command: Command,
    ) -> (Rc<Snapshot>, Answer) {
        self.keyspace.load(keys);
        self.keyspace.replication = Replication {
            is_replica: said.is_replica,
            id: Some(said.id.to_string()),
            former: said.former.map(|id| id.to_string()),
            offset: said.offset.into(),
            replicas: said.acknowledged.iter().map(|it| u64::from(*it)).collect(),
        };
        let answer = match command {
            Command::Reign {
                step,
                nonce,
                epoch,
                replicas,
            } => self.ask_reign(step, [said.run.into(), epoch.into(), nonce], replicas, now),
            _ => self.ask(command, now),
        };
        (Rc::new(self.keyspace.snapshot(at(now))), answer)
    }

    fn ask_reign(
        &mut self,
        step: Step,
        [run, epoch, nonce]: [u16; 3],
        replicas: u32,
        now: u8,
    ) -> Answer {
        let digest = self.digests[script::REIGN_ACKNOWLEDGED.sha1.as_bytes()].clone();
        let quarantine = u64::from(self.scheme.quarantine()) * TICK;
        let numbers = [run, epoch, nonce].map(|number| number.to_string());
        let ends = [u64::from(replicas), quarantine, PROOF as u64].map(|it| it.to_string());
        let mut words: Vec<&[u8]> = vec![b"EVALSHA", &digest, b"1", MARKER];
        words.extend(numbers.iter().map(String::as_bytes));
        words.extend([step.word().as_bytes(), b""]);
        words.extend(ends.iter().map(String::as_bytes));
        let bytes = self.reply(&words, now);
        let (reply, _) = decode(&bytes).expect("a reply").expect("all of it");
        let standing = Standing::read(PROOF, &reply);
        Answer::Standing(Rc::new(standing.unwrap_or_else(|| panic!("{reply:?}"))))
    }

    fn ask(&mut self, command: Command, now: u8) -> Answer {
        let request = self.request(command);
        let mut bytes = Vec::new();
        encode(&request, Form::Digest, PROOF as u64, None, &mut bytes);
        let mut words = words(&bytes);
        if words[0] == b"EVALSHA" {
            words[1] = self.digests[words[1]].as_slice();
        }
        let words: Vec<Vec<u8>> = words.into_iter().map(<[u8]>::to_vec).collect();
        let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
        let bytes = self.reply(&words, now);
        let (reply, _) = decode(&bytes).expect("a reply").expect("all of it");
        let read = read(&request, PROOF as u64, &reply, None);
        let read = read.unwrap_or_else(|why| panic!("{request:?}: {why:?} of {reply:?}"));
        Answer::Vote(read.vote == Vote::Granted, read.counter.unwrap_or(0))
    }

    fn reply(&mut self, words: &[&[u8]], now: u8) -> Vec<u8> {
        let reply = self.keyspace.execute(at(now), &mut self.caller, words);
        while self.keyspace.poll_push().is_some() {}
        let mut bytes = Vec::new();
        reply.encode(Protocol::Resp3, &mut bytes);
        bytes
    }

    /// What the library sends.
    fn request(&self, command: Command) -> engine::Request {
        // The last millisecond is not the lock's: it is gone at a whole tick.
        let key_lives = self.scheme.ttl + self.scheme.margin();
        let ttl = millis(u64::from(key_lives) * TICK - 1);
        let command = match command {
            Command::Join { token } => engine::Command::Queue(QueueEntry {
                lock: self.lock(token),
                ttl,
                waiter: waiter(token),
                number: 0,
                since: 1,
                lease: millis(3 * TICK),
                lease_in_front: millis(2 * TICK),
                claim: ClaimTime {
                    notified: millis(TICK),
                    asking: millis(TICK),
                },
                channel: None,
            }),
            Command::Claim { token, floor } => engine::Command::Claim(Claim {
                lock: self.lock(token),
                ttl,
                fence: floor,
                before: match self.scheme.kind {
                    Kind::Queued => Before::Turn(waiter(token)),
                    _ => Before::Nothing,
                },
            }),
            Command::Keep {
                token,
                reclaims,
                is_resumed,
            } => engine::Command::Keep(Keep {
                lock: self.lock(token),
                ttl,
                restores: false,
                is_resumed,
                reclaims,
            }),
            Command::Release { token } => engine::Command::Remove(Removal {
                lock: self.lock(token),
                ttl,
                keep_for: None,
                waiter: None,
                is_awaited: true,
            }),
            Command::Reign { .. } => unreachable!("it is asked by words"),
        };
        let drift = Drift::from_factor(0.0).expect("a factor");
        engine::Request::to_all(&Rules::new(1, drift), Time::ZERO, command)
    }

    fn lock(&self, token: u8) -> LockId {
        let attributes = match self.scheme.kind {
            Kind::Plain | Kind::Queued => LockAttributes::default(),
            Kind::Fenced => LockAttributes {
                fence: Some(millis(100_000_000)),
                ..LockAttributes::default()
            },
            Kind::Permit => LockAttributes {
                share: Some(Share::Permit {
                    of: 1,
                    number: Some(0),
                }),
                ..LockAttributes::default()
            },
        };
        LockId {
            key: LOCK.into(),
            token: Token::new([token; Token::LEN]),
            attributes: attributes.unless_plain(),
        }
    }
}

/// The waiter of the client that made this attempt.
fn waiter(token: u8) -> Token {
    Token::new([token ^ 0x80; Token::LEN])
}

fn millis(millis: u64) -> Ttl {
    Ttl::from_duration(Duration::from_millis(millis)).expect("a ttl")
}
