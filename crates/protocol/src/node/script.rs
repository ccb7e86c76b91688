//! The Lua scripts that run on the nodes, where compare and change must be one step.
//!
//! A node caches each script under the SHA-1 of its source, so a request names the script by its
//! digest (`EVALSHA`). It sends the source (`EVAL`) only if the node has not run the script on this
//! connection, or answers that it does not know it; or if the request removes a lock and the node
//! has not run the script within the last second, because no thread may read soon that it has
//! forgotten it. A test checks the digests against the sources.
//!
//! The last argument of every script is a number that no other command of this client to this node
//! has, and the answer repeats it: `n` for yes, `-n` for no, or a list that begins with `n`. So a
//! reply that arrives twice is never taken for the answer to another command. (`SET`, which takes
//! a plain lock, has no room for such a proof.)
//!
//! A call declares the keys that its script touches, as some servers ask for: first the lock's
//! keys, then for each of them its counter if the lock is fenced, then the other keys that belong
//! to it, which the scripts name themselves. Only the entries of waiters are not declared: who else
//! waits is not known before. A script also does its work for who declares only the lock's keys and
//! their counters.
//!
//! The files say what their scripts do, with which arguments, and what each answers. `waiting.lua`
//! is the beginning of every script that frees a lock, `sharing.lua` of those that concern shares.
//! The comments, indents and empty lines of the files are not sent.
//!
//! For a lock with one key that nobody has queued for, [`RELEASE`] does the same as [`GIVE`]. For a
//! reader that did not wait, [`RELEASE_READER`] does the same as [`RELEASE_SHARED`], and
//! `share_reader.lua` the same as the rest of [`SHARE`]. A special script exists only if acquiring
//! and releasing, as a client measures it, takes more than 3 % longer without it. Here are medians
//! of the ratios of 151 alternating blocks of 150 pairs on three servers (redis-server 7.0.15), in
//! two runs each, when every release carried its source:
//!
//! | special | without it |
//! |---|---|
//! | `release.lua` | 1.06, 1.03 |
//! | `release_reader.lua` | 1.11, 1.10 |
//! | `share_reader.lua` in `share.lua` | 1.09, 1.14 |
//!
//! What a request takes is a `NodeCommand`, one type in one file below this one: the arguments of
//! its scripts, and the meaning of their answers. A new command is a new file, a variant of
//! `Command`, a line in `of_node`, and its Lua beside it, with a line in the table [`scripts!`].
//! Other crates have tables of their own for custom commands.
//!
//! # Commands that arrive late
//!
//! A connection that the client gave up may deliver its commands seconds later, after commands on
//! its successor, and more than once. So each command is harmless whenever and however often it is
//! carried out: it compares with a value that is used for one lock only, or it only ever extends a
//! ttl, or it only ever raises a number. Each script says why it is ("Late, or once more"), for
//! each thing that is done by it: `Acquire`, `Handoff` and `Turn` are claims, `Extend` and
//! `Restore` keep a lock, `Release` and `Undo` remove one. The other commands:
//!
//! - `Acquire`, if it claims a plain lock by `SET NX`, takes no other lock's key. After the release
//!   of the lock it leaves a key with a token that no client holds, until its ttl has passed.
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

mod claim;
mod fence;
mod keep;
mod listen;
mod plain;
#[cfg(feature = "diagnostics")]
mod question;
mod queue;
#[cfg(feature = "groups")]
mod reign;
mod removal;
mod sha1;
mod share;

use super::GroupOptions;
use super::command::{Form, NodeReply};
use super::node_error::NodeError;
pub use crate::engine::Script;
use crate::engine::{Command, CustomCommand, LockId, Token, Ttl, Vote};
use crate::resp::{Elements, Reply, Word, encode_words};
pub use listen::is_subscribed;
#[cfg(feature = "groups")]
pub use reign::MarkerChange;
pub use sha1::{hex as sha1, stripped};
use std::sync::Arc;
use std::time::Duration;

/// The table of a crate's scripts: each with its name and the files that it consists of, whose
/// paths are relative to the file with the table. They are numbered from the first number on, and
/// `NEXT` is the number behind the last.
#[macro_export]
macro_rules! scripts {
    (@from $number:expr;) => {
        /// The first number that is free.
        pub const NEXT: u32 = $number;
        const _: () = assert!(NEXT <= u32::BITS, "the scripts that a node knows are bits");
    };
    (@from $number:expr; $name:ident: $($file:literal),+; $($rest:tt)*) => {
        pub const $name: $crate::engine::Script = {
            const FILES: &str = concat!($(include_str!($file)),+);
            const LENGTH: usize = $crate::node::script::stripped::<0>(FILES).1;
            const SOURCE: [u8; LENGTH] = $crate::node::script::stripped(FILES).0;
            const DIGEST: [u8; 40] = $crate::node::script::sha1(&SOURCE);
            let Ok(source) = std::str::from_utf8(&SOURCE) else { panic!("spaces are ASCII") };
            let Ok(sha1) = std::str::from_utf8(&DIGEST) else { panic!("digits are ASCII") };
            $crate::engine::Script { source, sha1, number: $number }
        };
        $crate::node::script::scripts!(@from $number + 1; $($rest)*);
    };
    ($first:expr; $($name:ident: $($file:literal),+;)+) => {
        $crate::node::script::scripts!(@from $first; $($name: $($file),+;)+);

        /// All of them.
        pub const ALL: &[$crate::engine::Script] = &[$($name),+];
    };
}
pub use scripts;

