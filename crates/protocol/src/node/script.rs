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
//! The files say what their scripts do, with which arguments, and what each answers. `waiting.lua`
//! is the beginning of every script that frees a lock, `sharing.lua` of those that concern shares.
//! The comments, indents and empty lines of the files are not sent: every release carries its
//! source.
//!
//! For a lock with one key that nobody has queued for, [`RELEASE`] does the same as [`GIVE`]. For a
//! reader that did not wait, [`RELEASE_READER`] does the same as [`RELEASE_SHARED`], and
//! `share_reader.lua` the same as the rest of [`SHARE`]. A special script exists only if acquiring
//! and releasing, as a client measures it, takes more than 3 % longer without it. Here are medians
//! of the ratios of 151 alternating blocks of 150 pairs on three servers (redis-server 7.0.15), in
//! two runs each:
//!
//! | special | without it |
//! |---|---|
//! | `release.lua` | 1.06, 1.03: a release carries its source, whose every byte the server hashes |
//! | `release_reader.lua` | 1.11, 1.10 |
//! | `share_reader.lua` in `share.lua` | 1.09, 1.14 |
//!
//! Each script has a room, a file of its own below this one: its arguments, and the meaning of its
//! answer; and beside that, its Lua. A new script is a new room, a line in the list of `rooms!`,
//! and the requests that it carries out, in `name`. Custom commands bring theirs along.
//!
//! # Commands that arrive late
//!
//! A connection that the client gave up may deliver its commands seconds later, after commands on
//! its successor, and more than once. So each command is harmless whenever and however often it is
//! carried out: it compares with a value that is used for one lock only, or it only ever extends a
//! ttl, or it only ever raises a number. Each script says why it is ("Late, or once more"). The
//! other commands:
//!
//! - `Acquire` of a plain lock, by `SET NX`, takes no other lock's key. After the release of the
//!   lock it leaves a key with a token that no client holds, until its ttl has passed.
//! - `Ping`, `Ask` and `Listen` (`PING`, `INFO`, `CONFIG GET`, `TIME`; `SUBSCRIBE`, `CLIENT
//!   TRACKING`, `CLIENT CACHING`) change nothing. A node notifies on the connection that they came
//!   on.
//! - The greeting (`AUTH`, `HELLO`, `SELECT`, `CLIENT SETNAME`, `INFO`) concerns its own
//!   connection, which is not used any more. The id in its `CLIENT KILL ID` is never given again
//!   by the same run of the server, the only one that this connection leads to.
//!
//! The remaining effects are a key that no client holds, which blocks others on that node until its
//! ttl has passed, and a waiter that no client knows, for which that node reserves the lock until
//! the waiter's lease has passed. If the server lets the client end the connections that it gave
//! up, they do not happen either.

mod sha1;

use super::command::{COUNTER_SUFFIX, Form, Meaning, decimal, is_plain};
pub use crate::engine::Script;
use crate::engine::{
    Action, CustomCommand, Listen, LockId, Removal, Request, Share, Token, Ttl, Vote,
};
use crate::resp::{Elements, Reply, encode_command, encode_words};
pub use sha1::hex as sha1;
pub use sha1::stripped;

/// A script that consists of these files, whose paths are relative to the file that names them.
#[macro_export]
macro_rules! lua_script {
    ($($file:literal),+) => {{
        const FILES: &str = concat!($(include_str!($file)),+);
        const LENGTH: usize = $crate::node::script::stripped::<0>(FILES).1;
        const SOURCE: [u8; LENGTH] = $crate::node::script::stripped(FILES).0;
        const DIGEST: [u8; 40] = $crate::node::script::sha1(&SOURCE);
        let Ok(source) = std::str::from_utf8(&SOURCE) else { panic!("spaces are ASCII") };
        let Ok(sha1) = std::str::from_utf8(&DIGEST) else { panic!("digits are ASCII") };
        $crate::engine::Script::new(source, sha1)
    }};
}
pub use lua_script;

/// Repeats the number of the command, and does nothing with the key.
pub const PROOF: Script = lua_script!("script/proof.lua");

/// What belongs to one script.
pub(super) struct Room {
    script: Script,
    /// Appends the call for such a request.
    encode: fn(&Request, Call<'_>, &mut Vec<u8>),
    /// The meaning of the answer to such a request, if it is one to that with this number.
    pub(super) read: fn(&Request, i64, &Reply<'_>) -> Option<Meaning>,
}

/// Names the rooms, and the constants of their scripts.
macro_rules! rooms {
    ($($room:ident $name:ident $script:ident,)+) => {
        $(mod $room;)+
        $(pub use $room::$script;)+

        /// Every script of this library.
        pub const ALL: &[Script] = &[$($script),+];

        /// The name and the file of each.
        #[cfg(test)]
        const FILES: &[(&str, &str)] =
            &[$((
                stringify!($room),
                include_str!(concat!("script/", stringify!($room), ".lua")),
            )),+];

        /// The name of a script.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(super) enum Name {
            $($name),+
        }

        impl Name {
            pub(super) fn room(self) -> &'static Room {
                match self {
                    $(Self::$name => &$room::ROOM),+
                }
            }
        }
    };
}

