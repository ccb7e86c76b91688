//! What the marks of the nodes say together: the group, its latest epoch, and who may vote.

use super::{Epoch, JoiningNode, Mark, Member, MemberAddress, no_vote};
use redlatch_protocol::engine::{NoVote, Node, NodeSet, quorum};
use std::sync::Arc;

/// A node, as a look at its mark shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeMark {
    pub node: Node,
    /// The mark, as it is written there.
    pub mark: Option<Arc<[u8]>>,
    /// The run of the server. Empty if it does not say.
    pub run_id: Arc<str>,
}

impl NodeMark {
    /// What the mark says.
    pub fn read(&self) -> Option<Mark> {
        self.mark.as_deref().map(Mark::read)
    }

    pub(super) fn member(&self) -> Option<Member> {
        match self.read() {
            Some(Mark::Member(member)) => Some(member),
            _ => None,
        }
    }

    /// Why it has no vote in the latest epoch. `None` if the nodes are not a group.
    pub fn no_vote(&self, epoch: Option<&Epoch>) -> NoVote {
        let group = epoch.map(|epoch| &epoch.group);
        match (self.member(), epoch) {
            (Some(member), Some(epoch)) if member.epoch.group.id == epoch.group.id => {
                match epoch.has(member.id) {
                    false => NoVote::Replaced,
                    true if self.run_id.is_empty() => NoVote::RunNotTold,
                    true => no_vote(self.mark.as_deref(), group),
                }
            }
            _ => no_vote(self.mark.as_deref(), group),
        }
    }

    /// If the node is being made a member, by the server that runs now.
    pub fn joining(&self) -> Option<JoiningNode> {
        match self.read() {
            Some(Mark::Joining(joining)) if *joining.run_id == *self.run_id => Some(joining),
            _ => None,
        }
    }
}

/// Why the nodes are not a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoGroup {
    /// None of them is a member of one.
    NoMember,
    /// This node is a member of another group than the others, or the group has another size.
    Differs(Node),
}

/// The marks of the nodes that have answered.
#[derive(Clone, Debug)]
pub struct MembershipView {
    epoch: Epoch,
    seen: Vec<NodeMark>,
    /// Those that are members of the group, in any of its epochs.
    members: Vec<(usize, Member)>,
}

impl MembershipView {
    /// Counts these marks of `nodes` nodes.
    ///
    /// # Errors
    ///
    /// The nodes are not a group.
    pub fn new(seen: Vec<NodeMark>, nodes: usize) -> Result<Self, NoGroup> {
        let mut members: Vec<(usize, Member)> = Vec::new();
        for (index, seen) in seen.iter().enumerate() {
            if let Some(member) = seen.member() {
                members.push((index, member));
            }
        }
        let Some((first, _)) = members.first() else {
            return Err(NoGroup::NoMember);
        };
        let epochs = members.iter().map(|(_, member)| &member.epoch);
        let of_size = epochs.filter(|epoch| epoch.members.len() == nodes);
        let latest = of_size.max_by_key(|epoch| {
            let group = &epoch.group;
            (count_of_group(&members, group.id), group.epoch)
        });
        let Some(epoch) = latest.cloned() else {
            return Err(NoGroup::Differs(seen[*first].node));
        };
        let group = epoch.group.id;
        let other = members
            .iter()
            .find(|(_, member)| member.epoch.group.id != group);
        // A node of another group has no vote. Without a majority of one, the nodes are not a
        // group.
        if let Some((index, _)) = other {
            if count_of_group(&members, group) < quorum(nodes) {
                return Err(NoGroup::Differs(seen[*index].node));
            }
        }
        members.retain(|(_, member)| member.epoch.group.id == group);
        Ok(Self {
            epoch,
            seen,
            members,
        })
    }

    /// Are all of `nodes` nodes members of the group, in any of its epochs?
    pub fn is_whole(&self, nodes: usize) -> bool {
        self.members.len() == nodes
    }

    /// The latest epoch that a node has entered.
    pub fn epoch(&self) -> &Epoch {
        &self.epoch
    }

    /// The nodes, as they were seen.
    pub fn seen(&self) -> &[NodeMark] {
        &self.seen
    }

