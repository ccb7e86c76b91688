//! The meaning of replies: the replies that each kind of request accepts.

use super::{describe, is_plain};
use crate::engine::{Action, FENCE_MAX, Request, Vote};
use crate::node::node_error::NodeError;
use crate::node::report::KeySnapshot;
use crate::node::server_error::{ServerError, ServerErrorKind};
use crate::resp::Reply;

/// The meaning of a reply.
#[derive(Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "the session must handle each")]
pub enum Meaning {
    /// A vote.
    Vote(Vote),
    /// The node granted the lock, and the key did not exist before. This counts only if the node
    /// cannot have forgotten the key of a lock that is still held.
    GrantedNew,
    /// The node granted a lock with counters or several keys.
    Claimed {
        /// Did one of the keys not exist before?
        is_new: bool,
        /// The largest of its counters, if it has any.
        counter: u64,
    },
    /// The value and the ttl of the key.
    Seen(KeySnapshot),
    /// The node does not know the script: the request must be sent again with the source.
    UnknownScript,
    /// A server error, and no vote. The connection stays usable.
    Failed(NodeError),
    /// Not an answer to this request. No further reply on this connection can be trusted.
    Nonsense(NodeError),
}

/// Reads `reply` as the answer to this request, which was sent with this `number`. Texts in errors
/// do not contain `secret`.
#[must_use]
pub fn meaning(
    request: &Request,
    number: u64,
    reply: &Reply<'_>,
    secret: Option<&[u8]>,
) -> Meaning {
    if let Reply::Error(text) = reply {
        return error_meaning(ServerError::parse(text, secret));
    }
    let number = i64::try_from(number).unwrap_or(i64::MAX);
    let found = match &request.action {
        Action::Ping => matches!(reply, Reply::Simple(b"PONG")).then(granted),
        Action::Acquire(new) if is_plain(&new.lock) => set_meaning(reply),
        Action::Acquire(_) => claim_meaning(number, reply),
        Action::Handoff { new, .. } if is_plain(&new.lock) => handoff_meaning(number, reply),
        Action::Handoff { .. } => claim_meaning(number, reply),
        Action::Restore { lock, .. } if lock.has_more_keys() => claim_meaning(number, reply),
        Action::Restore { .. } => set_meaning(reply),
        Action::Extend { .. } | Action::Release(_) | Action::Undo(_) => yes_or_no(number, reply),
        Action::Fence { .. } | Action::Remove { .. } => yes_or_no(number, reply),
        Action::Inspect { .. } => inspect_meaning(number, reply),
    };
    let nonsense = || Meaning::Nonsense(NodeError::UnexpectedReply(describe(reply, secret)));
    found.unwrap_or_else(nonsense)
}

fn granted() -> Meaning {
    Meaning::Vote(Vote::Granted)
}

/// The meaning of the answer to a plain `SET`.
fn set_meaning(reply: &Reply<'_>) -> Option<Meaning> {
    match reply {
        Reply::Simple(b"OK") => Some(Meaning::GrantedNew),
        Reply::Null => Some(Meaning::Vote(Vote::Refused)),
        _ => None,
    }
}

/// The meaning of the answer of a script that grants with its number and refuses with its negative.
fn yes_or_no(number: i64, reply: &Reply<'_>) -> Option<Meaning> {
    if *reply == Reply::Integer(number) { Some(granted()) } else { refusal(number, reply) }
}

/// A refusal: a script refuses with the negative of its number.
fn refusal(number: i64, reply: &Reply<'_>) -> Option<Meaning> {
    (*reply == Reply::Integer(-number)).then_some(Meaning::Vote(Vote::Refused))
}

/// The elements that follow the number in a script's list.
fn list<'a>(number: i64, reply: &Reply<'a>) -> Option<[Option<Reply<'a>>; 2]> {
    let Reply::Array(list) = reply else { return None };
    let mut elements = list.iter();
    let is_its = list.len() <= 3 && elements.next() == Some(Reply::Integer(number));
    is_its.then(|| [elements.next(), elements.next()])
}

fn handoff_meaning(number: i64, reply: &Reply<'_>) -> Option<Meaning> {
    match list(number, reply) {
        Some([Some(Reply::Integer(0)), None]) => Some(granted()),
        Some([Some(Reply::Integer(1)), None]) => Some(Meaning::GrantedNew),
        _ => refusal(number, reply),
    }
}

fn inspect_meaning(number: i64, reply: &Reply<'_>) -> Option<Meaning> {
    let [Some(value), Some(Reply::Integer(left))] = list(number, reply)? else { return None };
    let value = match value {
        Reply::Null => None,
        Reply::Bulk(bytes) => Some(bytes.to_vec()),
        _ => return None,
    };
    Some(Meaning::Seen(KeySnapshot { value, left }))
}

/// The meaning of the answer to a claim.
fn claim_meaning(number: i64, reply: &Reply<'_>) -> Option<Meaning> {
    match list(number, reply) {
        Some([Some(Reply::Integer(is_new @ 0..=1)), Some(Reply::Integer(counter))]) => {
            let counter = u64::try_from(counter).ok().filter(|counter| *counter <= FENCE_MAX)?;
            Some(Meaning::Claimed { is_new: is_new == 1, counter })
        }
        _ => refusal(number, reply),
    }
}

fn error_meaning(error: ServerError) -> Meaning {
    match error.kind {
        ServerErrorKind::NoScript => Meaning::UnknownScript,
        // The lock's key holds something that is no lock, so it does not hold our token.
        ServerErrorKind::WrongType => Meaning::Vote(Vote::Refused),
        _ => Meaning::Failed(NodeError::Server(error)),
    }
}