rooms! {
    claim Claim CLAIM,
    keep Keep KEEP,
    release Release RELEASE,
    give Give GIVE,
    fence Fence FENCE,
    queue Queue QUEUE,
    listen Listen LISTEN,
    share Share SHARE,
    keep_shared KeepShared KEEP_SHARED,
    release_shared ReleaseShared RELEASE_SHARED,
    release_reader ReleaseReader RELEASE_READER,
}

/// The name of the script that carries out this request, if it takes one.
pub(super) fn name(request: &Request) -> Option<Name> {
    let is_shared = request.share().is_some();
    let one_of = |shared, exclusive| Some(if is_shared { shared } else { exclusive });
    match &request.action {
        Action::Acquire(new) if is_plain(&new.lock) => None,
        Action::Acquire(_) | Action::Handoff { .. } | Action::Turn { .. } => {
            one_of(Name::Share, Name::Claim)
        }
        Action::Extend { .. } | Action::Restore { .. } => one_of(Name::KeepShared, Name::Keep),
        Action::Release(removal) | Action::Undo(removal) => Some(name_of_removal(removal)),
        Action::Fence { .. } => Some(Name::Fence),
        Action::Queue(_) => Some(Name::Queue),
        Action::Listen { step: Listen::Read(_), .. } => Some(Name::Listen),
        Action::Listen { .. } | Action::Ping { .. } => None,
        Action::Ask(_) | Action::Custom(_) => None,
    }
}

/// The special scripts remove a lock with one key, or a reader's share, if no waiter leaves with it
/// and it does not stay taken.
fn name_of_removal(removal: &Removal) -> Name {
    let is_special = removal.waiter.is_none() && removal.linger.is_none();
    match removal.lock.share() {
        None if is_special && !removal.lock.has_more_keys() => Name::Release,
        None => Name::Give,
        Some(Share::Reader) if is_special => Name::ReleaseReader,
        Some(_) => Name::ReleaseShared,
    }
}

/// The room of the script that carries out this request, if it takes one.
pub(super) fn room(request: &Request) -> Option<&'static Room> {
    name(request).map(Name::room)
}

impl Room {
    /// Appends the call of the script for this request, with this number.
    pub(super) fn call(&self, request: &Request, form: Form, number: &[u8], out: &mut Vec<u8>) {
        (self.encode)(request, Call::new(self.script, form, number), out);
    }
}

/// Appends the call of the script of a custom command, with this number.
pub(super) fn call_custom(
    command: &dyn CustomCommand,
    form: Form,
    number: &[u8],
    out: &mut Vec<u8>,
) {
    let call = Call::new(command.script().0, form, number);
    command.call(&mut |keys, arguments| call.run_on(keys, arguments, out));
}

/// A call of a script.
#[derive(Clone, Copy)]
struct Call<'a> {
    /// The command, and the script's digest or source.
    name: (&'static [u8], &'static [u8]),
    /// The number that the script's answer must begin with.
    number: &'a [u8],
}

impl<'a> Call<'a> {
    fn new(script: Script, form: Form, number: &'a [u8]) -> Self {
        let name: (&[u8], &[u8]) = match form {
            Form::Digest => (b"EVALSHA", script.sha1.as_bytes()),
            Form::Source => (b"EVAL", script.source.as_bytes()),
        };
        Self { name, number }
    }

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

/// The lock that is extended or given again, its ttl, and the word for which of the two.
fn kept(request: &Request) -> (&LockId, Ttl, &'static [u8]) {
    match &request.action {
        Action::Extend { lock, ttl } => (lock, *ttl, b""),
        Action::Restore { lock, ttl } => (lock, *ttl, b"restore"),
        other => unreachable!("nothing is kept: {other:?}"),
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

/// The answer of a script that says yes with its number and no with its negative.
pub fn vote(number: i64, reply: &Reply<'_>) -> Option<Vote> {
    match reply {
        Reply::Integer(answer) if *answer == number => Some(Vote::Granted),
        Reply::Integer(answer) if *answer == -number => Some(Vote::Refused),
        _ => None,
    }
}

fn yes_or_no(_: &Request, number: i64, reply: &Reply<'_>) -> Option<Meaning> {
    vote(number, reply).map(Meaning::Vote)
}

/// A refusal: a script refuses with the negative of its number.
fn refusal(number: i64, reply: &Reply<'_>) -> Option<Meaning> {
    (*reply == Reply::Integer(-number)).then_some(Meaning::Vote(Vote::Refused))
}

/// The elements that follow the number in a script's list.
pub fn list<'a>(number: i64, reply: &Reply<'a>) -> Option<[Option<Reply<'a>>; 3]> {
    let Reply::Array(list) = reply else { return None };
    let mut elements = list.iter();
    let is_answer = list.len() <= 4 && elements.next() == Some(Reply::Integer(number));
    is_answer.then(|| [elements.next(), elements.next(), elements.next()])
}

/// The elements of a list that comes in parts, none of which is longer than a list may be.
pub fn elements_of_parts<'a>(parts: &Elements<'a>) -> Option<Vec<Reply<'a>>> {
    let mut elements = Vec::new();
    for part in parts.iter() {
        let Reply::Array(part) = part else { return None };
        elements.extend(part.iter());
    }
    Some(elements)
}

#[cfg(test)]
mod tests;
