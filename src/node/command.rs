//! What a request looks like in bytes, and what a reply to it means as a vote. The one place that
//! knows both.
#![doc = include_str!("late_arrivals.md")]

mod several;

pub use several::COUNTER_SUFFIX;

use super::node_error::NodeError;
use super::report::KeySnapshot;
use super::script::{self, Script};
use super::server_error::{ServerError, ServerErrorKind, quoted};
use crate::engine::{Extras, Request, Token, Verb, Vote};
use crate::resp::{Reply, encode_command};
use std::borrow::Cow;
use std::io::Write;

/// How a script is named in a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "Redis has these two ways")]
pub enum Form {
    /// By its digest: short, but the node must have seen it.
    Digest,
    /// By its source, which every node understands.
    Source,
}

/// The scripts that a node has run since it was connected to, so that it is known to have them.
///
/// A script that a node may not have is sent by its source, and the one that removes a lock always
/// is. To send a digest first does as well for as long as somebody is there to hear that the node
/// does not know it; but whoever waits goes away when a majority has answered, and the node whose
/// answer comes after that would keep the key.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct KnownScripts(u16);

impl KnownScripts {
    /// The node has carried out this request, by a script if it needs one.
    pub(super) fn learn(&mut self, request: &Request) {
        self.0 |= Self::bit(request);
    }

    /// The form in which a request is sent first.
    pub(super) fn form(self, request: &Request) -> Form {
        let bit = Self::bit(request);
        // A server may forget a script at any time: since Redis 7.4 and Valkey 8.1 it keeps no more
        // than 500 of those that came by `EVAL`. A removal must be understood at once, for nobody
        // may be there to send it again.
        let is_known = !request.verb.is_removal() && self.0 & bit != 0;
        if is_known || bit == 0 { Form::Digest } else { Form::Source }
    }

    /// What stands for the script that carries out this request. Zero if it takes none.
    fn bit(request: &Request) -> u16 {
        let Some(script) = script(request) else { return 0 };
        script::ALL.iter().position(|known| *known == script).map_or(0, |index| 1 << index)
    }
}

/// The script that carries out this request, if it takes one.
pub(super) fn script(request: &Request) -> Option<Script> {
    let has_more = request.has_more_keys();
    match request.verb {
        Verb::Acquire | Verb::Handoff if has_more || request.counters_ttl().is_some() => {
            Some(script::CLAIM)
        }
        Verb::Restore if has_more => Some(script::CLAIM),
        Verb::Handoff => Some(script::HANDOFF),
        Verb::Extend if has_more => Some(script::EXTEND_ALL),
        Verb::Extend => Some(script::EXTEND),
        Verb::Release | Verb::Undo if has_more => Some(script::RELEASE_ALL),
        Verb::Release | Verb::Undo => Some(script::RELEASE),
        Verb::Fence => Some(script::FENCE),
        Verb::Inspect => Some(script::INSPECT),
        Verb::Remove => Some(script::REMOVE),
        Verb::Acquire | Verb::Restore | Verb::Ping => None,
    }
}

/// What a reply means.
#[derive(Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "the session must handle each")]
pub enum Meaning {
    /// It is a vote.
    Vote(Vote),
    /// The node granted the lock where nobody held it. As a vote, that is worth as much as the
    /// node's memory of who did.
    GrantedNew,
    /// The node granted the lock, and these are its counter and whether nobody held it before.
    Claimed {
        /// Was there a key that did not exist?
        is_new: bool,
        /// The largest of its counters, if it has any.
        counter: u64,
    },
    /// What the node holds under the key.
    Seen(KeySnapshot),
    /// The node does not know the script: to be sent again by its source.
    UnknownScript,
    /// It is an error of the server's, and no vote. The conversation goes on.
    Failed(NodeError),
    /// It is no answer to this request. The conversation cannot be trusted any more.
    Nonsense(NodeError),
}