scripts! { 0;
    CLAIM: "script/counters.lua", "script/claim.lua";
    KEEP: "script/keep.lua";
    RELEASE: "script/release.lua", "script/waiting.lua", "script/release_waited_for.lua";
    GIVE: "script/waiting.lua", "script/give.lua";
    FENCE: "script/counters.lua", "script/fence.lua";
    QUEUE: "script/waiting.lua", "script/sharing.lua", "script/holding.lua", "script/queue.lua";
    LISTEN: "script/listen.lua";
    SHARE: "script/share_reader.lua", "script/waiting.lua", "script/sharing.lua",
        "script/holding.lua", "script/counters.lua", "script/share.lua";
    KEEP_SHARED: "script/waiting.lua", "script/sharing.lua", "script/holding.lua",
        "script/keep_shared.lua";
    RELEASE_SHARED: "script/waiting.lua", "script/sharing.lua", "script/release_shared.lua";
    RELEASE_READER: "script/waiting.lua", "script/release_reader.lua";
    REIGN: "script/reign.lua";
    CHECK: "script/check.lua";
    PROOF: "script/proof.lua";
    REMOVE: "script/waiting.lua", "script/sharing.lua", "../inspect/remove.lua";
    INSPECT: "../inspect/inspect.lua";
    SCAN: "../inspect/scan.lua";
    REIGN_ACKNOWLEDGED: "script/reign_acknowledged.lua";
}

/// What a request asks of a node, as it is written and answered.
pub(super) trait NodeCommand {
    /// The script that carries it out, if it takes one.
    fn script(&self) -> Option<Script> {
        None
    }

    /// Appends the command.
    fn encode(&self, call: ScriptCall<'_>, out: &mut Vec<u8>);

    /// Reads a reply, if it is an answer to this command with this number. Texts in errors do not
    /// contain `secret`. Most scripts answer yes or no.
    fn read(&self, number: i64, reply: &Reply<'_>, _secret: Option<&[u8]>) -> Option<NodeReply> {
        vote(number, reply).map(NodeReply::of)
    }
}

impl NodeCommand for Arc<dyn CustomCommand> {
    fn script(&self) -> Option<Script> {
        Some(CustomCommand::script(&**self))
    }

    fn encode(&self, call: ScriptCall<'_>, out: &mut Vec<u8>) {
        let script = CustomCommand::script(&**self);
        self.call(&mut |keys, arguments| call.run_on(script, keys, arguments, out));
    }

    fn read(&self, number: i64, reply: &Reply<'_>, _: Option<&[u8]>) -> Option<NodeReply> {
        Some(match CustomCommand::read(&**self, number, reply)? {
            Ok((vote, said)) => NodeReply::saying(vote, said),
            Err(why) => NodeReply::failed(NodeError::NoVote(why)),
        })
    }
}

impl Command {
    /// The command as it is written and answered.
    pub(super) fn of_node(&self) -> &dyn NodeCommand {
        match self {
            Self::Claim(claim) => claim,
            Self::Keep(keep) => keep,
            Self::Remove(removal) => removal,
            Self::Fence(fence) => fence,
            Self::Queue(entry) => entry,
            Self::Ping(ping) => ping,
            #[cfg(feature = "diagnostics")]
            Self::Ask(question) => question,
            Self::Listen(listen) => listen,
            #[cfg(feature = "groups")]
            Self::Reign(question) => question,
            Self::Custom(command) => command,
        }
    }
}

/// How a script is called.
#[derive(Clone, Copy)]
pub(super) struct ScriptCall<'g> {
    pub(super) form: Form,
    /// Set if the node is a replicated group.
    pub(super) group: Option<&'g GroupOptions>,
}

