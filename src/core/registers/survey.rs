//! A look at all nodes: which of them are members, and how they keep their data.

use super::membership::Asked;
use crate::core::{Core, Redlock};
use crate::engine::{Node, NodeSet, quorum};
use crate::error::RegisterError;
use crate::node::{Durability, NodeAnswer, NodeError, NodeStatus};
use crate::registers::{Census, MarkStep, NoGroup};

/// What a look at the marks of all nodes has shown, and how they keep their data.
pub(crate) struct Survey {
    pub(crate) census: Census,
    pub(crate) asked: Asked,
    statuses: Vec<NodeStatus>,
}

impl Survey {
    pub(super) fn durability(&self, node: Node) -> Durability {
        Durability::of(&self.statuses[node.index()])
    }

    /// The error if too few nodes have a vote.
    pub(super) fn without_majority(self) -> RegisterError {
        let Self { census, mut asked, .. } = self;
        let voters = census.voters(census.epoch());
        for seen in census.seen().iter().filter(|seen| !voters.contains(seen.node)) {
            let why = NodeError::NoVote(seen.no_vote(Some(census.epoch())));
            asked.reports[seen.node.index()].answer = NodeAnswer::Failed(why);
        }
        asked.no_quorum(false)
    }
}

impl Core {
    /// Looks at the marks of the nodes, and at how they keep their data.
    pub(crate) fn survey(&self, redlock: &Redlock) -> Result<Survey, RegisterError> {
        let (seen, asked) = self.mark_all(redlock, &MarkStep::Look);
        let answered: NodeSet = seen.iter().map(|it| it.node).collect();
        let is_known = answered.len() >= quorum(self.rules.nodes);
        let census = Census::new(seen, self.rules.nodes).map_err(|error| match error {
            NoGroup::Differs(node) => RegisterError::NodesDiffer { url: asked.url(node) },
            NoGroup::NoMember if is_known => RegisterError::NotFormed,
            NoGroup::NoMember => asked.clone().no_quorum(false),
        })?;
        // One that was waited for in vain is not waited for again.
        Ok(Survey { census, asked, statuses: self.examine(redlock, answered) })
    }
}