    /// The marks that members of `epoch` are to get: of that epoch, and of the present run of their
    /// server if it has kept all that it answered. `keeps` says whether a node does so, and nothing
    /// if that is not known.
    pub fn renewals(
        &self,
        epoch: &Epoch,
        keeps: impl Fn(Node) -> Option<bool>,
    ) -> Vec<(NodeMark, Member)> {
        let mut renewals = Vec::new();
        for (index, member) in &self.members {
            let seen = &self.seen[*index];
            let new = match (self.is_one(member), keeps(seen.node)) {
                (true, keeps) => renewed(seen, member, epoch, keeps),
                // By its next start it may be the only one that has this mark.
                (false, Some(false)) => Member {
                    is_durable: false,
                    ..member.clone()
                },
                (false, _) => continue,
            };
            if new != *member && !seen.run_id.is_empty() {
                renewals.push((seen.clone(), new));
            }
        }
        renewals
    }

    /// Has one node alone the mark of this member? A replica has the mark of its master.
    fn is_one(&self, member: &Member) -> bool {
        let members = self.members.iter();
        members.filter(|(_, it)| it.id == member.id).count() == 1
    }

    /// The nodes that vote in `epoch`, by the marks that they have.
    pub fn voters(&self, epoch: &Epoch) -> NodeSet {
        let voters = self.members.iter().filter(|(index, member)| {
            member.epoch == *epoch && *member.run_id == *self.seen[*index].run_id
        });
        voters.map(|(index, _)| self.seen[*index].node).collect()
    }

    /// The id of a voter.
    fn id_of(&self, node: Node) -> Option<u64> {
        let found = self
            .members
            .iter()
            .find(|(index, _)| self.seen[*index].node == node);
        found.map(|(_, member)| member.id)
    }

    /// Which member of the latest epoch a node without a vote is: the one that its mark names, the
    /// one that was at its address, or the one at the address that it is to replace.
    ///
    /// # Errors
    ///
    /// None of these: the node may be one that another server has replaced since. These are the
    /// addresses of the members that no node with a mark is, which may be elsewhere.
    pub fn place_of(
        &self,
        node: Node,
        address: &str,
        replaced: Option<&str>,
    ) -> Result<u64, Vec<Arc<str>>> {
        let voters = self.voters(&self.epoch);
        let taken: Vec<u64> = voters
            .iter()
            .filter_map(|voter| self.id_of(voter))
            .collect();
        let own = self
            .id_of(node)
            .filter(|id| self.epoch.has(*id) && !taken.contains(id));
        let found = own
            .or_else(|| self.left_at(address))
            .or_else(|| self.left_at(replaced?));
        found.ok_or_else(|| {
            let left = self.left();
            left.map(|place| Arc::clone(&place.address)).collect()
        })
    }

    /// The places of the latest epoch that are left to nodes that do not show which member they
    /// were: a node that shows it has the place before one that does not.
    fn left(&self) -> impl Iterator<Item = &MemberAddress> {
        let places = self.epoch.members.iter();
        places.filter(|place| self.members.iter().all(|(_, member)| member.id != place.id))
    }

    /// Which member was at this address, if its place is left.
    fn left_at(&self, address: &str) -> Option<u64> {
        let place = self.left().find(|place| *place.address == *address)?;
        Some(place.id)
    }

    /// Does every member keep what it answers?
    pub fn is_durable(&self) -> bool {
        self.members.iter().all(|(_, member)| member.is_durable)
    }
}

/// How many of these members are of this group.
fn count_of_group(members: &[(usize, Member)], id: u64) -> usize {
    let groups = members.iter().map(|(_, member)| member.epoch.group.id);
    groups.filter(|group| *group == id).count()
}

/// The mark that a member is to have.
fn renewed(seen: &NodeMark, member: &Member, epoch: &Epoch, keeps: Option<bool>) -> Member {
    // One that could have forgotten something by its next start must not be believed then, even if
    // it is set up well again.
    let is_durable = member.is_durable && keeps != Some(false);
    let mut new = Member {
        is_durable,
        ..member.clone()
    };
    // What it has forgotten since its last start is known to nobody.
    let has_restarted = *member.run_id != *seen.run_id;
    let may_vote = !has_restarted || is_durable && keeps == Some(true);
    // One that was replaced is not a member of the epochs that follow.
    if may_vote && epoch.has(member.id) {
        new.run_id = seen.run_id.to_string();
        if epoch.group.epoch > member.epoch.group.epoch {
            new.epoch = epoch.clone();
        }
    }
    new
}

#[cfg(test)]
mod tests;
