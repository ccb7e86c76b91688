//! A repairer: it gives nodes without a vote their vote again, as
//! `src/registers/register/repair.rs` does it, in rounds, or with a mistake.

use crate::decision::Decision;
use crate::membership::{Ask, Learnt, Membership, ask_mark};
use crate::mistake::Mistake;
use crate::server::{Asked, GROUP, address_of, place_at};
use redlatch_protocol::engine::{Node, quorum};
use redlatch_registers::{
    Epoch, MarkStep, Member, MembershipView, NodeMark, Refill, RefillEnd, RefillStep,
    RegisterReply, Replies,
};
use std::sync::Arc;

/// How many epochs a call begins for each node at most.
const ATTEMPTS_PER_NODE: usize = 3;

/// A node that is to get a vote, and the epoch in which it does if that one is decided.
#[derive(Clone, Debug)]
pub(crate) struct Repair {
    target: NodeMark,
    pub(crate) before: Epoch,
    pub(crate) proposed: Epoch,
    id: u64,
}

#[derive(Clone, Debug)]
enum Stage {
    Idle,
    /// The members enter the latest epoch.
    Learning,
    /// The marks are looked at.
    Surveying,
    /// The first of these nodes gives up its mark, and takes the place of this member.
    Joining(Box<MembershipView>, Vec<NodeMark>, u64),
    Deciding(Box<Repair>, Box<Decision>),
    /// The members enter what was decided.
    Entering(Box<Repair>, Epoch),
    /// It is looked who has.
    Gathering(Box<Repair>, Epoch),
    Refilling(Box<Repair>, Box<Refill>),
}

/// How a call ends.
pub(crate) enum Ended {
    Repaired,
    Failed,
}

#[derive(Clone, Debug)]
pub(crate) struct Repairer {
    index: u8,
    nodes: usize,
    /// How many calls it has begun.
    pub(crate) begun: u8,
    attempts: usize,
    /// How many numbers it has drawn.
    drawn: u64,
    membership: Membership,
    stage: Stage,
    /// How many nodes it has given a vote.
    pub(crate) entered: u64,
}

/// What it does next: asks, or ends.
pub(crate) type Next = Result<Ask, Ended>;

impl Repairer {
    pub(crate) fn new(index: usize, nodes: usize) -> Self {
        let membership = Membership::new(nodes, None);
        let stage = Stage::Idle;
        let index = index as u8;
        Self {
            index,
            nodes,
            begun: 0,
            attempts: 0,
            drawn: 0,
            membership,
            stage,
            entered: 0,
        }
    }

    pub(crate) fn is_idle(&self) -> bool {
        matches!(self.stage, Stage::Idle)
    }

    /// A number that nobody else draws.
    fn draw(&mut self) -> u64 {
        self.drawn += 1;
        1000 * (u64::from(self.index) + 1) + self.drawn
    }

    /// Begins a call.
    pub(crate) fn begin(&mut self) -> Ask {
        (self.begun, self.attempts) = (self.begun + 1, 0);
        self.learn()
    }

    fn learn(&mut self) -> Ask {
        self.attempts += 1;
        self.stage = Stage::Learning;
        self.membership.learn(None)
    }

    fn end(&mut self, ended: Ended) -> Next {
        self.stage = Stage::Idle;
        Err(ended)
    }

