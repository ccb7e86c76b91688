//! The nodes of a client as those that keep registers: requests to them, which of them may vote,
//! and how they become members of the group.
//!
//! A node votes only while its mark names the group's epoch and the run of the server that the
//! connection leads to: the scripts compare both in the step that acts. So what is known here may
//! be out of date at any time, and costs a round then.

use super::caller::Caller;
use crate::clock;
use crate::core::Core;
use crate::engine::{Node, NodeSet, quorum};
use crate::error::{NoQuorum, RegisterError};
use redlatch_protocol::node::{
    Durability, NodeAnswer, NodeError, NodeReport, NodeStatus, RoundOutcome,
};
use redlatch_registers::{
    Epoch, Group, MarkStep, Member, MembershipView, NoGroup, NodeMark, RegisterCommand,
    RegisterKeys, RegisterReply, RegisterRequest, Replies, no_vote,
};
use std::sync::Arc;
use std::time::Duration;

/// How long a client waits before it looks again whether nodes without a vote have come back, while
/// the others are a majority. A look asks all nodes, and waits for all.
const LOOK_PAUSE: Duration = Duration::from_secs(1);

/// The nodes that keep the registers of a client.
#[derive(Clone, Copy)]
pub(crate) struct RegisterNodes<'a> {
    pub(super) core: &'a Core,
    pub(crate) caller: Caller<'a>,
}

/// A round of requests about a register.
#[derive(Clone)]
pub(super) struct RegisterRound {
    pub(super) replies: Replies,
    reports: Vec<NodeReport>,
    /// Do all nodes tell the watcher when what was read changes?
    pub(super) is_watched: bool,
    /// Whose members were asked, if it was members.
    group: Option<Group>,
}

impl RegisterRound {
    pub(super) fn of(outcome: RoundOutcome) -> Self {
        Self {
            replies: Replies::of(&outcome.said),
            reports: outcome.reports,
            is_watched: outcome.is_watched,
            group: None,
        }
    }

    pub(super) fn url(&self, node: Node) -> Arc<str> {
        Arc::clone(&self.reports[node.index()].url)
    }

    /// The error if a node has a value of another format and no majority has another value.
    pub(super) fn invalid(&self) -> Option<RegisterError> {
        let (node, value) = self.replies.invalid()?;
        Some(RegisterError::OtherFormat {
            url: Some(self.url(node)),
            format: value.format,
        })
    }

    /// Why this node has given no answer.
    pub(super) fn failure(&self, node: Node) -> Option<&NodeError> {
        match &self.reports[node.index()].answer {
            NodeAnswer::Failed(error) => Some(error),
            _ => None,
        }
    }

    /// The error if too few nodes have answered.
    pub(super) fn no_quorum(self, may_have_happened: bool) -> RegisterError {
        let Self {
            replies,
            mut reports,
            group,
            ..
        } = self;
        for (report, reply) in reports.iter_mut().zip(&replies.0) {
            if let (Some(RegisterReply::NoMember(mark)), Some(group)) = (reply, &group) {
                let why = no_vote(mark.as_deref(), Some(group));
                report.answer = NodeAnswer::Failed(NodeError::NoVote(why));
            }
        }
        RegisterError::NoQuorum {
            error: NoQuorum::new(reports),
            may_have_happened,
        }
    }

    /// The error if not all nodes have answered, and all must.
    pub(super) fn not_all(self) -> RegisterError {
        let error = NoQuorum::of_all(self.reports);
        RegisterError::NoQuorum {
            error,
            may_have_happened: false,
        }
    }
}

impl RegisterNodes<'_> {
    pub(super) fn count(&self) -> usize {
        self.core.rules.nodes
    }

    pub(super) fn all(&self) -> NodeSet {
        NodeSet::all(self.count())
    }

    /// Asks all nodes, which are members of this group.
    pub(super) async fn ask(
        &self,
        keys: &RegisterKeys,
        group: &Group,
        command: RegisterCommand,
    ) -> RegisterRound {
        let request = RegisterRequest::new(keys.clone(), group.to_bytes(), command);
        let round = self.caller.ask(request, self.all()).await;
        self.note_answers(&round);
        RegisterRound {
            group: Some(group.clone()),
            ..round
        }
    }

    /// Has the nodes remove the keys of a register for which nothing was accepted. Does not wait.
    pub(super) fn forget_promises(&self, keys: &RegisterKeys, group: &Group) {
        let command = RegisterCommand::Collect(None);
        let request = RegisterRequest::new(keys.clone(), group.to_bytes(), command);
        self.caller.tell(request);
    }
}

// The marks of the nodes, and the group that they are.

/// What a look at the marks of all nodes has shown, and how they keep their data.
pub(super) struct GroupInspection {
    pub(super) view: MembershipView,
    pub(super) round: RegisterRound,
    statuses: Vec<NodeStatus>,
}

impl GroupInspection {
    pub(super) fn durability(&self, node: Node) -> Durability {
        Durability::of(&self.statuses[node.index()])
    }

