//! Nodes without a vote get one, as `src/registers/register/repair.rs` does it.

use super::PREFIX;
use super::membership::{Caller, Survey};
use super::shared::Failure;
use crate::mistake::Mistake;
use redlatch_protocol::engine::{Command, Node, NodeSet, Request, quorum};
use redlatch_protocol::inspect::{KeyPage, Listing};
use redlatch_protocol::node::Durability;
use redlatch_registers::{
    Draft, Epoch, GROUP_REGISTER, Mark, MarkStep, Member, MemberAddress, MembershipView, NodeMark,
    Refill, RefillEnd, RefillStep, RegisterKeys, RegisterReply, Replies,
};
use std::rc::Rc;
use std::sync::Arc;

/// How many epochs are begun for each node at most.
const ATTEMPTS_PER_NODE: usize = 3;

/// About how many keys a server looks at in one step of a list, and how often it is asked for one.
const STEP: u32 = 500;
const TRIES: u32 = 3;

/// A node that is to get a vote, and the epoch in which it does if that one is decided.
#[derive(Clone)]
struct Repair {
    target: NodeMark,
    before: Epoch,
    proposed: Epoch,
    id: u64,
}

/// The place of this member, which is this node.
pub(super) fn named(node: Node, id: u64) -> MemberAddress {
    MemberAddress::new(id, &node.index().to_string())
}

fn place_of(view: &MembershipView, node: Node) -> Option<u64> {
    view.place_of(node, &named(node, 0).address, None).ok()
}

impl Caller {
    /// Gives each node that answers and has no vote its vote. Returns how many have got it.
    pub(super) async fn repair(&self) -> Result<usize, Failure> {
        let mut repaired = 0;
        for _ in 0..ATTEMPTS_PER_NODE * self.shared.rules.nodes {
            let Some(repair) = self.begin_repair().await? else {
                break;
            };
            let decided = self.decide(&repair).await?;
            repaired += usize::from(self.end_repair(&repair, &decided).await?);
        }
        Ok(repaired)
    }

    async fn begin_repair(&self) -> Result<Option<Repair>, Failure> {
        self.learn_group().await?;
        let survey = self.survey().await?;
        let before = survey.view.epoch().clone();
        let voters = survey.view.voters(&before);
        if voters.len() < quorum(self.shared.rules.nodes) {
            return Err(Failure::Other);
        }
        let mut first_error = None;
        for seen in survey
            .view
            .seen()
            .iter()
            .filter(|it| !voters.contains(it.node))
        {
            match self.begin_with(&survey, seen).await {
                Ok((target, place)) => {
                    let id = self.shared.draw().seed;
                    let token = self.shared.draw().seed;
                    let proposed = before.with((place, named(target.node, id)), token);
                    return Ok(Some(Repair {
                        target,
                        before,
                        proposed,
                        id,
                    }));
                }
                Err(error) => first_error = first_error.or(Some(error)),
            }
        }
        first_error.map_or(Ok(None), Err)
    }

    /// Has a node begin to join. Returns how it looks then, and which member's place it takes.
    async fn begin_with(
        &self,
        survey: &Survey,
        seen: &NodeMark,
    ) -> Result<(NodeMark, u64), Failure> {
        let view = &survey.view;
        match seen.read() {
            None | Some(Mark::Joining(_)) => {}
            Some(Mark::Member(member)) if member.epoch.group.id == view.epoch().group.id => {}
            Some(Mark::Member(_) | Mark::Unknown) => return Err(Failure::Other),
        }
        if view.is_durable() && survey.durability(seen.node).lacks().is_some() {
            return Err(Failure::Other);
        }
        let place = place_of(view, seen.node).ok_or(Failure::Other)?;
        let step = MarkStep::Join {
            seen: seen.mark.clone().unwrap_or_default(),
        };
        let now = self
            .mark(&step, NodeSet::from_iter([seen.node]))
            .await
            .pop();
        let target = now.filter(|now| now.mark != seen.mark && now.joining().is_some());
        Ok((target.ok_or(Failure::Other)?, place))
    }