    /// Takes the answers of a round; or, if one was asked for, a list of names.
    pub(crate) fn hear(
        &mut self,
        replies: &Replies,
        names: Option<Vec<Arc<[u8]>>>,
        mistake: Option<Mistake>,
    ) -> Next {
        match std::mem::replace(&mut self.stage, Stage::Idle) {
            Stage::Idle => unreachable!("nothing was asked"),
            Stage::Learning => match self.membership.hear(replies) {
                Learnt::Ask(ask) => self.go_on(Stage::Learning, ask),
                Learnt::Known => self.go_on(Stage::Surveying, self.membership.look()),
                Learnt::Nothing => self.end(Ended::Failed),
            },
            Stage::Surveying => self.surveyed(replies),
            Stage::Joining(view, left, place) => self.joined(*view, left, place, replies, mistake),
            Stage::Deciding(repair, mut decision) => {
                match decision.hear(&mut self.membership, &repair, replies) {
                    Ok(ask) => self.go_on(Stage::Deciding(repair, decision), ask),
                    Err(Some(decided)) => self.enter(repair, decided, mistake),
                    Err(None) => self.end(Ended::Failed),
                }
            }
            Stage::Entering(repair, decided) => match self.membership.hear(replies) {
                Learnt::Ask(ask) => self.go_on(Stage::Entering(repair, decided), ask),
                Learnt::Known => {
                    self.go_on(Stage::Gathering(repair, decided), self.membership.look())
                }
                Learnt::Nothing => self.end(Ended::Failed),
            },
            Stage::Gathering(repair, decided) => self.gathered(repair, &decided, replies, mistake),
            Stage::Refilling(repair, mut refill) => {
                match refill.poll() {
                    RefillStep::List(node) => refill.listed(listed(node, &repair, names, mistake)),
                    _ => refill.handle(&copied(replies, mistake)),
                }
                self.refill(repair, refill, mistake)
            }
        }
    }

    fn go_on(&mut self, stage: Stage, ask: Ask) -> Next {
        self.stage = stage;
        Ok(ask)
    }

    fn surveyed(&mut self, replies: &Replies) -> Next {
        let Ok(view) = MembershipView::new(replies.marks(), self.nodes) else {
            return self.end(Ended::Failed);
        };
        let voters = view.voters(view.epoch());
        if voters.len() < quorum(self.nodes) {
            return self.end(Ended::Failed);
        }
        let mut without = view.seen().to_vec();
        without.retain(|seen| !voters.contains(seen.node));
        if without.is_empty() {
            let all = view.seen().len() == self.nodes;
            return self.end(if all { Ended::Repaired } else { Ended::Failed });
        }
        self.join(view, without)
    }

    /// The first of these nodes whose place is known begins to join.
    fn join(&mut self, view: MembershipView, mut left: Vec<NodeMark>) -> Next {
        while let Some(first) = left.first() {
            if let Ok(place) = view.place_of(first.node, &address_of(first.node), None) {
                let seen = first.mark.clone().unwrap_or_default();
                let ask = vec![ask_mark(first.node.index(), MarkStep::Join { seen })];
                return self.go_on(Stage::Joining(Box::new(view), left, place), ask);
            }
            left.remove(0);
        }
        self.end(Ended::Failed)
    }

    fn joined(
        &mut self,
        view: MembershipView,
        mut left: Vec<NodeMark>,
        place: u64,
        replies: &Replies,
        mistake: Option<Mistake>,
    ) -> Next {
        let before = left.remove(0);
        let now = replies
            .marks()
            .pop()
            .filter(|it| it.mark != before.mark && it.joining().is_some());
        let Some(target) = now else {
            return self.join(view, left);
        };
        let id = self.draw();
        let token = self.draw();
        let before = view.epoch().clone();
        let new = place_at(target.node.index(), id);
        let keeps = mistake == Some(Mistake::RefillKeepsEpoch);
        let proposed = if keeps {
            before.clone()
        } else {
            before.with((place, new), token)
        };
        let id = if keeps { place } else { id };
        let repair = Box::new(Repair {
            target,
            before,
            proposed: proposed.clone(),
            id,
        });
        if keeps || mistake == Some(Mistake::NextEpochUndecided) {
            return self.enter(repair, proposed, mistake);
        }
        let owner = [b'R', b'0' + self.index, b'0' + self.drawn as u8];
        let known = self.membership.known.as_ref().expect("it was looked at");
        let (decision, ask) = Decision::begin(owner, known.group.clone(), self.nodes, &repair);
        self.go_on(Stage::Deciding(repair, Box::new(decision)), ask)
    }

