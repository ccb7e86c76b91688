//! Which nodes may vote on registers: what a client knows of the group, and how nodes become its
//! members.
//!
//! A node votes only while its mark names the group's epoch and the run of the server that the
//! connection leads to: the scripts compare both in the step that acts. So what is known here may
//! be out of date at any time, and costs a round then.

use super::durability::Durability;
use super::{Backend, Core, Redlock};
use crate::clock::{self, Time};
use crate::engine::register::{
    Group, Mark, MarkStep, Member, RegisterCommand, RegisterKeys, RegisterReply, RegisterRequest,
    Replies,
};
use crate::engine::{Action, Node, NodeSet, Request};
use crate::error::{NoQuorum, RegisterError};
use crate::node::{NoVote, NodeAnswer, NodeError, NodeReport, NodeStatus, RoundResult};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How long a client waits before it looks again whether nodes without a vote have come back, while
/// the others are a majority. A look asks all nodes, and waits for all.
const LOOK_PAUSE: Duration = Duration::from_secs(1);

/// What a client knows of the group.
#[derive(Debug, Default)]
pub(crate) struct Membership {
    /// The group, and when it was looked at.
    known: Mutex<Option<(Group, Time)>>,
}

impl Membership {
    fn known(&self) -> MutexGuard<'_, Option<(Group, Time)>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The answers to a request about a register.
pub(crate) struct Asked {
    pub(crate) replies: Replies,
    reports: Vec<NodeReport>,
}

impl Asked {
    pub(super) fn url(&self, node: Node) -> Arc<str> {
        Arc::clone(&self.reports[node.index()].url)
    }

    /// The error if they are too few.
    pub(crate) fn no_quorum(self, may_have_happened: bool) -> RegisterError {
        let Self { replies, mut reports } = self;
        for (report, reply) in reports.iter_mut().zip(&replies.0) {
            if let Some(RegisterReply::NoMember(mark)) = reply {
                let why = match mark {
                    None => NoVote::NoMark,
                    Some(_) => NoVote::OtherMark,
                };
                report.answer = NodeAnswer::Failed(NodeError::NoVote(why));
            }
        }
        RegisterError::NoQuorum { error: NoQuorum::new(reports), may_have_happened }
    }
}

/// A node, as a look at its mark shows it.
pub(super) struct Seen {
    pub(super) node: Node,
    /// The mark, as it is written there.
    pub(super) bytes: Option<Arc<[u8]>>,
    pub(super) run_id: Arc<str>,
}

impl Seen {
    fn member(&self) -> Option<Member> {
        match self.bytes.as_deref().map(Mark::read) {
            Some(Mark::Member(member)) => Some(member),
            _ => None,
        }
    }
}

impl Core {
    /// The nodes that keep registers.
    pub(crate) fn register_nodes(&self) -> Result<&Redlock, RegisterError> {
        if self.is_forked() {
            return Err(RegisterError::OtherProcess);
        }
        match &self.backend {
            Backend::Redlock(redlock) => Ok(redlock),
            #[cfg(feature = "zookeeper")]
            Backend::ZooKeeper(_) => Err(RegisterError::ZooKeeper),
        }
    }

    /// Asks all nodes, which are members of this group.
    pub(crate) fn ask(
        &self,
        redlock: &Redlock,
        keys: &RegisterKeys,
        group: &Group,
        command: RegisterCommand,
    ) -> Asked {
        let nodes = NodeSet::all(self.rules.nodes);
        self.ask_some(redlock, keys, Some(group), command, nodes)
    }

    fn ask_some(
        &self,
        redlock: &Redlock,
        keys: &RegisterKeys,
        group: Option<&Group>,
        command: RegisterCommand,
        nodes: NodeSet,
    ) -> Asked {
        let request = Request { nodes, ..self.register_request(keys, group, command) };
        match redlock.net.submit(request) {
            RoundResult::Register { replies, reports } => Asked { replies, reports },
            other => unreachable!("the request was about a register, the result is {other:?}"),
        }
    }

    /// A request to all nodes.
    fn register_request(
        &self,
        keys: &RegisterKeys,
        group: Option<&Group>,
        command: RegisterCommand,
    ) -> Request {
        let epoch = group.map_or_else(|| Arc::from([]), Group::to_bytes);
        let (keys, run_id) = (keys.clone(), Arc::from(""));
        let register = Box::new(RegisterRequest { keys, epoch, run_id, command });
        Request::to_all(&self.rules, clock::now(), Action::Register(register))
    }

    /// Has the nodes remove the keys of a register for which nothing was accepted. Does not wait.
    pub(crate) fn forget_promises(&self, keys: &RegisterKeys, group: &Group) {
        self.post(self.register_request(keys, Some(group), RegisterCommand::Collect(None)));
    }

    /// The group, as it was when it was looked at last.
    pub(crate) fn group(&self, redlock: &Redlock) -> Result<Group, RegisterError> {
        let known = self.registers.membership.known().clone();
        known.map_or_else(|| self.learn_group(redlock), |(group, _)| Ok(group))
    }

    /// Gives nodes that have come back their vote again, unless that was tried a moment ago.
    pub(crate) fn renew_votes(&self, redlock: &Redlock) {
        let looked_at = self.registers.membership.known().as_ref().map(|(_, at)| *at);
        if looked_at.is_none_or(|at| clock::now().since(at) >= LOOK_PAUSE) {
            // What it finds wrong has no effect while there is a majority.
            let _ = self.learn_group(redlock);
        }
    }