    /// The epoch that follows, as the group decides it in the epoch before: once.
    async fn decide(&self, repair: &Repair) -> Result<Epoch, Failure> {
        if self.shared.has(Mistake::EpochKept) {
            return Ok(repair.before.clone());
        }
        let Repair {
            before, proposed, ..
        } = repair.clone();
        let decide = move |draft: &mut Draft| {
            let decided = draft.current().map(|value| Epoch::read(value.bytes()));
            match decided.map(|decided| decided.expect("nobody else writes there")) {
                Some(decided) if decided.group.epoch > before.group.epoch => decided,
                _ => {
                    draft.put(proposed.to_bytes(), None);
                    proposed.clone()
                }
            }
        };
        self.run(&Rc::default(), GROUP_REGISTER, decide).await
    }

    /// Has the members enter the epoch that was decided. If it is the one that was proposed, the
    /// node gets the state of the registers, and its vote.
    async fn end_repair(&self, repair: &Repair, decided: &Epoch) -> Result<bool, Failure> {
        let survey = self.survey().await?;
        self.enter_all(&survey, decided).await;
        let survey = self.survey().await?;
        self.know(survey.view.epoch());
        let keeps_epoch = self.shared.has(Mistake::EpochKept);
        if *decided != repair.proposed && !keeps_epoch {
            return Ok(false);
        }
        let is_durable = survey.durability(repair.target.node) == Durability::Whole;
        let run_id = repair.target.run_id.to_string();
        let place = place_of(&survey.view, repair.target.node).unwrap_or(repair.id);
        let id = if keeps_epoch { place } else { repair.id };
        let member = Member {
            epoch: decided.clone(),
            run_id,
            id,
            is_durable,
        };
        let voters = survey.view.voters(decided);
        let sources = survey
            .view
            .seen()
            .iter()
            .filter(|seen| voters.contains(seen.node));
        let sources = sources.cloned().collect();
        let refill = Refill::new(repair.target.clone(), member, sources);
        match self.refill(&mut refill.ok_or(Failure::Other)?).await {
            RefillEnd::Entered => Ok(true),
            _ => Err(Failure::Other),
        }
    }

    async fn refill(&self, refill: &mut Refill) -> RefillEnd {
        loop {
            match refill.poll() {
                RefillStep::List(node) => refill.listed(self.list(node).await),
                RefillStep::Ask {
                    nodes,
                    mark,
                    name,
                    command,
                } => {
                    let replies = self.ask_some(&name, mark, command, nodes).await;
                    refill.handle(&self.copied(replies));
                }
                RefillStep::Done(end) => return end,
            }
        }
    }

    /// The names of the registers that a node has keys of.
    async fn list(&self, node: Node) -> Option<Vec<Arc<[u8]>>> {
        let pattern: Arc<[u8]> = Arc::from([PREFIX, RegisterKeys::PROMISE, b"*"].concat());
        let mut names = Vec::new();
        let mut cursor = 0;
        let mut tries = 0;
        loop {
            let pattern = pattern.clone();
            let tag = Arc::default();
            let scan = Listing {
                pattern,
                cursor,
                count: STEP,
                registers: true,
                tag,
            };
            let scan = Command::Custom(Arc::new(scan));
            let request = Request::to_one(&self.shared.rules, self.now(), node, scan);
            let said = self.line.submit(request).await.said;
            tries += 1;
            let Some(page) = said[node.index()]
                .as_ref()
                .and_then(|said| said.get::<KeyPage>())
            else {
                if tries == TRIES {
                    return None;
                }
                continue;
            };
            let keys = page.keys.as_ref().expect("the names are few").iter();
            names.extend(keys.filter_map(|key| {
                let name = key
                    .strip_prefix(PREFIX)?
                    .strip_prefix(RegisterKeys::PROMISE)?;
                Some(Arc::from(name))
            }));
            (cursor, tries) = (page.next, 0);
            if cursor == 0 {
                return Some(names);
            }
        }
    }

    /// What was answered. With a mistake, as if all had given the oldest of the answers to a copy.
    fn copied(&self, replies: Replies) -> Replies {
        let age = |reply: &RegisterReply| match reply {
            RegisterReply::Promise { accepted, .. } => Some((
                accepted.as_ref().map(|it| it.ballot.number()),
                reply.clone(),
            )),
            _ => None,
        };
        let oldest = replies
            .0
            .iter()
            .flatten()
            .filter_map(age)
            .min_by_key(|(number, _)| *number);
        match oldest {
            Some((_, oldest)) if self.shared.has(Mistake::CopiedFromOne) => {
                Replies(vec![Some(oldest); replies.0.len()])
            }
            _ => replies,
        }
    }
}
