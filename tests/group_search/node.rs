//! What a server does with a command: the library encodes the command, an embedded node that has
//! the keys of the search's server runs the library's own Lua, or Lua with a mistake, and the
//! library reads the answer. Transitions that were seen before cost a look at a table.

use crate::scheme::{Mistake, Scheme};
use models::{changed, words};
use redlatch_embedded::model::{
    ConnectionState, Keyspace, NodeOptions, OwnedReply, Protocol, Replication,
};
use redlatch_protocol::engine::{
    self, Before, Claim, Drift, Keep, LockId, ReignQuestion, ReignStep, Removal, Rules, Token, Ttl,
    Vote,
};
use redlatch_protocol::node::command::{Form, encode, read};
use redlatch_protocol::node::{MARKER, ReignAnswer, script};
use redlatch_protocol::resp::decode;
use redlatch_protocol::time::Time;
use std::collections::HashMap;
use std::rc::Rc;
use std::time::Duration;

const LOCK: &[u8] = b"lock";

/// A tick of the search, in milliseconds.
const TICK: u64 = 1_000;

/// The number that answers repeat.
const PROOF: u64 = 7;

pub(crate) fn at(tick: u8) -> Time {
    Time::from_millis(u64::from(tick) * TICK)
}

pub(crate) fn ticks(count: u8) -> Duration {
    Duration::from_millis(u64::from(count) * TICK)
}

/// The keys of a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Keys {
    pub(crate) lock: Option<Held>,
    /// The number of the text in it.
    pub(crate) marker: Option<u16>,
}

/// A lock of this token, until this tick.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Held {
    pub(crate) token: u8,
    pub(crate) until: u8,
}

/// What a server says about itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Said {
    pub(crate) run: u8,
    pub(crate) id: u8,
    pub(crate) is_replica: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Command {
    Claim {
        token: u8,
    },
    Keep {
        token: u8,
        reclaims: bool,
        is_resumed: bool,
    },
    Release {
        token: u8,
    },
    Greet {
        epoch: u8,
        nonce: u8,
    },
    Check,
}

