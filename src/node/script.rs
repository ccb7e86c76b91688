//! The Lua scripts that run on the nodes, where compare and change must be one step.
//!
//! A node caches each script under the SHA-1 of its source, so a request names the script by its
//! digest (`EVALSHA`). It sends the source (`EVAL`) only if the node has not run the script on this
//! connection, or answers that it does not know it; or if the request removes a lock, because there
//! may be no thread left that sends it again. A test checks the digests against the sources.
//!
//! The last argument of every script is a number that no other command of this client to this node
//! has, and the answer repeats it: `n` for yes, `-n` for no, or a list that begins with `n`. So a
//! reply that arrives twice is never taken for the answer to another command. (`SET`, which takes
//! a plain lock, has no room for such a proof.)
//!
//! `waiting.lua` is the beginning of every script that frees a lock. Its `reserve` sets the lock's
//! key to a reservation for the first waiter in the queue and notifies that waiter, and tells the
//! next when to ask; entries of waiters that nobody hears are removed. `sharing.lua` is the
//! beginning of those that concern shares.
//!
//! For a lock with one key that nobody has queued for, [`RELEASE`] does the same as [`GIVE`]. For a
//! reader that did not wait, [`RELEASE_READER`] does the same as [`RELEASE_SHARED`], and
//! `share_reader.lua` the same as the rest of [`SHARE`]. A special script exists only if acquiring
//! and releasing, as a client measures it, takes more than 3 % longer without it. Here are medians
//! of the ratios of 101 alternating blocks of 300 pairs on three servers (redis-server 7.0.15), in
//! two runs each:
//!
//! | special | without it |
//! |---|---|
//! | `release.lua` | 1.04, 1.06: a release carries its source, whose every byte the server hashes |
//! | `release_reader.lua` | 1.09, 1.09 |
//! | `share_reader.lua` in `share.lua` | 1.10, 1.12 |
//!
//! Each script has a room, a file of its own below this one: the requests that it carries out, its
//! arguments, and the meaning of its answer; beside that, its Lua, and why it may arrive late. A
//! new script is a new room, and a line in the list of `rooms!`.

mod sha1;

use super::command::{COUNTER_SUFFIX, Form, Meaning, decimal, requested_permit, value_of};
use crate::engine::{Action, LockId, Removal, Request, Token, Ttl, Vote};
use crate::resp::{Elements, Reply, encode_command, encode_words};

/// The most bytes of a value that [`INSPECT`] returns: more than the value of any lock has.
pub const SHOWN_MAX: usize = 1024;

/// A script and its digest.
#[derive(Clone, Copy, Debug, Eq)]
#[non_exhaustive]
pub struct Script {
    /// The Lua source, byte for byte as it is sent.
    pub source: &'static str,
    /// The SHA-1 of the source, in lower-case hexadecimal.
    pub sha1: &'static str,
}

/// Compares the digests only: scripts are compared for each command, and a digest is short.
impl PartialEq for Script {
    fn eq(&self, other: &Self) -> bool {
        self.sha1 == other.sha1
    }
}

/// A script that consists of these files.
macro_rules! script {
    ($($file:literal),+) => {{
        const SOURCE: &str = concat!($(include_str!($file)),+);
        const DIGEST: [u8; 40] = super::sha1::hex(SOURCE.as_bytes());
        let Ok(sha1) = std::str::from_utf8(&DIGEST) else { panic!("digits are ASCII") };
        Script { source: SOURCE, sha1 }
    }};
}

/// What belongs to one script.
pub(super) struct Room {
    pub(super) script: Script,
    /// Does the script carry out this request?
    is_for: fn(&Request) -> bool,
    /// Appends the call for such a request.
    encode: fn(&Request, Call<'_>, &mut Vec<u8>),
    /// The meaning of the answer to such a request, if it is one to that with this number.
    pub(super) read: fn(&Request, i64, &Reply<'_>) -> Option<Meaning>,
}

/// Names the rooms, and the constants of their scripts.
macro_rules! rooms {
    ($($room:ident $script:ident,)+) => {
        $(mod $room;)+
        $(pub use $room::$script;)+

        /// Every script of this library.
        pub const ALL: &[Script] = &[$($script),+];

        #[cfg(test)]
        const NAMES: &[&str] = &[$(stringify!($room)),+];

        const ROOMS: &[Room] = &[$($room::ROOM),+];

        #[doc = concat!(
            include_str!("late_arrivals.md"),
            $(include_str!(concat!("script/", stringify!($room), ".md"))),+
        )]
        pub const LATE_ARRIVALS: &str = concat!(
            include_str!("late_arrivals.md"),
            $(include_str!(concat!("script/", stringify!($room), ".md"))),+
        );
    };
}

rooms! {
    claim CLAIM,
    keep KEEP,
    release RELEASE,
    give GIVE,
    fence FENCE,
    queue QUEUE,
    listen LISTEN,
    share SHARE,
    extend_shared EXTEND_SHARED,
    restore_shared RESTORE_SHARED,
    release_shared RELEASE_SHARED,
    release_reader RELEASE_READER,
    remove REMOVE,
    inspect INSPECT,
    scan SCAN,
}

