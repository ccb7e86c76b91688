//! The statuses of the nodes, at the end of a ping's round.

use super::entry::Entry;
use crate::engine::Node;
use crate::node::{NodeError, NodeStatus, Session};
use crate::time::Time;
use std::io::ErrorKind;

impl<W> Entry<W> {
    /// The statuses of all nodes, once a ping is over.
    pub(super) fn statuses(&self, now: Time, sessions: &[Session]) -> Vec<NodeStatus> {
        let mut statuses: Vec<_> = sessions.iter().map(|it| it.status(now)).collect();
        self.note_late_pings(&mut statuses);
        statuses
    }

    /// Notes which nodes have not answered a ping in time, where nothing worse is known.
    fn note_late_pings(&self, statuses: &mut [NodeStatus]) {
        for (index, status) in statuses.iter_mut().enumerate() {
            let problem = self.problem(Node::new(index));
            let late = problem.filter(|problem| is_late(problem));
            status.last_error = status.last_error.take().or_else(|| late.cloned());
        }
    }
}

/// Did the node, or the server that is its master, not answer in time?
fn is_late(problem: &NodeError) -> bool {
    match problem {
        NodeError::TimedOut(_) => true,
        NodeError::Unreachable { kind, .. } => *kind == ErrorKind::TimedOut,
        _ => false,
    }
}