impl Command {
    pub(crate) fn is_vote(self) -> bool {
        matches!(self, Self::Claim { .. } | Self::Keep { .. })
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Answer {
    Vote(bool),
    Reign(Rc<ReignAnswer>),
    /// The server takes no writes.
    Failed,
}

/// What the keys are after a command, and the answer.
type Done = (Keys, Answer);

/// What runs the commands of a search.
pub(crate) struct Node {
    keyspace: Keyspace,
    caller: ConnectionState,
    /// The digests of the scripts that run, by those of the library's.
    digests: HashMap<Vec<u8>, Vec<u8>>,
    /// Locks live for so many ticks.
    ttl: u8,
    markers: Vec<Vec<u8>>,
    seen: HashMap<(Keys, Said, u8, Command), Done>,
}

impl Node {
    pub(crate) fn new(scheme: &Scheme) -> Self {
        let ttl = scheme.ttl;
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
        let markers = Vec::new();
        let seen = HashMap::new();
        Self {
            keyspace,
            caller,
            digests,
            ttl,
            markers,
            seen,
        }
    }

    /// How many transitions are remembered.
    pub(crate) fn seen(&self) -> usize {
        self.seen.len()
    }

    /// The marker of a reign that has been known since the beginning.
    pub(crate) fn first_marker(&mut self, run: u8, id: u8, epoch: u8) -> u16 {
        self.marker(format!("redlatch1 {run} {id} {epoch} 0 0").as_bytes())
    }

    fn marker(&mut self, text: &[u8]) -> u16 {
        let known = self.markers.iter().position(|marker| marker == text);
        let number = known.unwrap_or_else(|| {
            self.markers.push(text.to_vec());
            self.markers.len() - 1
        });
        number as u16
    }

    /// The last word of a marker.
    pub(crate) fn nonce(&self, marker: u16) -> u8 {
        let text = std::str::from_utf8(&self.markers[usize::from(marker)]).expect("words");
        text.rsplit(' ')
            .next()
            .and_then(|nonce| nonce.parse().ok())
            .expect("a nonce")
    }

    /// Has a server with these keys carry out a command.
    pub(crate) fn run(&mut self, keys: Keys, said: Said, now: u8, command: Command) -> Done {
        let key = (keys, said, now, command);
        if let Some(done) = self.seen.get(&key) {
            return done.clone();
        }
        self.write(keys, said, now);
        let answer = self.send(&self.request(said.run, command), now);
        let done = (self.read(now), answer);
        self.seen.insert(key, done.clone());
        done
    }

    /// What the library sends.
    fn request(&self, run: u8, command: Command) -> engine::Request {
        // The last millisecond is not the lock's: it is gone at a whole tick.
        let ttl = millis(u64::from(self.ttl) * TICK - 1);
        let reign = |step| {
            engine::Command::Reign(ReignQuestion {
                key: MARKER.into(),
                acknowledged: None,
                step,
            })
        };
        let command = match command {
            Command::Claim { token } => engine::Command::Claim(Claim {
                lock: lock(token),
                ttl,
                fence: 0,
                before: Before::Nothing,
            }),
            Command::Keep {
                token,
                reclaims,
                is_resumed,
            } => engine::Command::Keep(Keep {
                lock: lock(token),
                ttl,
                restores: false,
                reclaims,
                is_resumed,
            }),
            Command::Release { token } => engine::Command::Remove(Removal {
                lock: lock(token),
                ttl,
                keep_for: None,
                waiter: None,
                is_awaited: true,
            }),
            Command::Greet { epoch, nonce } => reign(ReignStep::Greet {
                run_id: run.to_string().into(),
                epoch: epoch.into(),
                nonce: nonce.to_string().into(),
                last: "".into(),
            }),
            Command::Check => reign(ReignStep::Check),
        };
        let drift = Drift::from_factor(0.0).expect("a factor");
        engine::Request::to_all(&Rules::new(1, drift), Time::ZERO, command)
    }

    /// The answer to a command as the library sends it, to scripts that may be changed.
    fn send(&mut self, request: &engine::Request, now: u8) -> Answer {
        let mut bytes = Vec::new();
        encode(request, Form::Digest, PROOF, None, &mut bytes);
        let mut words = words(&bytes);
        if words[0] == b"EVALSHA" {
            words[1] = &self.digests[words[1]];
        }
        let reply = self.keyspace.execute(at(now), &mut self.caller, &words);
        let mut bytes = Vec::new();
        reply.encode(Protocol::Resp3, &mut bytes);
        let (reply, _) = decode(&bytes).expect("a reply").expect("all of it");
        let read = read(request, PROOF, &reply, None);
        let read = read.unwrap_or_else(|why| panic!("{request:?}: {why:?} of {reply:?}"));
        match read
            .said
            .and_then(|said| said.get::<ReignAnswer>().cloned())
        {
            Some(ReignAnswer::Greeted { marker, now }) => {
                let marker = of_this_reign(&marker).to_vec();
                Answer::Reign(Rc::new(ReignAnswer::Greeted { marker, now }))
            }
            Some(answer) => Answer::Reign(Rc::new(answer)),
            None => Answer::Vote(read.vote == Vote::Granted),
        }
    }

    /// The node has these keys, and no others, and is this server.
    fn write(&mut self, keys: Keys, said: Said, now: u8) {
        let mut ask = |words: &[&[u8]]| self.keyspace.execute(at(now), &mut self.caller, words);
        ask(&[b"FLUSHALL"]);
        if let Some(Held { token, until }) = keys.lock.filter(|lock| lock.until > now) {
            let left = u64::from(until - now) * TICK - 1;
            let value = value(token);
            ask(&[b"SET", LOCK, &value, b"PX", left.to_string().as_bytes()]);
        }
        if let Some(marker) = keys.marker {
            let text = &self.markers[usize::from(marker)];
            self.keyspace
                .execute(at(now), &mut self.caller, &[b"SET", MARKER, text]);
        }
        self.keyspace.replication = Replication {
            is_replica: said.is_replica,
            id: Some(said.id.to_string()),
            ..Replication::default()
        };
    }

    fn read(&mut self, now: u8) -> Keys {
        let mut keys = Keys::default();
        let mut marker = None;
        for key in self.keyspace.live_keys(at(now)) {
            let text = key.value.expect("a text");
            match (key.key, key.remaining) {
                (LOCK, Some(left)) => {
                    let left = left.as_millis() as u64 + 1;
                    assert_eq!(left % TICK, 0, "a lock ends at a whole tick");
                    let until = now + (left / TICK) as u8;
                    keys.lock = Some(Held {
                        token: text[0],
                        until,
                    });
                }
                (MARKER, _) => marker = Some(text.to_vec()),
                other => panic!("{other:?}"),
            }
        }
        keys.marker = marker.map(|text| self.marker(of_this_reign(&text)));
        keys
    }
}

/// A marker without the earlier reign that it tells of: on that, no vote depends.
fn of_this_reign(marker: &[u8]) -> &[u8] {
    let end = marker.windows(5).position(|word| word == b"after");
    &marker[..end.unwrap_or(marker.len())]
}

fn millis(millis: u64) -> Ttl {
    Ttl::from_duration(Duration::from_millis(millis)).expect("a ttl")
}

fn lock(token: u8) -> LockId {
    LockId {
        key: LOCK.into(),
        token: Token::new([token; Token::LEN]),
        attributes: None,
    }
}

/// What the key of a lock holds.
fn value(token: u8) -> Vec<u8> {
    vec![token; Token::LEN]
}
