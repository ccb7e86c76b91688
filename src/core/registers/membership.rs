//! Which nodes may vote on registers: what a client knows of the group, and how nodes become its
//! members.
//!
//! A node votes only while its mark names the group's epoch and the run of the server that the
//! connection leads to: the scripts compare both in the step that acts. So what is known here may
//! be out of date at any time, and costs a round then.

use super::ReportedVotes;
use super::Survey;
use crate::clock::{self, Time};
use crate::core::Core;
use crate::engine::{Command, Node, NodeSet, Request};
use crate::error::{NoQuorum, RegisterError};
use crate::node::{NodeAnswer, NodeError, NodeReport, NodeStatus, RoundOutcome};
use crate::redlock::Redlock;
use crate::registers::{
    Epoch, GROUP_REGISTER, Group, MarkStep, Member, RegisterCommand, RegisterKeys, RegisterReply,
    RegisterRequest, Replies, Seen, memberships, no_vote,
};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How long a client waits before it looks again whether nodes without a vote have come back, while
/// the others are a majority. A look asks all nodes, and waits for all.
const LOOK_PAUSE: Duration = Duration::from_secs(1);

/// What a client knows of the group.
#[derive(Debug, Default)]
pub(crate) struct Membership {
    /// The latest epoch of the group, and when it was looked at.
    known: Mutex<Option<(Epoch, Time)>>,
    pub(super) reported: ReportedVotes,
}

impl Membership {
    fn known(&self) -> MutexGuard<'_, Option<(Epoch, Time)>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The answers to a request about a register.
#[derive(Clone)]
pub(crate) struct Asked {
    pub(crate) replies: Replies,
    pub(super) reports: Vec<NodeReport>,
    /// Do all nodes tell the watcher when what was read changes?
    pub(crate) is_watched: bool,
    /// Whose members were asked, if it was members.
    pub(super) group: Option<Group>,
}

impl Asked {
    pub(crate) fn url(&self, node: Node) -> Arc<str> {
        Arc::clone(&self.reports[node.index()].url)
    }

    /// The error if a node has a value of another format, where that is in the way.
    pub(crate) fn invalid(&self) -> Option<RegisterError> {
        let (node, value) = self.replies.invalid()?;
        Some(RegisterError::OtherFormat { url: Some(self.url(node)), format: value.format })
    }

    /// Why this node has given no answer.
    pub(super) fn failure(&self, node: Node) -> Option<&NodeError> {
        match &self.reports[node.index()].answer {
            NodeAnswer::Failed(error) => Some(error),
            _ => None,
        }
    }

    /// The error if they are too few.
    pub(crate) fn no_quorum(self, may_have_happened: bool) -> RegisterError {
        let Self { replies, mut reports, group, .. } = self;
        for (report, reply) in reports.iter_mut().zip(&replies.0) {
            if let (Some(RegisterReply::NoMember(mark)), Some(group)) = (reply, &group) {
                let why = no_vote(mark.as_deref(), Some(group));
                report.answer = NodeAnswer::Failed(NodeError::NoVote(why));
            }
        }
        RegisterError::NoQuorum { error: NoQuorum::new(reports), may_have_happened }
    }
}

impl Core {
    /// The nodes that keep registers.
    pub(crate) fn register_nodes(&self) -> Result<&Redlock, RegisterError> {
        if self.is_forked() {
            return Err(RegisterError::OtherProcess);
        }
        self.registers.nodes.as_deref().ok_or(RegisterError::ZooKeeper)
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
        let asked = self.ask_some(redlock, keys, group.to_bytes(), command, nodes);
        self.note_answers(&asked);
        Asked { group: Some(group.clone()), ..asked }
    }

    /// Asks some nodes, whose marks begin so.
    pub(super) fn ask_some(
        &self,
        redlock: &Redlock,
        keys: &RegisterKeys,
        mark: Arc<[u8]>,
        command: RegisterCommand,
        nodes: NodeSet,
    ) -> Asked {
        let request = Request { nodes, ..self.register_request(keys, mark, command) };
        let RoundOutcome { said, is_watched, reports, .. } = redlock.net.submit(request);
        Asked { replies: Replies::of(&said), reports, is_watched, group: None }
    }

    /// A request to all nodes.
    fn register_request(
        &self,
        keys: &RegisterKeys,
        epoch: Arc<[u8]>,
        command: RegisterCommand,
    ) -> Request {
        let (keys, run_id) = (keys.clone(), Arc::from(""));
        let register = Arc::new(RegisterRequest { keys, epoch, run_id, command });
        Request::to_all(&self.rules, clock::now(), Command::Custom(register))
    }

    /// Has the nodes remove the keys of a register for which nothing was accepted. Does not wait.
    pub(crate) fn forget_promises(&self, redlock: &Redlock, keys: &RegisterKeys, group: &Group) {
        let command = RegisterCommand::Collect(None);
        redlock.post(self.register_request(keys, group.to_bytes(), command));
    }