/// Appends `request` to `out`. `number` is what a script is to answer, as proof that it answers
/// this command.
pub fn encode(request: &Request, form: Form, number: u64, out: &mut Vec<u8>) {
    let [mut ttl, mut proof] = [[0; 20]; 2];
    let ttl = decimal(request.ttl.as_millis(), &mut ttl);
    let proof = decimal(number, &mut proof);
    let key = &*request.key;
    let value = value(&request.token, request.extras.as_deref());
    let Some(script) = script(request) else {
        return match request.verb {
            Verb::Ping => encode_command(out, &[b"PING"]),
            _ => encode_command(out, &[b"SET", key, &value, b"NX", b"PX", ttl]),
        };
    };
    let (verb, name) = name(script, form);
    match request.verb {
        _ if several::takes(script) => several::encode(request, (verb, name), proof, out),
        Verb::Extend => encode_command(out, &[verb, name, b"1", key, &value, ttl, proof]),
        Verb::Handoff => {
            let before = before(request);
            encode_command(out, &[verb, name, b"1", key, &before, &value, ttl, proof]);
        }
        Verb::Inspect => encode_command(out, &[verb, name, b"1", key, proof]),
        Verb::Remove => {
            let mut words = vec![verb, name, b"1", key];
            words.extend(request.seen.iter().flat_map(|seen| seen.iter()).map(Vec::as_slice));
            words.push(proof);
            encode_command(out, &words);
        }
        _ => encode_command(out, &[verb, name, b"1", key, &value, proof]),
    }
}

/// What the keys of a lock hold: the token, and behind it whose it is.
fn value<'a>(token: &'a Token, extras: Option<&Extras>) -> Cow<'a, [u8]> {
    match extras {
        Some(extras) if !extras.owner.is_empty() => {
            Cow::Owned([token.as_bytes(), &extras.owner].concat())
        }
        _ => Cow::Borrowed(token.as_bytes()),
    }
}

/// What they hold before it is handed over.
fn before(request: &Request) -> Cow<'_, [u8]> {
    let before = request.predecessor.as_ref();
    before.map_or(Cow::Borrowed(&[]), |before| value(&before.token, before.extras.as_deref()))
}

fn name(script: Script, form: Form) -> (&'static [u8], &'static [u8]) {
    match form {
        Form::Digest => (b"EVALSHA", script.sha1.as_bytes()),
        Form::Source => (b"EVAL", script.source.as_bytes()),
    }
}

fn decimal(number: u64, digits: &mut [u8; 20]) -> &[u8] {
    let mut rest = &mut digits[..];
    write!(rest, "{number}").expect("a u64 has at most 20 digits");
    let unused = rest.len();
    &digits[..20 - unused]
}

/// Reads `reply` as the answer to this request, which was sent with this `number`. Texts are shown
/// without `secret`.
#[must_use]
pub fn meaning(
    request: &Request,
    number: u64,
    reply: &Reply<'_>,
    secret: Option<&[u8]>,
) -> Meaning {
    let script = script(request);
    let nonsense = || Meaning::Nonsense(NodeError::UnexpectedReply(describe(reply, secret)));
    let number = i64::try_from(number).unwrap_or(i64::MAX);
    match (script, reply) {
        (_, Reply::Error(text)) => error_meaning(ServerError::parse(text, secret)),
        (None, Reply::Simple(b"PONG")) if request.verb == Verb::Ping => {
            Meaning::Vote(Vote::Granted)
        }
        (None, Reply::Simple(b"OK")) if request.verb != Verb::Ping => Meaning::GrantedNew,
        (None, Reply::Null) if request.verb != Verb::Ping => Meaning::Vote(Vote::Refused),
        (Some(script), Reply::Array(list)) => {
            several::meaning(script, number, list).unwrap_or_else(nonsense)
        }
        (Some(script), Reply::Integer(answer)) if *answer == -number => {
            if script == script::INSPECT { nonsense() } else { Meaning::Vote(Vote::Refused) }
        }
        (Some(script), Reply::Integer(answer)) if *answer == number => {
            if several::has_list(script) { nonsense() } else { Meaning::Vote(Vote::Granted) }
        }
        _ => nonsense(),
    }
}

/// Does the answer to this request prove that it is the answer to this one and no other? What a
/// plain `SET` is answered with could be the answer to any other.
pub(super) fn has_proof(request: &Request) -> bool {
    script(request).is_some()
}

fn error_meaning(error: ServerError) -> Meaning {
    match error.kind {
        ServerErrorKind::NoScript => Meaning::UnknownScript,
        // Something under the lock's key that is no lock: certainly not ours.
        ServerErrorKind::WrongType => Meaning::Vote(Vote::Refused),
        _ => Meaning::Failed(NodeError::Server(error)),
    }
}

/// A reply in a few words.
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
