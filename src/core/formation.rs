//! Nodes become a group that keeps registers.

use super::durability::Durability;
use super::{Core, draw};
use crate::engine::Node;
use crate::engine::register::{Group, Mark, MarkStep, Member};
use crate::error::RegisterError;

impl Core {
    /// Makes the nodes a group. All must answer, and none may be a member of one.
    ///
    /// Each node draws a number first, and its mark must still have it when it becomes a member: so
    /// a copy of this that arrives late, after the node has lost its memory, makes it none.
    pub(crate) fn form(&self, in_memory: bool) -> Result<(), RegisterError> {
        let redlock = self.register_nodes()?;
        let statuses = self.examine(redlock);
        let keys = self.member_keys();
        let (mut seen, asked) = self.mark_all(redlock, &keys, MarkStep::Join);
        if seen.len() < self.rules.nodes {
            return Err(asked.no_quorum(false));
        }
        let lacking = statuses.iter().enumerate().filter_map(|(node, status)| {
            let lacks = match Durability::of(status) {
                Durability::Whole => return None,
                Durability::Unknown => "settings that it does not tell",
                Durability::Lacks(what) => what,
            };
            Some((asked.url(Node::new(node)), lacks))
        });
        let lacking: Vec<_> = lacking.collect();
        if !in_memory && !lacking.is_empty() {
            return Err(RegisterError::NotDurable { nodes: lacking });
        }
        let other = seen
            .iter()
            .find(|it| !matches!(it.bytes.as_deref().map(Mark::read), Some(Mark::Joining(_))));
        if let Some(other) = other {
            return Err(RegisterError::NodesDiffer { url: asked.url(other.node) });
        }
        let (id, token) = (draw_number()?, draw_number()?);
        let group = Group { id, epoch: 1, token, nodes: self.rules.nodes };
        // Of clients that do this at one time, each begins with the same node, and only the one
        // that comes first there goes on.
        seen.sort_by(|one, other| one.run_id.cmp(&other.run_id));
        for it in &seen {
            let is_durable = Durability::of(&statuses[it.node.index()]) == Durability::Whole;
            let (id, run_id) = (draw_number()?, it.run_id.to_string());
            let member = Member { group: group.clone(), run_id, id, is_durable };
            if !self.enter(redlock, &keys, it, &member) {
                return Err(RegisterError::NodesDiffer { url: asked.url(it.node) });
            }
        }
        Ok(())
    }
}

fn draw_number() -> Result<u64, RegisterError> {
    draw().map(|entropy| entropy.seed).ok_or(RegisterError::NoEntropy)
}
