//! The meaning of replies: the replies that each kind of request accepts.

use super::describe;
use crate::engine::{Action, Listen, NoVote, QueueView, Request, Said, Vote};
use crate::node::examination::Finding;
use crate::node::node_error::NodeError;
use crate::node::script;
use crate::node::server_error::{ServerError, ServerErrorKind};
use crate::resp::Reply;

/// The meaning of a reply.
#[derive(Debug, PartialEq, Eq)]
pub enum Meaning {
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
    /// The answer to a custom command.
    Custom(Result<(Vote, Said), NoVote>),
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
pub fn meaning(
    request: &Request,
    number: u64,
    reply: &Reply<'_>,
    secret: Option<&[u8]>,
) -> Meaning {
    if let Reply::Error(text) = reply {
        return error_meaning(request, ServerError::parse(text, secret));
    }
    let number = i64::try_from(number).unwrap_or(i64::MAX);
    let found = match (script::room(request), &request.action) {
        (Some(room), _) => (room.read)(request, number, reply),
        (None, Action::Custom(command)) => command.read(number, reply).map(Meaning::Custom),
        (None, Action::Ping { .. }) => matches!(reply, Reply::Simple(b"PONG")).then(granted),
        (None, Action::Ask(question)) => Finding::read(*question, reply, secret).map(Meaning::Told),
        (None, Action::Acquire(_)) => set_meaning(reply),
        (None, Action::Listen { step: Listen::Subscribe(_), .. }) => {
            is_subscribed(reply).then(granted)
        }
        (None, Action::Listen { .. }) => matches!(reply, Reply::Simple(b"OK")).then(granted),
        (None, _) => None,
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

fn error_meaning(request: &Request, error: ServerError) -> Meaning {
    match error.kind {
        _ if error.is_unknown_script() => Meaning::UnknownScript,
        // The lock's key holds something that is no lock, so it does not hold our token.
        ServerErrorKind::WrongType => match request.custom().map(|it| it.of_other_type()) {
            None => Meaning::Vote(Vote::Refused),
            Some(Some(said)) => Meaning::Custom(Ok(said)),
            Some(None) => Meaning::Failed(NodeError::Server(error)),
        },
        _ => Meaning::Failed(NodeError::Server(error)),
    }
}