    /// The members enter what was decided.
    fn enter(&mut self, repair: Box<Repair>, decided: Epoch, mistake: Option<Mistake>) -> Next {
        if mistake == Some(Mistake::CopiedBeforeEntered) {
            let ask = self.membership.look();
            return self.go_on(Stage::Gathering(repair, decided), ask);
        }
        let ask = self.membership.learn(Some(decided.clone()));
        self.go_on(Stage::Entering(repair, decided), ask)
    }

    fn gathered(
        &mut self,
        repair: Box<Repair>,
        decided: &Epoch,
        replies: &Replies,
        mistake: Option<Mistake>,
    ) -> Next {
        let Ok(view) = MembershipView::new(replies.marks(), self.nodes) else {
            return self.end(Ended::Failed);
        };
        self.membership.known = Some(view.epoch().clone());
        if *decided != repair.proposed {
            return self.again();
        }
        let run_id = repair.target.run_id.to_string();
        let member = Member {
            epoch: decided.clone(),
            run_id,
            id: repair.id,
            is_durable: false,
        };
        let voters = match mistake {
            Some(Mistake::CopiedBeforeEntered) => view.voters(&repair.before),
            _ => view.voters(decided),
        };
        let sources = view.seen().iter().filter(|seen| voters.contains(seen.node));
        let sources: Vec<NodeMark> = sources.cloned().collect();
        match Refill::new(repair.target.clone(), member, sources) {
            Some(refill) => self.refill(repair, Box::new(refill), mistake),
            None => self.end(Ended::Failed),
        }
    }

    fn refill(
        &mut self,
        repair: Box<Repair>,
        mut refill: Box<Refill>,
        mistake: Option<Mistake>,
    ) -> Next {
        let ask = match refill.poll() {
            RefillStep::List(node) => vec![(node.index(), None)],
            RefillStep::Ask {
                nodes,
                mark,
                name,
                command,
            } => {
                let is_early = mistake == Some(Mistake::CopiedBeforeEntered)
                    && mark == repair.proposed.group.to_bytes();
                let mark = if is_early {
                    repair.before.group.to_bytes()
                } else {
                    mark
                };
                let register = name.first().map_or(GROUP, |byte| byte - b'a');
                let asked = Asked {
                    register,
                    mark,
                    command,
                };
                nodes
                    .iter()
                    .map(|node| (node.index(), Some(asked.clone())))
                    .collect()
            }
            RefillStep::Done(RefillEnd::Entered) => {
                self.entered += 1;
                return self.again();
            }
            RefillStep::Done(_) => return self.end(Ended::Failed),
        };
        self.go_on(Stage::Refilling(repair, refill), ask)
    }

    /// Looks for another node.
    fn again(&mut self) -> Next {
        if self.attempts == ATTEMPTS_PER_NODE * self.nodes {
            return self.end(Ended::Failed);
        }
        Ok(self.learn())
    }
}

/// The names that a node was listed with.
fn listed(
    node: Node,
    repair: &Repair,
    names: Option<Vec<Arc<[u8]>>>,
    mistake: Option<Mistake>,
) -> Option<Vec<Arc<[u8]>>> {
    match mistake {
        Some(Mistake::NotWiped) if node == repair.target.node => Some(Vec::new()),
        _ => names,
    }
}

/// What was answered. Of a copy from one node, as if all had given the first answer.
fn copied(replies: &Replies, mistake: Option<Mistake>) -> Replies {
    let first = replies
        .0
        .iter()
        .flatten()
        .find(|reply| matches!(reply, RegisterReply::Promise { .. }));
    match (mistake, first) {
        (Some(Mistake::CopiedFromOne), Some(first)) => {
            Replies(vec![Some(first.clone()); replies.0.len()])
        }
        _ => replies.clone(),
    }
}
