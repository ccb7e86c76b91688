//! Nodes whose user may not see the mark of members, or which run of the server that is for.
//!
//! `client.nodes()` looks at the marks, also for users that have rights to locks only. An error
//! proves nothing about the order of replies, so the reply to a `SET` behind it is no vote: who
//! asks again and again for what is refused would disturb attempts to lock again and again.

use super::{Answer, Session};
use crate::clock::Time;
use crate::engine::register::{MarkStep, NoVote, RegisterCommand, RegisterReply};
use crate::engine::{Action, Request, Vote};
use crate::node::Ticket;
use crate::node::command::Meaning;
use crate::node::node_error::NodeError;
use crate::node::server_error::{ServerError, ServerErrorKind};
use std::time::Duration;

/// For how long a node that has refused a look at its mark is not asked for another one. The user's
/// rights may be changed.
const REFUSED: Duration = Duration::from_secs(10);

/// The refusal of a look at the mark, and until when there is no other.
pub(super) type HiddenMark = Option<(ServerError, Time)>;

fn is_look(request: &Request) -> bool {
    let Action::Register(register) = &request.action else { return false };
    register.command == RegisterCommand::Mark(MarkStep::Look)
}

impl Session {
    /// Answers a look at the mark if that was refused a moment ago. Returns whether it was.
    pub(super) fn hides_mark(
        &mut self,
        now: Time,
        ticket: Option<Ticket>,
        request: &Request,
    ) -> bool {
        let Some((error, until)) = &self.connection.hidden_mark else { return false };
        let is_refused = is_look(request) && now < *until;
        if is_refused {
            let problem = NodeError::Server(error.clone());
            self.answers.extend(ticket.map(|it| Answer::new(it, Vote::Failed, Some(problem))));
        }
        is_refused
    }

    /// The answer, with what the node has told about a register. A user who may not ask for the run
    /// of the server cannot name the mark that it must have.
    pub(super) fn with_register(&self, answer: Answer, reply: RegisterReply) -> Answer {
        match reply {
            RegisterReply::NoMember(_) if self.connection.run_id.is_none() => {
                let problem = Some(NodeError::NoVote(NoVote::RunNotTold));
                Answer { vote: Vote::Failed, problem, ..answer }
            }
            reply => Answer { vote: reply.vote(), register: Some(reply), ..answer },
        }
    }

    /// Notes that the user may not see the mark.
    pub(super) fn note_hidden_mark(&mut self, now: Time, request: &Request, meaning: &Meaning) {
        if let (true, Meaning::Failed(NodeError::Server(error))) = (is_look(request), meaning) {
            if error.kind == ServerErrorKind::NoPermission {
                self.connection.hidden_mark = Some((error.clone(), now.after(REFUSED)));
            }
        }
    }
}
