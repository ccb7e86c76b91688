//! Nodes become a group that keeps registers.

use super::Asked;
use super::repair::check_run;
use crate::core::{Core, Redlock, draw};
use crate::engine::{Node, NodeSet};
use crate::error::{NoQuorum, RegisterError};
use crate::node::Durability;
use crate::registers::{Census, Epoch, Group, Mark, MarkStep, Member, Place, Seen};
use std::sync::Arc;

impl Core {
    /// Makes the nodes a group. All must answer, and none may be a member of one.
    ///
    /// Each node draws a number first, and its mark must still have it when it becomes a member: so
    /// a copy of this that arrives late, after the node has lost its memory, makes it none.
    pub(crate) fn form(&self, in_memory: bool) -> Result<(), RegisterError> {
        let redlock = self.register_nodes()?;
        let statuses = self.examine(redlock, NodeSet::all(self.rules.nodes));
        let durability = |node: Node| Durability::of(&statuses[node.index()]);
        let lacks = |node| durability(node).lacks().filter(|_| !in_memory);
        // What can be refused is refused before anything is written.
        let (seen, asked) = self.mark_all(redlock, &MarkStep::Look);
        self.check_formation(&seen, asked, lacks)?;
        let (mut seen, asked) = self.mark_all(redlock, &MarkStep::Join { seen: Arc::from([]) });
        // One whose server was started again since it began to join does so anew.
        for it in seen.iter_mut().filter(|it| it.joining().is_none()) {
            if let Some(Mark::Joining(_)) = it.read() {
                *it = self.join(redlock, it).unwrap_or_else(|| it.clone());
            }
        }
        self.check_formation(&seen, asked.clone(), lacks)?;
        let group = Group { id: draw_number()?, epoch: 1, token: draw_number()? };
        // Of clients that do this at one time, each begins with the same node, and only the one
        // that comes first there goes on.
        seen.sort_by(|one, other| one.run_id.cmp(&other.run_id));
        let place = |it: &Seen| Ok(Place::new(draw_number()?, &asked.url(it.node)));
        let members: Result<Vec<Place>, RegisterError> = seen.iter().map(place).collect();
        let epoch = Epoch { group, members: members?.into() };
        for (it, place) in seen.iter().zip(&*epoch.members) {
            let is_durable = durability(it.node) == Durability::Whole;
            let run_id = it.run_id.to_string();
            let member = Member { epoch: epoch.clone(), run_id, id: place.id, is_durable };
            if !self.enter(redlock, it, &member) {
                return Err(RegisterError::NodesDiffer { url: asked.url(it.node) });
            }
        }
        Ok(())
    }

    /// Can these nodes be made a group?
    fn check_formation(
        &self,
        seen: &[Seen],
        asked: Asked,
        lacks: impl Fn(Node) -> Option<&'static str>,
    ) -> Result<(), RegisterError> {
        if seen.len() < self.rules.nodes {
            let (error, may_have_happened) = (NoQuorum::of_all(asked.reports), false);
            return Err(RegisterError::NoQuorum { error, may_have_happened });
        }
        if Census::new(seen.to_vec(), self.rules.nodes).is_ok_and(|it| it.is_whole(seen.len())) {
            return Err(RegisterError::AlreadyFormed);
        }
        seen.iter().try_for_each(|it| check_run(it, &asked.url(it.node)))?;
        let lacking = seen.iter().map(|it| it.node);
        let lacking = lacking.filter_map(|it| Some((asked.url(it), lacks(it)?)));
        let lacking: Vec<_> = lacking.collect();
        if !lacking.is_empty() {
            return Err(RegisterError::NotDurable { nodes: lacking });
        }
        let is_other = |it: &&Seen| matches!(it.read(), Some(Mark::Member(_) | Mark::Unknown));
        match seen.iter().find(is_other) {
            Some(other) => Err(RegisterError::NodesDiffer { url: asked.url(other.node) }),
            None => Ok(()),
        }
    }

    /// A node gives up the mark that was seen, and begins to join. Returns how it looks then.
    pub(super) fn join(&self, redlock: &Redlock, seen: &Seen) -> Option<Seen> {
        let mark = seen.mark.clone().unwrap_or_else(|| Arc::from([]));
        let nodes = NodeSet::from_iter([seen.node]);
        let now = self.mark(redlock, &MarkStep::Join { seen: mark }, nodes).0.pop()?;
        (now.mark != seen.mark && now.joining().is_some()).then_some(now)
    }
}

pub(super) fn draw_number() -> Result<u64, RegisterError> {
    draw().map(|entropy| entropy.seed).ok_or(RegisterError::NoEntropy)
}
