//! The checker's input: locks, identified by their tokens, and the commands that nodes ran.

use redlatch_protocol::engine::Token;
use redlatch_protocol::node::command::{is_reservation, read_member};
use redlatch_protocol::node::script::{self, Script};
use redlatch_registers as registers;
use std::fmt;

/// A lock: the first eight bytes of its token, which identify it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Name(u64);

/// The lock with this token.
pub(crate) fn name(token: &[u8]) -> Name {
    let mut bytes = [0; 8];
    let size = token.len().min(8);
    bytes[..size].copy_from_slice(&token[..size]);
    Name(u64::from_be_bytes(bytes))
}

/// The beginning of a token, as shown in the trace.
pub(crate) fn hex(name: Name) -> String {
    format!("{:06x}", name.0 >> 40)
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex(*self))
    }
}

/// The purpose of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Acquires a lock, also by a handoff.
    Take,
    /// Enters a waiter into the lock's queue, and withdraws a failed attempt.
    Queue,
    Extend,
    /// Removes the client's own lock.
    Remove,
    /// Raises the counters of the client's own lock.
    Fence,
    /// Inspects any lock.
    Look,
    /// Removes any lock.
    Force,
}

/// A command about a lock, read from its words.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Command<'a> {
    pub(crate) kind: Kind,
    /// The locks' keys, without those of counters.
    pub(crate) keys: &'a [&'a [u8]],
    /// The lock that the command is about, if it names one.
    pub(crate) token: Option<Name>,
    /// The former lock, in a handoff.
    pub(crate) predecessor: Option<Name>,
}

/// The positions of a script's arguments after its keys. Later arguments are ignored.
#[derive(Debug)]
struct Shape {
    script: Script,
    kind: Kind,
    /// The position of the number of keys that are locks; without it, all keys are.
    locks: Option<usize>,
    predecessor: Option<usize>,
    token: Option<usize>,
}

const fn shape(script: Script, kind: Kind, words: [Option<usize>; 3]) -> Shape {
    let [locks, predecessor, token] = words;
    Shape {
        script,
        kind,
        locks,
        predecessor,
        token,
    }
}

/// All scripts but those for a forced release and for watching a key.
const SHAPES: [Shape; 12] = [
    shape(script::RELEASE, Kind::Remove, [None, None, Some(0)]),
    shape(script::GIVE, Kind::Remove, [None, None, Some(0)]),
    shape(script::KEEP, Kind::Extend, [None, None, Some(0)]),
    shape(script::CLAIM, Kind::Take, [Some(0), Some(1), Some(2)]),
    shape(script::FENCE, Kind::Fence, [Some(0), None, Some(1)]),
    shape(script::INSPECT, Kind::Look, [None, None, None]),
    shape(script::SCAN, Kind::Look, [None, None, None]),
    shape(script::QUEUE, Kind::Queue, [None, None, Some(2)]),
    shape(script::SHARE, Kind::Take, [None, None, Some(0)]),
    shape(script::KEEP_SHARED, Kind::Extend, [None, None, Some(1)]),
    shape(script::RELEASE_SHARED, Kind::Remove, [None, None, Some(0)]),
    shape(script::RELEASE_READER, Kind::Remove, [None, None, Some(0)]),
];

impl<'a> Command<'a> {
    pub(crate) fn of(words: &'a [&'a [u8]]) -> Option<Self> {
        let plain = |kind, keys, token: Option<&[u8]>| {
            Some(Self {
                kind,
                keys,
                token: token.map(name),
                predecessor: None,
            })
        };
        match words {
            [b"SET", _, token, ..] => plain(Kind::Take, &words[1..2], Some(token)),
            [b"DEL", keys @ ..] => plain(Kind::Force, keys, None),
            [b"EVAL" | b"EVALSHA", named, count, rest @ ..] => {
                let is_named = |script: &&Script| {
                    script.source.as_bytes() == *named || script.sha1.as_bytes() == *named
                };
                let script = script::ALL
                    .iter()
                    .chain(registers::script::ALL)
                    .find(is_named)
                    .expect("a script of the library");
                let of_locks_none = [
                    script::LISTEN,
                    script::PROOF,
                    script::REIGN,
                    script::CHECK,
                    script::REIGN_ACKNOWLEDGED,
                ];
                let is_idle = of_locks_none.contains(script);
                if is_idle || registers::script::ALL.contains(script) {
                    return None;
                }
                let (keys, words) = rest.split_at(number(count));
                match SHAPES.iter().find(|shape| shape.script == *script) {
                    Some(shape) => Some(Self::of_script(shape, keys, words)),
                    None => {
                        assert!(*script == script::REMOVE, "{} has no shape", script.sha1);
                        plain(Kind::Force, keys, None)
                    }
                }
            }
            _ => None,
        }
    }

    fn of_script(shape: &Shape, keys: &'a [&'a [u8]], words: &[&[u8]]) -> Self {
        let word = |index: Option<usize>| index.map(|index| words[index]);
        // The others are declared behind them.
        let most = match shape.script {
            it if it == script::KEEP => keys.len(),
            it if it == script::GIVE => keys.len().div_ceil(2),
            it if it == script::QUEUE => keys.len().div_ceil(6),
            _ => keys.len().min(1),
        };
        let locks = word(shape.locks).map_or(most, number);
        let predecessor =
            word(shape.predecessor).filter(|value| !value.is_empty() && !is_reservation(value));
        let named = |value| match shape.kind {
            Kind::Fence => name(value_of(value)),
            _ => name(value),
        };
        // Restoring a lock sets its keys.
        let is_restored = shape.kind == Kind::Extend && words.contains(&&b"restore"[..]);
        Self {
            kind: if is_restored { Kind::Take } else { shape.kind },
            keys: &keys[..locks],
            token: word(shape.token).map(named),
            predecessor: predecessor.map(name),
        }
    }

    /// The lock that it removes, if it names one.
    pub(crate) fn removed(&self) -> Option<Name> {
        if matches!(self.kind, Kind::Remove | Kind::Queue) {
            self.token
        } else {
            self.predecessor
        }
    }
}

/// The value of a lock, or of a share of it, which is named by its permit, a colon and its value.
fn value_of(named: &[u8]) -> &[u8] {
    let of_share = read_member(named).map(|(_, value)| value);
    of_share
        .filter(|value| value.len() >= Token::LEN)
        .unwrap_or(named)
}

fn number(word: &[u8]) -> usize {
    let text = std::str::from_utf8(word).expect("digits");
    text.parse().expect("a number of keys")
}

/// A lock or a share of one that a node keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Kept {
    pub(crate) token: Name,
    /// Until when, in true time.
    pub(crate) until: u64,
    /// With which permit, if it is a share with one.
    pub(crate) permit: Option<u32>,
}

/// The locks that a key belongs to: several if it is shared.
pub(crate) type Keeping = Vec<Kept>;

/// A command that a node has run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Execution<'a> {
    pub(crate) client: (usize, u64),
    pub(crate) node: usize,
    pub(crate) now: u64,
    pub(crate) command: &'a Command<'a>,
    /// The keys before and after it.
    pub(crate) keys: &'a [(Keeping, Keeping)],
    /// The reply, if that was yes or no.
    pub(crate) is_granted: Option<bool>,
    /// The permit in it.
    pub(crate) permit: Option<u32>,
}