    /// The group, as it was when it was looked at last.
    pub(crate) fn group(&self, redlock: &Redlock) -> Result<Group, RegisterError> {
        let known = self.registers.membership.known().clone();
        known.map_or_else(|| self.learn_group(redlock), |(epoch, _)| Ok(epoch.group))
    }

    /// Goes on with the group after nodes have refused because of their marks.
    ///
    /// A look at all marks takes several rounds, and a value remembers only its last changes: so
    /// where a node has named a later epoch, or is in an earlier one, that is acted on at once.
    pub(crate) fn follow(
        &self,
        redlock: &Redlock,
        replies: &Replies,
        group: &Group,
    ) -> Result<Group, RegisterError> {
        let later = replies.later(group);
        if let Some(later) = &later {
            self.know(later);
        }
        let known = self.registers.membership.known().clone();
        let Some(epoch) = known.map(|(epoch, _)| epoch) else { return self.learn_group(redlock) };
        let behind = replies.behind(&epoch);
        if later.is_none() && behind.is_empty() {
            return self.learn_group(redlock);
        }
        for (node, step) in behind {
            self.mark(redlock, &step, NodeSet::from_iter([node]));
        }
        Ok(epoch.group)
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
        let survey = self.survey(redlock)?;
        let epoch = survey.census.epoch();
        let entered = self.enter_all(redlock, &survey, epoch);
        self.know(epoch);
        self.note_voters(&survey, survey.census.voters(epoch).iter().chain(entered).collect());
        Ok(epoch.group.clone())
    }

    /// From now on this client asks the members of this epoch.
    pub(super) fn know(&self, epoch: &Epoch) {
        *self.registers.membership.known() = Some((epoch.clone(), clock::now()));
    }

    /// The members enter an epoch. Returns those that vote in it since.
    pub(super) fn enter_all(&self, redlock: &Redlock, survey: &Survey, epoch: &Epoch) -> Vec<Node> {
        let keeps = |node| survey.durability(node).keeps();
        let mut renewals = survey.census.renewals(epoch, keeps);
        renewals.retain(|(seen, member)| {
            let votes = member.epoch == *epoch && *member.run_id == *seen.run_id;
            self.enter(redlock, seen, member) && votes
        });
        renewals.into_iter().map(|(seen, _)| seen.node).collect()
    }

    /// Replaces the mark that was seen by that of this member. Returns whether the node has it now.
    pub(super) fn enter(&self, redlock: &Redlock, seen: &Seen, member: &Member) -> bool {
        let Some(bytes) = seen.mark.clone().filter(|_| !member.run_id.is_empty()) else {
            return false;
        };
        let new = member.to_bytes();
        let step = MarkStep::Enter { seen: bytes, new: Arc::clone(&new) };
        let now = self.mark(redlock, &step, NodeSet::from_iter([seen.node])).0;
        now.first().is_some_and(|now| now.mark == Some(new))
    }

    /// Notes in the statuses of the nodes whether each has a vote. Of one that does not answer, or
    /// that this user may not ask, that stays unknown.
    pub(crate) fn note_votes(&self, redlock: &Redlock, statuses: &mut [NodeStatus]) {
        let is_asked = |status: &NodeStatus| {
            // One that has just been waited for in vain is not waited for again.
            let is_late = matches!(status.last_error, Some(NodeError::TimedOut(_)));
            status.is_connected && !is_late
        };
        let asked = statuses.iter().enumerate().filter(|(_, status)| is_asked(status));
        let asked: NodeSet = asked.map(|(index, _)| Node::new(index)).collect();
        if asked.is_empty() {
            return;
        }
        let seen = self.mark(redlock, &MarkStep::Look, asked).0;
        for (node, membership) in memberships(&seen, self.rules.nodes) {
            statuses[node.index()].registers = Some(membership);
        }
    }

    pub(super) fn mark_all(&self, redlock: &Redlock, step: &MarkStep) -> (Vec<Seen>, Asked) {
        self.mark(redlock, step, NodeSet::all(self.rules.nodes))
    }

    /// Takes a step with the marks of these nodes. Returns those that have answered.
    pub(super) fn mark(
        &self,
        redlock: &Redlock,
        step: &MarkStep,
        nodes: NodeSet,
    ) -> (Vec<Seen>, Asked) {
        let keys = RegisterKeys::new(&self.key_prefix, GROUP_REGISTER);
        let command = RegisterCommand::Mark(step.clone());
        let asked = self.ask_some(redlock, &keys, Arc::from([]), command, nodes);
        let seen = asked.replies.0.iter().enumerate().filter_map(|(index, reply)| match reply {
            Some(RegisterReply::Mark { mark, run_id }) => Some(Seen {
                node: Node::new(index),
                mark: mark.clone(),
                run_id: Arc::clone(run_id),
            }),
            _ => None,
        });
        (seen.collect(), asked)
    }
}
