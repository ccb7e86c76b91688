//! Nodes without a queue, or with less than a full one: what this connection asks of them instead.

use super::notifications::Pushes;
use super::{Answer, Session};
use crate::engine::{Action, QueueEntry, Request, Verb, Vote};
use crate::node::Ticket;
use crate::node::node_error::NodeError;
use crate::node::pending_releases::removal_if_unanswered;
use crate::node::report::QueueSupport;
use crate::node::server_error::{ServerError, ServerErrorKind};
use crate::time::Time;
use std::borrow::Cow;
use std::time::Duration;

/// For how long a node that refused a waiter counts as one without a queue. Its rights may be
/// changed, and the refusal may have been a stray error.
const REFUSED: Duration = Duration::from_secs(30);

impl Session {
    /// Whether clients can wait in a queue on this node, once that is known.
    pub(in crate::node) fn queue_support(&self) -> Option<QueueSupport> {
        if self.notifications.refusal.is_some() {
            return Some(QueueSupport::Unsupported);
        }
        let support = || match self.notifications.is_full() {
            true => QueueSupport::Full,
            false => QueueSupport::WithoutPushes,
        };
        self.notifications.is_used.then(support)
    }

    /// What the queue lacks, if that was not reported before.
    pub(in crate::node) fn take_queue_change(&mut self) -> Option<QueueSupport> {
        let support = self.queue_support().filter(|it| *it != QueueSupport::Full)?;
        let before = self.notifications.reported.replace(support);
        (before != Some(support)).then_some(support)
    }

    /// The request as this node can carry it out: with the connection's channel, and without the
    /// queue if it has none. A removal takes the waiter out also there: it may have entered before
    /// the node refused the rest.
    pub(super) fn adapted<'a>(
        &mut self,
        now: Time,
        ticket: Option<Ticket>,
        request: &'a Request,
    ) -> (Option<Ticket>, Cow<'a, Request>) {
        if self.notifications.refusal.as_ref().is_some_and(|(_, until)| now >= *until) {
            self.notifications.refusal = None;
        }
        let Some((refusal, _)) = &self.notifications.refusal else {
            return (ticket, self.with_channel(request));
        };
        let action = match &request.action {
            Action::Queue(_) => {
                let problem = NodeError::NoQueue(refusal.clone());
                let failed = |ticket| Answer::new(ticket, Vote::Failed, Some(problem));
                self.answers.extend(ticket.map(failed));
                let removal = removal_if_unanswered(request.clone());
                return (None, Cow::Owned(removal.unwrap_or_else(|| request.clone())));
            }
            Action::Turn { new, .. } => Action::Acquire(new.clone()),
            _ => return (ticket, Cow::Borrowed(request)),
        };
        (ticket, Cow::Owned(Request { action, ..request.clone() }))
    }

    fn with_channel<'a>(&self, request: &'a Request) -> Cow<'a, Request> {
        let Action::Queue(entry) = &request.action else { return Cow::Borrowed(request) };
        let is_resp3 = self.server.identity.as_ref().is_some_and(|identity| identity.is_resp3);
        let may_push = is_resp3 && self.notifications.channel != Pushes::Off;
        let channel = may_push.then_some(self.options.seed);
        let action = Action::Queue(QueueEntry { channel, ..entry.clone() });
        Cow::Owned(Request { action, ..request.clone() })
    }

    /// Is this error the answer of a node that has no queue? Then it is noted.
    pub(super) fn refuses_queue(
        &mut self,
        now: Time,
        request: &Request,
        error: &ServerError,
    ) -> bool {
        let is_lasting = matches!(
            error.kind,
            ServerErrorKind::NoPermission
                | ServerErrorKind::UnknownCommand
                | ServerErrorKind::Other
        );
        let is_refusal = is_lasting && request.verb() == Verb::Queue;
        if is_refusal {
            self.notifications.refusal = Some((error.clone(), now.after(REFUSED)));
        }
        is_refusal
    }

    /// Removes what a waiter has left on a node that refused it. The script may have failed at its
    /// first step, with the attempt still to be withdrawn, or after the waiter had entered.
    pub(super) fn leave_later(&mut self, now: Time, mut request: Request) {
        if let Action::Queue(entry) = request.action {
            request.action = Action::Undo(entry.leave());
            self.remove_later(now, None, request);
        }
    }
}