/// The place in [`ALL`] of the script that carries out this request, if it takes one.
pub(super) fn place(request: &Request) -> Option<usize> {
    ROOMS.iter().position(|room| (room.is_for)(request))
}

/// The room of the script that carries out this request, if it takes one.
pub(super) fn room(request: &Request) -> Option<&'static Room> {
    place(request).map(|place| &ROOMS[place])
}

impl Room {
    /// Appends the call of the script for this request, with this number.
    pub(super) fn call(&self, request: &Request, form: Form, number: &[u8], out: &mut Vec<u8>) {
        let name: (&[u8], &[u8]) = match form {
            Form::Digest => (b"EVALSHA", self.script.sha1.as_bytes()),
            Form::Source => (b"EVAL", self.script.source.as_bytes()),
        };
        (self.encode)(request, Call { name, number }, out);
    }
}

/// A call of a script.
#[derive(Clone, Copy)]
struct Call<'a> {
    /// The command, and the script's digest or source.
    name: (&'static [u8], &'static [u8]),
    /// The number that the script's answer must begin with.
    number: &'a [u8],
}

impl Call<'_> {
    /// Appends the call with the keys of a lock, the keys of its counters, and these arguments.
    fn run(self, lock: &LockId, counters: &[Vec<u8>], arguments: &[&[u8]], out: &mut Vec<u8>) {
        let mut digits = [0; 20];
        let count = lock.keys().count() + counters.len();
        let (verb, name) = self.name;
        let words = [verb, name, decimal(count as u64, &mut digits)].into_iter();
        let words = words.chain(lock.keys()).chain(counters.iter().map(Vec::as_slice));
        let words = words.chain(arguments.iter().copied()).chain([self.number]);
        encode_words(out, 4 + count + arguments.len(), words);
    }

    /// Appends the call with these keys and arguments.
    fn run_on(self, keys: &[&[u8]], arguments: &[&[u8]], out: &mut Vec<u8>) {
        let mut digits = [0; 20];
        let (verb, name) = self.name;
        let name = [verb, name, decimal(keys.len() as u64, &mut digits)];
        encode_command(out, &[&name, keys, arguments, &[self.number]].concat());
    }
}

/// The removal that is asked for, if one is.
fn removal(request: &Request) -> Option<&Removal> {
    match &request.action {
        Action::Release(removal) | Action::Undo(removal) => Some(removal),
        _ => None,
    }
}

/// The name of a waiter in a script's arguments.
fn name_of(waiter: Option<&Token>) -> &[u8] {
    waiter.map_or(&[], |waiter| waiter.as_bytes())
}

/// The counters' keys, if the lock is fenced.
fn counters(lock: &LockId) -> Vec<Vec<u8>> {
    let keys = lock.keys().filter(|_| lock.counters_ttl().is_some());
    keys.map(|key| [key, COUNTER_SUFFIX].concat()).collect()
}

/// The ttl of the counters, in milliseconds.
fn ttl_of_counters(lock: &LockId) -> u64 {
    lock.counters_ttl().map_or(0, Ttl::as_millis)
}

/// Appends a call with a share and its ttl.
fn keep_share(call: Call<'_>, lock: &LockId, ttl: Ttl, out: &mut Vec<u8>) {
    let mut millis = [0; 20];
    let permit = lock.share().map_or_else(String::new, requested_permit);
    let ttl = decimal(ttl.as_millis(), &mut millis);
    call.run(lock, &[], &[permit.as_bytes(), &value_of(lock), ttl], out);
}

/// The meaning of the answer of a script that grants with its number and refuses with its negative.
fn yes_or_no(number: i64, reply: &Reply<'_>) -> Option<Meaning> {
    let is_yes = *reply == Reply::Integer(number);
    if is_yes { Some(Meaning::Vote(Vote::Granted)) } else { refusal(number, reply) }
}

/// A refusal: a script refuses with the negative of its number.
fn refusal(number: i64, reply: &Reply<'_>) -> Option<Meaning> {
    (*reply == Reply::Integer(-number)).then_some(Meaning::Vote(Vote::Refused))
}

/// The elements that follow the number in a script's list.
fn list<'a>(number: i64, reply: &Reply<'a>) -> Option<[Option<Reply<'a>>; 3]> {
    let Reply::Array(list) = reply else { return None };
    let mut elements = list.iter();
    let is_answer = list.len() <= 4 && elements.next() == Some(Reply::Integer(number));
    is_answer.then(|| [elements.next(), elements.next(), elements.next()])
}

/// The elements of a list that comes in parts, none of which is longer than a list may be.
fn elements_of_parts<'a>(parts: &Elements<'a>) -> Option<Vec<Reply<'a>>> {
    let mut elements = Vec::new();
    for part in parts.iter() {
        let Reply::Array(part) = part else { return None };
        elements.extend(part.iter());
    }
    Some(elements)
}

#[cfg(test)]
mod tests;