    /// Looks at the marks of the nodes, and at how they keep their data. Nodes that were started
    /// again, and have kept all that they answered, get the mark of their new run; those of an
    /// earlier epoch enter the latest.
    pub(crate) fn learn_group(&self, redlock: &Redlock) -> Result<Group, RegisterError> {
        let keys = self.member_keys();
        let (seen, asked) = self.mark_all(redlock, &keys, MarkStep::Look);
        let members: Vec<(&Seen, Member)> =
            seen.iter().filter_map(|it| Some((it, it.member()?))).collect();
        if members.is_empty() {
            let is_known = seen.len() > self.rules.nodes / 2;
            return Err(match is_known {
                true => RegisterError::NotFormed,
                false => asked.no_quorum(false),
            });
        }
        // A node of another group has no vote. Without a majority of one, the nodes are no group.
        let count = |id: u64| members.iter().filter(|(_, it)| it.group.id == id).count();
        let of_most = members.iter().map(|(_, it)| &it.group);
        let of_most = of_most.filter(|it| it.nodes == self.rules.nodes);
        let latest = of_most.max_by_key(|it| (count(it.id), it.epoch)).cloned();
        let is_other = |it: &Group| latest.as_ref().is_none_or(|latest| latest.id != it.id);
        let other = members.iter().find(|(_, member)| is_other(&member.group));
        let is_group = |it: &Group| other.is_none() || count(it.id) > self.rules.nodes / 2;
        let Some(group) = latest.filter(is_group) else {
            let node = other.map_or(members[0].0.node, |(seen, _)| seen.node);
            return Err(RegisterError::NodesDiffer { url: asked.url(node) });
        };
        let statuses = self.examine(redlock);
        for (seen, member) in members.iter().filter(|(_, member)| member.group.id == group.id) {
            // A replica has the mark of its master.
            if members.iter().filter(|(_, other)| other.id == member.id).count() > 1 {
                continue;
            }
            let durability = Durability::of(&statuses[seen.node.index()]);
            self.renew(redlock, &keys, (seen, member), &group, durability);
        }
        *self.registers.membership.known() = Some((group.clone(), clock::now()));
        Ok(group)
    }

    /// Gives a node the mark of its present run, and of this epoch of its group.
    fn renew(
        &self,
        redlock: &Redlock,
        keys: &RegisterKeys,
        (seen, member): (&Seen, &Member),
        group: &Group,
        durability: Durability,
    ) {
        // One that could have forgotten something by its next start must not be believed then, even
        // if it is set up well again.
        let is_durable = member.is_durable && !matches!(durability, Durability::Lacks(_));
        let mut new = Member { is_durable, ..member.clone() };
        // What it has forgotten since its last start is known to nobody.
        let has_restarted = *member.run_id != *seen.run_id;
        if !has_restarted || is_durable && durability == Durability::Whole {
            new.run_id = seen.run_id.to_string();
            new.group = group.clone();
        }
        if new != *member {
            self.enter(redlock, keys, seen, &new);
        }
    }

    /// Replaces the mark that was seen by that of this member. Returns whether the node has it now.
    pub(super) fn enter(
        &self,
        redlock: &Redlock,
        keys: &RegisterKeys,
        seen: &Seen,
        member: &Member,
    ) -> bool {
        let Some(bytes) = seen.bytes.clone().filter(|_| !member.run_id.is_empty()) else {
            return false;
        };
        let new = member.to_bytes();
        let step = MarkStep::Enter { seen: bytes, new: Arc::clone(&new) };
        let (command, nodes) = (RegisterCommand::Mark(step), NodeSet::from_iter([seen.node]));
        let asked = self.ask_some(redlock, keys, None, command, nodes);
        match &asked.replies.0[seen.node.index()] {
            Some(RegisterReply::Mark { mark: Some(mark), .. }) => *mark == new,
            _ => false,
        }
    }

    pub(super) fn member_keys(&self) -> RegisterKeys {
        RegisterKeys::new(&self.key_prefix, b"")
    }

    pub(super) fn mark_all(
        &self,
        redlock: &Redlock,
        keys: &RegisterKeys,
        step: MarkStep,
    ) -> (Vec<Seen>, Asked) {
        let (command, nodes) = (RegisterCommand::Mark(step), NodeSet::all(self.rules.nodes));
        let asked = self.ask_some(redlock, keys, None, command, nodes);
        let seen = asked.replies.0.iter().enumerate().filter_map(|(index, reply)| match reply {
            Some(RegisterReply::Mark { mark, run_id }) => Some(Seen {
                node: Node::new(index),
                bytes: mark.clone(),
                run_id: Arc::clone(run_id),
            }),
            _ => None,
        });
        (seen.collect(), asked)
    }

    /// Asks all nodes about the state of their servers.
    pub(crate) fn examine(&self, redlock: &Redlock) -> Vec<NodeStatus> {
        match redlock.net.submit(Request::examination(&self.rules, clock::now())) {
            RoundResult::Ping(statuses) => statuses,
            other => unreachable!("the result of a ping is {other:?}"),
        }
    }
}