impl<'g> ScriptCall<'g> {
    /// What stands before each key, so that all of a node's keys are in one slot of a cluster.
    pub(super) fn tag(self) -> &'g [u8] {
        self.group.map_or(&[], |group| group.tag())
    }

    /// For how many milliseconds the node keeps what is to last for this time: in a group, longer
    /// by as much as the clock of its next master may be ahead.
    pub(super) fn kept_for(self, ttl: Ttl) -> u64 {
        let skew = self.group.map_or(Duration::ZERO, GroupOptions::skew);
        ttl.as_millis() + skew.as_millis() as u64
    }

    /// Appends the call with the keys of a lock, those that end with each of these suffixes, and
    /// these arguments.
    fn run(
        self,
        script: Script,
        lock: &LockId,
        suffixes: &[&[u8]],
        arguments: &[Word<'_>],
        out: &mut Vec<u8>,
    ) {
        let count = lock.keys().count() * (1 + suffixes.len());
        let derived = |suffix| lock.keys().map(move |key| Word::Derived(key, suffix));
        let keys = lock
            .keys()
            .map(Word::Key)
            .chain(suffixes.iter().copied().flat_map(derived));
        self.write(script, (count, keys), arguments.iter().copied(), out);
    }

    /// Appends the call with these keys and arguments.
    fn run_on<'a>(
        self,
        script: Script,
        keys: &[&'a [u8]],
        arguments: &[&'a [u8]],
        out: &mut Vec<u8>,
    ) {
        let keys_of = (keys.len(), keys.iter().map(|key| Word::Key(key)));
        let words = arguments.iter().map(|word| Word::Bytes(word));
        self.write(script, keys_of, words, out);
    }

    fn write<'a>(
        self,
        script: Script,
        (count, keys): (usize, impl Iterator<Item = Word<'a>>),
        arguments: impl ExactSizeIterator<Item = Word<'a>>,
        out: &mut Vec<u8>,
    ) {
        let (verb, name) = match self.form {
            Form::Digest => ("EVALSHA", script.sha1),
            Form::Source => ("EVAL", script.source),
        };
        let words = [verb, name]
            .map(|word| Word::Bytes(word.as_bytes()))
            .into_iter();
        let words = words.chain([Word::Number(count as u64)]);
        let all = 4 + count + arguments.len();
        encode_words(out, all, self.tag(), words.chain(keys).chain(arguments));
    }
}

// What stands behind a lock's key in the names of the other keys that belong to it.

/// The queue: the waiters, by their numbers.
pub const QUEUE_SUFFIX: &[u8] = b":redlatch:queue";
/// The holders of shares, by when they end.
pub const HOLDERS_SUFFIX: &[u8] = b":redlatch:holders";
/// The waiters that were called to a share, by when they are too late.
pub const CALLED_SUFFIX: &[u8] = b":redlatch:called";
/// The holders of permits, by their permits.
pub const PERMITS_SUFFIX: &[u8] = b":redlatch:permits";
/// The number of the last waiter that has left with a share.
pub const FLOOR_SUFFIX: &[u8] = b":redlatch:floor";

/// The suffixes of the keys that a script touches that gives back a share, or removes any lock.
pub const OF_SHARES: &[&[u8]] = &[QUEUE_SUFFIX, HOLDERS_SUFFIX, CALLED_SUFFIX, PERMITS_SUFFIX];

/// The name of a waiter in a script's arguments.
fn name_of(waiter: Option<&Token>) -> &[u8] {
    waiter.map_or(&[], |waiter| waiter.as_bytes())
}

/// The suffixes, of which the first is that of the counters' keys: without it if the lock is not
/// fenced.
fn of_fenced<'a, 'b>(lock: &LockId, suffixes: &'a [&'b [u8]]) -> &'a [&'b [u8]] {
    &suffixes[usize::from(lock.counters_ttl().is_none())..]
}

/// The ttl of the counters, in milliseconds. They end no sooner than a lock.
fn ttl_of_counters(lock: &LockId, call: ScriptCall<'_>) -> u64 {
    lock.counters_ttl().map_or(0, |ttl| call.kept_for(ttl))
}

/// The answer of a script that says yes with its number and no with its negative.
pub fn vote(number: i64, reply: &Reply<'_>) -> Option<Vote> {
    match reply {
        Reply::Integer(answer) if *answer == number => Some(Vote::Granted),
        Reply::Integer(answer) if *answer == -number => Some(Vote::Refused),
        _ => None,
    }
}

/// A refusal: a script refuses with the negative of its number.
fn refusal(number: i64, reply: &Reply<'_>) -> Option<NodeReply> {
    (*reply == Reply::Integer(-number)).then(|| NodeReply::of(Vote::Refused))
}

/// The elements that follow the number in a script's list.
pub fn list<'a>(number: i64, reply: &Reply<'a>) -> Option<[Option<Reply<'a>>; 3]> {
    let Reply::Array(list) = reply else {
        return None;
    };
    let mut elements = list.iter();
    let is_answer = list.len() <= 4 && elements.next() == Some(Reply::Integer(number));
    is_answer.then(|| [elements.next(), elements.next(), elements.next()])
}

/// The elements of a list that comes in parts, none of which is longer than a list may be.
pub fn elements_of_parts<'a>(parts: &Elements<'a>) -> Option<Vec<Reply<'a>>> {
    let mut elements = Vec::new();
    for part in parts.iter() {
        let Reply::Array(part) = part else {
            return None;
        };
        elements.extend(part.iter());
    }
    Some(elements)
}

#[cfg(test)]
mod tests;
