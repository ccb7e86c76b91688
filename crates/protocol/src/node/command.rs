//! The encoding of requests, and the meaning of replies as votes. No other module knows either.

mod meaning;
mod queue;
mod shares;

pub use meaning::{Meaning, meaning};
pub(super) use queue::{Notification, name_of_channel, read_notification, reservation};
pub use queue::{RESERVED, is_reservation, read_left};
pub use shares::{SHARED, read_member};
pub(super) use shares::{member_of, requested_mode, requested_permit};

use super::script;
use super::server_error::quoted;
use crate::engine::{Action, LockAttributes, LockId, Question};
use crate::engine::{Request, Token, Ttl};
use crate::resp::{BULK_MAX, Reply, encode_command};
use std::borrow::Cow;
use std::io::Write;

/// The suffix that turns a lock's key into its counter's key. No lock's key may end with it.
pub const COUNTER_SUFFIX: &[u8] = b":redlatch:fence";

/// The longest key of a lock, in bytes, its prefix included: 63 KiB. A key is the name of a thing,
/// and bytes that wait for a silent node take memory. The keys that belong to a lock, such as its
/// queue, and messages that name it are up to 1 KiB longer, and every one must fit into a reply.
pub const KEY_MAX: usize = BULK_MAX - 1024;

/// How a request names a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// By its digest: short, but the node must know the script.
    Digest,
    /// By its source, which works on every node.
    Source,
}

/// The scripts that a node has run on this connection, and therefore knows.
///
/// A script that a node may not know is sent by its source, and so is a script that removes a lock,
/// once in each write. Sending a digest first works only while the client still reads the node's
/// answer: a caller stops waiting when a majority has answered, and a node that answers later that
/// it does not know the script would keep the key.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct KnownScripts(u32);

impl KnownScripts {
    /// The node has carried out this request, by a script if it needs one.
    pub(super) fn learn(&mut self, request: &Request) {
        self.0 |= Self::bit(request);
    }

    /// Is the script that carries out this request one of these?
    pub(super) fn has(self, request: &Request) -> bool {
        self.0 & Self::bit(request) != 0
    }

    /// The form in which a request is sent first.
    pub(super) fn form(self, request: &Request) -> Form {
        // A server may forget a script at any time: since Redis 7.4 and Valkey 8.1 it keeps no more
        // than 500 scripts that came by `EVAL`. A removal must work at once, because there may be
        // no thread left that sends it again.
        let is_known = !request.verb().is_removal() && self.has(request);
        if is_known || Self::bit(request) == 0 { Form::Digest } else { Form::Source }
    }

    /// The bit of the script that carries out this request. Zero if the request needs no script.
    fn bit(request: &Request) -> u32 {
        match (request.custom(), script::name(request)) {
            (Some(command), _) => 1 << (16 + command.script().1),
            (None, name) => name.map_or(0, |name| 1 << name as u32),
        }
    }
}

/// Has the lock one key, no counter, and one holder?
pub(in crate::node) fn is_plain(lock: &LockId) -> bool {
    !lock.has_more_keys() && lock.counters_ttl().is_none() && lock.share().is_none()
}

/// Appends `request` to `out`. A script repeats `number` in its answer, as proof that the answer
/// belongs to this command.
pub fn encode(request: &Request, form: Form, number: u64, out: &mut Vec<u8>) {
    let mut proof = [0; 20];
    if let Some(room) = script::room(request) {
        return room.call(request, form, decimal(number, &mut proof), out);
    }
    match &request.action {
        Action::Custom(command) => {
            script::call_custom(&**command, form, decimal(number, &mut proof), out);
        }
        Action::Acquire(new) => set(&new.lock, new.ttl, out),
        Action::Ping { .. } => encode_command(out, &[b"PING"]),
        Action::Ask(question) => encode_command(out, words_of(*question)),
        Action::Listen { step, .. } => queue::listen(*step, out),
        other => unreachable!("it takes a script: {other:?}"),
    }
}

/// The command that asks a question. Each section of `INFO` is asked for by itself, since older
/// servers take only one, and all sections together have no bound.
fn words_of(question: Question) -> &'static [&'static [u8]] {
    match question {
        Question::Memory => &[b"INFO", b"memory"],
        Question::Persistence => &[b"INFO", b"persistence"],
        Question::Replication => &[b"INFO", b"replication"],
        Question::Cluster => &[b"INFO", b"cluster"],
        Question::Fsync => &[b"CONFIG", b"GET", b"appendfsync"],
        Question::Snapshots => &[b"CONFIG", b"GET", b"save"],
        Question::MemoryLimit => &[b"CONFIG", b"GET", b"maxmemory*"],
        Question::Time => &[b"TIME"],
    }
}

/// Sets the key of a lock with one key and no counter, if the key does not exist.
fn set(lock: &LockId, ttl: Ttl, out: &mut Vec<u8>) {
    let mut digits = [0; 20];
    let ttl = decimal(ttl.as_millis(), &mut digits);
    encode_command(out, &[b"SET", &lock.key, &value_of(lock), b"NX", b"PX", ttl]);
}

/// The value of this lock's keys.
pub(in crate::node) fn value_of(lock: &LockId) -> Cow<'_, [u8]> {
    value(&lock.token, lock.attributes.as_deref())
}

/// The value of a lock's keys: the token, followed by the owner's label.
pub(in crate::node) fn value<'a>(
    token: &'a Token,
    attributes: Option<&LockAttributes>,
) -> Cow<'a, [u8]> {
    match attributes {
        Some(attributes) if !attributes.owner.is_empty() => {
            Cow::Owned([token.as_bytes(), &attributes.owner].concat())
        }
        _ => Cow::Borrowed(token.as_bytes()),
    }
}

pub(in crate::node) fn decimal(number: u64, digits: &mut [u8; 20]) -> &[u8] {
    let mut rest = &mut digits[..];
    write!(rest, "{number}").expect("a u64 has at most 20 digits");
    let unused = rest.len();
    &digits[..20 - unused]
}

/// Does the answer to this request prove that it belongs to this request? The answer to a plain
/// `SET` could belong to any other command.
pub(super) fn has_proof(request: &Request) -> bool {
    request.custom().is_some() || script::name(request).is_some()
}

/// A short description of a reply, for error messages.
pub(super) fn describe(reply: &Reply<'_>, secret: Option<&[u8]>) -> String {
    let quote = |kind: &str, bytes: &[u8]| format!("{kind} {}", quoted(bytes, secret));
    match reply {
        Reply::Simple(text) => quote("the status", text),
        Reply::Error(text) => quote("the error", text),
        Reply::Bulk(bytes) => quote("the string", bytes),
        Reply::Verbatim { text, .. } => quote("the text", text),
        Reply::BigNumber(digits) => quote("the big number", digits),
        Reply::Integer(number) => format!("the integer {number}"),
        Reply::Boolean(value) => format!("the boolean {value}"),
        Reply::Double(number) => format!("the double {number}"),
        Reply::Null => "null".to_owned(),
        Reply::NullArray => "a null array".to_owned(),
        Reply::Array(elements) => format!("an array of {}", elements.len()),
        Reply::Set(elements) => format!("a set of {}", elements.len()),
        Reply::Map(_) => "a map".to_owned(),
        Reply::Push(_) => "a push message".to_owned(),
    }
}

#[cfg(test)]
mod tests;
