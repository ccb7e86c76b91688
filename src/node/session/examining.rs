//! Questions about the server's state, asked along with a ping, on the connection of the locks.
//!
//! They are written all at once, before the ping, and nobody waits for their answers: the ping's is
//! behind them. A question that the server refuses changes nothing for locks.

use super::Session;
use crate::clock::Time;
use crate::engine::{Action, Question, Request};
use crate::node::command::{Form, Meaning};
use crate::node::examination::Finding;
use crate::node::node_error::NodeError;
use crate::node::server_error::ServerErrorKind;
use crate::node::warning::Host;

impl Session {
    /// Notes on which machine the node is. Call it after [`connected`](Self::connected).
    pub fn leads_to(&mut self, host: Option<Host>) {
        self.connection.examination.host = host;
    }

    /// Asks the questions that belong to this request.
    pub(super) fn examine(&mut self, now: Time, request: &Request) {
        if !matches!(request.action, Action::Ping { asks: true }) {
            return;
        }
        for question in self.connection.examination.questions() {
            let ask = Request { action: Action::Ask(question), ..request.clone() };
            self.flight.push(now, None, ask, Form::Digest);
        }
    }

    /// Takes the answer to a question that was written at `sent_at`.
    pub(super) fn told(
        &mut self,
        question: Question,
        meaning: Meaning,
        between: (Time, Time),
    ) -> Result<(), NodeError> {
        match meaning {
            Meaning::Nonsense(problem) => return Err(problem),
            Meaning::Told(finding) => self.connection.examination.note(finding, between),
            Meaning::Failed(NodeError::Server(error)) if is_lasting(error.kind) => {
                self.connection.examination.refuse(question, between);
            }
            _ => self.connection.examination.note(Finding::unknown(question), between),
        }
        Ok(())
    }
}

/// Will the server refuse the same command again?
fn is_lasting(kind: ServerErrorKind) -> bool {
    matches!(kind, ServerErrorKind::NoPermission | ServerErrorKind::UnknownCommand)
}
