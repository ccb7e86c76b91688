//! What a request looks like in bytes, and what a reply to it means as a vote. The one place that
//! knows both.

use super::problem::Problem;
use super::script::{self, Script};
use super::server_error::{ServerError, ServerErrorKind};
use crate::engine::{Request, Verb, Vote};
use crate::resp::{Reply, encode_command};
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
/// A script that a node may not have is sent by its source. To send its digest first would do as
/// well for as long as somebody is there to hear that the node does not know it; but whoever
/// releases a lock goes away when a majority has answered, and the node whose answer comes after
/// that would keep the key.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct KnownScripts {
    extend: bool,
    hand_over: bool,
    release: bool,
}

impl KnownScripts {
    /// The node has run the script of this verb, if the verb has one.
    pub(super) fn learn(&mut self, verb: Verb) {
        match verb {
            Verb::Extend => self.extend = true,
            Verb::HandOver => self.hand_over = true,
            Verb::Release | Verb::Undo => self.release = true,
            Verb::Plant | Verb::Replant | Verb::Ping => {}
        }
    }

    /// The form in which a request is sent first.
    pub(super) fn form(self, verb: Verb) -> Form {
        let is_known = match verb {
            Verb::Extend => self.extend,
            Verb::HandOver => self.hand_over,
            Verb::Release => self.release,
            // Nobody waits for an undo, so nobody would be there to send it a second time if the
            // node has forgotten the script meanwhile: it must be understood at once.
            Verb::Undo => false,
            Verb::Plant | Verb::Replant | Verb::Ping => true,
        };
        if is_known { Form::Digest } else { Form::Source }
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
    Planted,
    /// The node does not know the script: to be sent again by its source.
    UnknownScript,
    /// It is an error of the server's, and no vote. The conversation goes on.
    Failed(Problem),
    /// It is no answer to this request. The conversation cannot be trusted any more.
    Nonsense(Problem),
}

/// Appends `request` to `out`.
pub fn encode(request: &Request, form: Form, out: &mut Vec<u8>) {
    let mut digits = [0; 20];
    let ttl = decimal(request.ttl.as_millis(), &mut digits);
    let (key, token) = (&*request.key, request.token.as_bytes());
    match request.verb {
        Verb::Plant | Verb::Replant => {
            encode_command(out, &[b"SET", key, token, b"NX", b"PX", ttl]);
        }
        Verb::Extend => {
            let (verb, name) = name(script::EXTEND, form);
            if request.ttl < request.ttl_longest {
                encode_command(out, &[verb, name, b"1", key, token, ttl, b"shorter"]);
            } else {
                encode_command(out, &[verb, name, b"1", key, token, ttl]);
            }
        }
        Verb::HandOver => {
            let (verb, name) = name(script::HAND_OVER, form);
            let predecessor = request.predecessor.as_ref().unwrap_or(&request.token);
            let predecessor = predecessor.as_bytes();
            encode_command(out, &[verb, name, b"1", key, predecessor, token, ttl]);
        }
        Verb::Release | Verb::Undo => {
            let (verb, name) = name(script::RELEASE, form);
            encode_command(out, &[verb, name, b"1", key, token]);
        }
        Verb::Ping => encode_command(out, &[b"PING"]),
    }
}

/// Is it a script that does it?
fn has_script(verb: Verb) -> bool {
    matches!(verb, Verb::Extend | Verb::HandOver | Verb::Release | Verb::Undo)
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

/// Reads `reply` as the answer to a request of this verb. Texts are shown without `secret`.
#[must_use]
pub fn meaning(verb: Verb, reply: &Reply<'_>, secret: Option<&[u8]>) -> Meaning {
    match (verb, reply) {
        (Verb::Ping, Reply::Simple(b"PONG")) => Meaning::Vote(Vote::Granted),
        (_, Reply::Error(text)) => error_meaning(ServerError::parse(text, secret)),
        (Verb::Plant | Verb::Replant, Reply::Simple(b"OK")) => Meaning::Planted,
        (Verb::HandOver, Reply::Integer(2)) => Meaning::Planted,
        (Verb::Plant | Verb::Replant, Reply::Null) => Meaning::Vote(Vote::Refused),
        (verb, Reply::Integer(1)) if has_script(verb) => Meaning::Vote(Vote::Granted),
        (verb, Reply::Integer(0)) if has_script(verb) => Meaning::Vote(Vote::Refused),
        _ => Meaning::Nonsense(Problem::UnexpectedReply(describe(reply, secret))),
    }
}

fn error_meaning(error: ServerError) -> Meaning {
    match error.kind {
        ServerErrorKind::NoScript => Meaning::UnknownScript,
        // Something under the lock's key that is no lock: certainly not ours.
        ServerErrorKind::WrongType => Meaning::Vote(Vote::Refused),
        _ => Meaning::Failed(Problem::Server(error)),
    }
}

/// A reply in a few words.
pub(super) fn describe(reply: &Reply<'_>, secret: Option<&[u8]>) -> String {
    let quote = |kind: &str, bytes: &[u8]| {
        let text = String::from_utf8_lossy(bytes);
        format!("{kind} {:?}", super::server_error::presentable(&text, secret))
    };
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
