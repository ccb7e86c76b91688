//! Which nodes may vote on registers, as `src/registers/register/nodes.rs` finds it out.

use super::keys;
use super::shared::{Failure, Shared};
use crate::mistake::Mistake;
use crate::redlock::NodesCaller;
use crate::task::Line;
use redlatch_protocol::engine::{Command, Node, NodeSet, Request};
use redlatch_protocol::node::{Durability, NodeStatus};
use redlatch_protocol::time::Time;
use redlatch_registers::{
    Epoch, GROUP_REGISTER, Group, Mark, MarkStep, Member, MembershipView, NodeMark,
    RegisterCommand, RegisterRequest, Replies,
};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// How long a client waits before it looks again whether nodes without a vote have come back.
const LOOK_PAUSE: Duration = Duration::from_secs(1);

/// A thread of a client, while it is in a call.
#[derive(Clone)]
pub(super) struct Caller {
    pub(super) shared: Rc<Shared>,
    pub(super) line: Line,
    pub(super) worker: usize,
}

/// What a look at the marks of all nodes has shown, and how they keep their data.
pub(super) struct Survey {
    pub(super) view: MembershipView,
    statuses: Vec<NodeStatus>,
}

impl Survey {
    pub(super) fn durability(&self, node: Node) -> Durability {
        Durability::of(&self.statuses[node.index()])
    }
}

impl Caller {
    pub(super) fn now(&self) -> Time {
        self.shared.now.get()
    }

    fn nodes(&self) -> NodeSet {
        NodeSet::all(self.shared.rules.nodes)
    }

    fn request(&self, name: &[u8], mark: Arc<[u8]>, command: RegisterCommand) -> Request {
        let register = RegisterRequest::new(keys(name), mark, command);
        let action = Command::Custom(Arc::new(register));
        Request::to_all(&self.shared.rules, self.now(), action)
    }

    /// Asks all nodes, which are members of this group.
    pub(super) async fn ask(
        &self,
        name: &[u8],
        group: &Group,
        command: RegisterCommand,
    ) -> Replies {
        self.ask_some(name, group.to_bytes(), command, self.nodes())
            .await
    }

    /// Asks some nodes, whose marks begin so.
    pub(super) async fn ask_some(
        &self,
        name: &[u8],
        mark: Arc<[u8]>,
        command: RegisterCommand,
        nodes: NodeSet,
    ) -> Replies {
        let mut request = self.request(name, mark, command);
        request.nodes = nodes;
        Replies::of(&self.line.submit(request).await.said)
    }

    /// Has the nodes remove the keys of a register. Does not wait.
    pub(super) fn collect(&self, name: &[u8], group: &Group, command: RegisterCommand) {
        self.line
            .post(self.request(name, group.to_bytes(), command));
    }

    /// The group, as it was when it was looked at last.
    pub(super) async fn group(&self) -> Result<Group, Failure> {
        let known = self.shared.known.borrow().clone();
        match known {
            Some((epoch, _)) => Ok(epoch.group),
            None => self.learn_group().await,
        }
    }

    /// Goes on with the group after nodes have refused because of their marks.
    pub(super) async fn follow(&self, replies: &Replies, group: &Group) -> Result<Group, Failure> {
        let later = replies.later(group);
        if let Some(later) = &later {
            self.know(later);
        }
        let known = self.shared.known.borrow().clone();
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
        let looked_at = self.shared.known.borrow().as_ref().map(|(_, at)| *at);
        if looked_at.is_none_or(|at| self.now().since(at) >= LOOK_PAUSE) {
            let _ = self.learn_group().await;
        }
    }

    /// Looks at the marks of the nodes, and at how they keep their data.
    pub(super) async fn learn_group(&self) -> Result<Group, Failure> {
        let survey = self.survey().await?;
        let epoch = survey.view.epoch();
        self.enter_all(&survey, epoch).await;
        self.know(epoch);
        Ok(epoch.group.clone())
    }

    /// From now on this client asks the members of this epoch.
    pub(super) fn know(&self, epoch: &Epoch) {
        *self.shared.known.borrow_mut() = Some((epoch.clone(), self.now()));
    }

    pub(super) async fn survey(&self) -> Result<Survey, Failure> {
        let seen = self.mark(&MarkStep::Look, self.nodes()).await;
        let view = MembershipView::new(seen, self.shared.rules.nodes);
        let view = view.map_err(|_| Failure::NoQuorum {
            may_have_happened: false,
        })?;
        let request = Request::examination(&self.shared.rules, self.now());
        Ok(Survey {
            view,
            statuses: self.line.submit(request).await.statuses,
        })
    }

    /// The members enter an epoch.
    pub(super) async fn enter_all(&self, survey: &Survey, epoch: &Epoch) {
        let keeps = |node| survey.durability(node).keeps();
        for (seen, member) in survey.view.renewals(epoch, keeps) {
            self.enter(&seen, &member).await;
        }
        if self.shared.has(Mistake::OlderStateTrusted) {
            self.trust_all(survey, epoch).await;
        }
    }

    /// Gives all nodes that have been members their votes, for a mistake.
    async fn trust_all(&self, survey: &Survey, epoch: &Epoch) {
        for seen in survey.view.seen() {
            let Some(Mark::Member(member)) = seen.read() else {
                continue;
            };
            if epoch.has(member.id) {
                let run_id = seen.run_id.to_string();
                self.enter(
                    seen,
                    &Member {
                        epoch: epoch.clone(),
                        run_id,
                        ..member
                    },
                )
                .await;
            }
        }
    }

    /// Replaces the mark that was seen by that of this member.
    async fn enter(&self, seen: &NodeMark, member: &Member) {
        let Some(bytes) = seen.mark.clone().filter(|_| !member.run_id.is_empty()) else {
            return;
        };
        let step = MarkStep::Enter {
            seen: bytes,
            new: member.to_bytes(),
        };
        self.mark(&step, NodeSet::from_iter([seen.node])).await;
    }

    /// Takes a step with the marks of these nodes. Returns those that have answered.
    pub(super) async fn mark(&self, step: &MarkStep, nodes: NodeSet) -> Vec<NodeMark> {
        let command = RegisterCommand::Mark(step.clone());
        let replies = self
            .ask_some(GROUP_REGISTER, Arc::from([]), command, nodes)
            .await;
        replies.marks()
    }
}
