//! Quarantines in a round: for how long no majority can grant the lock, whoever has answered.

use super::Entry;
use crate::engine::{Node, Verb, until_quorum};
use crate::node::node_error::NodeError;
use crate::node::session::Session;
use crate::time::Time;
use std::time::Duration;

impl<W> Entry<W> {
    /// Notes the quarantines of nodes that refused the lock, or have not answered. Such a refusal
    /// does not say that another client holds it: nobody may, and the node reserves it for a waiter
    /// until its grants count.
    pub(super) fn note_quarantines(&mut self, now: Time, sessions: &[Session]) {
        let is_attempt = self.verb().is_some_and(Verb::is_acquisition) && !self.is_confirmed();
        let Some(request) = &self.request else { return };
        if !is_attempt && request.verb() != Verb::Queue {
            return;
        }
        for (index, (problem, session)) in self.problems.iter_mut().zip(sessions).enumerate() {
            let is_granted = self.tally.granted.contains(Node::new(index));
            if problem.is_none() && !is_granted && session.is_ready() {
                *problem = session.quarantine(now, request);
            }
        }
    }

    /// How long no majority can grant anything.
    pub(super) fn quarantine(&self) -> Duration {
        let left = self.problems.iter().flatten().filter_map(NodeError::quarantine);
        until_quorum(self.problems.len(), left).unwrap_or_default()
    }
}
