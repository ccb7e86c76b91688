//! Nodes whose user may not see what is looked at, or which run of the server that is for.
//!
//! `client.nodes()` looks at the marks of registers, also for users that have rights to locks only.
//! An error proves nothing about the order of replies, so the reply to a `SET` behind it is no
//! vote: who asks again and again for what is refused would disturb attempts to lock again and
//! again.

use super::{Answer, Session};
use crate::engine::{Request, Vote};
use crate::node::Ticket;
use crate::node::command::Meaning;
use crate::node::node_error::NodeError;
use crate::node::server_error::{ServerError, ServerErrorKind};
use crate::time::Time;
use std::time::Duration;

/// For how long a node that has refused a look is not asked for another one. The user's rights may
/// be changed.
const REFUSED: Duration = Duration::from_secs(10);

/// The refusal of a look, and until when there is no other.
pub(super) type HiddenLook = Option<(ServerError, Time)>;

impl Session {
    /// Answers a look if one was refused a moment ago. Returns whether it was.
    pub(super) fn hides_look(
        &mut self,
        now: Time,
        ticket: Option<Ticket>,
        request: &Request,
    ) -> bool {
        let Some((error, until)) = &self.connection.hidden_look else { return false };
        let is_refused = request.is_look() && now < *until;
        if is_refused {
            let problem = NodeError::Server(error.clone());
            self.answers.extend(ticket.map(|it| Answer::new(it, Vote::Failed, Some(problem))));
        }
        is_refused
    }

    /// Notes that the user may not see what is looked at.
    pub(super) fn note_hidden_look(&mut self, now: Time, request: &Request, meaning: &Meaning) {
        if let (true, Meaning::Failed(NodeError::Server(error))) = (request.is_look(), meaning) {
            if error.kind == ServerErrorKind::NoPermission {
                self.connection.hidden_look = Some((error.clone(), now.after(REFUSED)));
            }
        }
    }
}
