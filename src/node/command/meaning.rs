//! The meaning of replies: the replies that each kind of request accepts.

use super::{describe, is_plain, operators};
use crate::engine::{Action, FENCE_MAX, Listen, QueueView, Request, Vote};
use crate::node::examination::Finding;
use crate::node::node_error::NodeError;
use crate::node::report::{KeyPage, KeySnapshot};
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
    /// The node granted a lock, and the answer says more about it.
    Claimed {
        /// Did one of the keys not exist before?
        is_new: bool,
        /// The largest of its counters, if it has any.
        counter: u64,
        /// How many waiters of other clients wait for it.
        waiting: u64,
        /// Which permit, if the request is for one.
        permit: Option<u32>,
    },
    /// The waiter is in the queue, with this number.
    Queued(u64, QueueView),
    /// The value and the ttl of the key.
    Seen(KeySnapshot),
    /// Keys that may be locks.
    Listed(KeyPage),
    /// The answer to a question about the server.
    Told(Finding),
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
        Action::Acquire(_) | Action::Turn { .. } | Action::Handoff { .. }
            if request.share().is_some() =>
        {
            let granted = list(number, reply).and_then(|it| super::shares::granted(request, it));
            granted.or_else(|| refusal(number, reply))
        }
        Action::Ping { .. } => matches!(reply, Reply::Simple(b"PONG")).then(granted),
        Action::Ask(question) => Finding::read(*question, reply, secret).map(Meaning::Told),
        Action::Acquire(new) if is_plain(&new.lock) => set_meaning(reply),
        Action::Acquire(_) | Action::Handoff { .. } | Action::Turn { .. } => {
            claim_meaning(number, reply)
        }
        Action::Queue(_) => queue_meaning(number, reply),
        Action::Listen { step: Listen::Read(_), .. } => yes_or_no(number, reply),
        Action::Listen { step: Listen::Subscribe(_), .. } => is_subscribed(reply).then(granted),
        Action::Listen { .. } => matches!(reply, Reply::Simple(b"OK")).then(granted),
        Action::Await { .. } | Action::EndWaits { .. } => None,
        Action::Extend { .. } | Action::Restore { .. } => yes_or_no(number, reply),
        Action::Release(_) | Action::Undo(_) => yes_or_no(number, reply),
        Action::Fence { .. } | Action::Remove { .. } => yes_or_no(number, reply),
        Action::Inspect { .. } => operators::seen(number, reply),
        Action::Scan { .. } => operators::listed(number, reply),
    };
    let nonsense = || Meaning::Nonsense(NodeError::UnexpectedReply(describe(reply, secret)));
    found.unwrap_or_else(nonsense)
}

fn granted() -> Meaning {
    Meaning::Vote(Vote::Granted)
}

/// With RESP3 the answer to `SUBSCRIBE` is a push message.
fn is_subscribed(reply: &Reply<'_>) -> bool {
    match reply {
        Reply::Push(message) => {
            matches!(message.iter().next(), Some(Reply::Bulk(b"subscribe")))
        }
        _ => false,
    }
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
pub(super) fn list<'a>(number: i64, reply: &Reply<'a>) -> Option<[Option<Reply<'a>>; 3]> {
    let Reply::Array(list) = reply else { return None };
    let mut elements = list.iter();
    let is_answer = list.len() <= 4 && elements.next() == Some(Reply::Integer(number));
    is_answer.then(|| [elements.next(), elements.next(), elements.next()])
}

/// The meaning of the answer to a waiter.
fn queue_meaning(number: i64, reply: &Reply<'_>) -> Option<Meaning> {
    let Reply::Array(list) = reply else { return None };
    let elements: Vec<_> = list.iter().collect();
    let (first, rest) = elements.split_first()?;
    if *first != Reply::Integer(number) {
        return None;
    }
    super::queue::view(rest).map(|(number, view)| Meaning::Queued(number, view))
}

/// The meaning of the answer to a claim.
fn claim_meaning(number: i64, reply: &Reply<'_>) -> Option<Meaning> {
    match list(number, reply) {
        Some(
            [
                Some(Reply::Integer(is_new @ 0..=1)),
                Some(Reply::Integer(counter)),
                Some(Reply::Integer(waiting)),
            ],
        ) => {
            let counter = u64::try_from(counter).ok().filter(|counter| *counter <= FENCE_MAX)?;
            let waiting = u64::try_from(waiting).ok()?;
            Some(Meaning::Claimed { is_new: is_new == 1, counter, waiting, permit: None })
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