    /// The error if too few nodes have a vote.
    pub(super) fn without_majority(self) -> RegisterError {
        let Self {
            view, mut round, ..
        } = self;
        let voters = view.voters(view.epoch());
        for seen in view
            .seen()
            .iter()
            .filter(|seen| !voters.contains(seen.node))
        {
            let why = NodeError::NoVote(seen.no_vote(Some(view.epoch())));
            round.reports[seen.node.index()].answer = NodeAnswer::Failed(why);
        }
        round.no_quorum(false)
    }
}

impl RegisterNodes<'_> {
    /// Takes a step with the marks of these nodes. Returns those that have answered.
    pub(super) async fn mark(
        &self,
        step: &MarkStep,
        nodes: NodeSet,
    ) -> (Vec<NodeMark>, RegisterRound) {
        let request = RegisterRequest::of_marks(&self.core.key_prefix, step.clone());
        let round = self.caller.ask(request, nodes).await;
        (round.replies.marks(), round)
    }

    /// Looks at the marks of the nodes, and at how they keep their data.
    pub(super) async fn inspect_group(&self) -> Result<GroupInspection, RegisterError> {
        let (seen, round) = self.mark(&MarkStep::Look, self.all()).await;
        let answered: NodeSet = seen.iter().map(|it| it.node).collect();
        let is_known = answered.len() >= quorum(self.count());
        let view = MembershipView::new(seen, self.count()).map_err(|error| match error {
            NoGroup::Differs(node) => RegisterError::NodesDiffer {
                url: round.url(node),
            },
            NoGroup::NoMember if is_known => RegisterError::NotFormed,
            NoGroup::NoMember => round.clone().no_quorum(false),
        })?;
        // One that was waited for in vain is not waited for again.
        Ok(GroupInspection {
            view,
            round,
            statuses: self.caller.servers(answered).await,
        })
    }

    /// The group, as it was when it was looked at last.
    pub(crate) async fn group(&self) -> Result<Group, RegisterError> {
        let known = self.caller.memory().group().clone();
        match known {
            Some((epoch, _)) => Ok(epoch.group),
            None => self.learn_group().await,
        }
    }

    /// Goes on with the group after nodes have refused because of their marks.
    ///
    /// A look at all marks takes several rounds, and a value remembers only its last changes: so
    /// where a node has named a later epoch, or is in an earlier one, that is acted on at once.
    pub(super) async fn follow(
        &self,
        replies: &Replies,
        group: &Group,
    ) -> Result<Group, RegisterError> {
        let later = replies.later(group);
        if let Some(later) = &later {
            self.know(later);
        }
        let known = self.caller.memory().group().clone();
        let Some((epoch, _)) = known else {
            return self.learn_group().await;
        };
        let behind = replies.behind(&epoch);
        if later.is_none() && behind.is_empty() {
            return self.learn_group().await;
        }
        for (node, step) in behind {
            self.mark(&step, NodeSet::from_iter([node])).await;
        }
        Ok(epoch.group)
    }

    /// Gives nodes that have come back their vote again, unless that was tried a moment ago.
    pub(super) async fn renew_votes(&self) {
        let looked_at = self.caller.memory().group().as_ref().map(|(_, at)| *at);
        if looked_at.is_none_or(|at| clock::now().since(at) >= LOOK_PAUSE) {
            // What it finds wrong has no effect while there is a majority.
            let _ = self.learn_group().await;
        }
    }

    /// Looks at the marks of the nodes, and at how they keep their data. Nodes that were started
    /// again, and have kept all that they answered, get the mark of their new run; those of an
    /// earlier epoch enter the latest.
    pub(super) async fn learn_group(&self) -> Result<Group, RegisterError> {
        let inspection = self.inspect_group().await?;
        let epoch = inspection.view.epoch();
        let entered = self.enter_all(&inspection, epoch).await;
        self.know(epoch);
        let voters = inspection
            .view
            .voters(epoch)
            .iter()
            .chain(entered)
            .collect();
        self.note_voters(&inspection, voters);
        Ok(epoch.group.clone())
    }

    /// From now on this client asks the members of this epoch.
    pub(super) fn know(&self, epoch: &Epoch) {
        *self.caller.memory().group() = Some((epoch.clone(), clock::now()));
    }

    /// The members enter an epoch. Returns those that vote in it since.
    pub(super) async fn enter_all(&self, inspection: &GroupInspection, epoch: &Epoch) -> Vec<Node> {
        let renewals = inspection
            .view
            .renewals(epoch, |node| inspection.durability(node).keeps());
        let mut voters = Vec::new();
        for (seen, member) in renewals {
            let votes = member.epoch == *epoch && *member.run_id == *seen.run_id;
            if self.enter(&seen, &member).await && votes {
                voters.push(seen.node);
            }
        }
        voters
    }

    /// Replaces the mark that was seen by that of this member. Returns whether the node has it now.
    pub(super) async fn enter(&self, seen: &NodeMark, member: &Member) -> bool {
        let Some(bytes) = seen.mark.clone().filter(|_| !member.run_id.is_empty()) else {
            return false;
        };
        let new = member.to_bytes();
        let step = MarkStep::Enter {
            seen: bytes,
            new: Arc::clone(&new),
        };
        let (now, _) = self.mark(&step, NodeSet::from_iter([seen.node])).await;
        now.first().is_some_and(|now| now.mark == Some(new))
    }
}
