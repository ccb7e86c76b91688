//! Nodes become a group that keeps registers, and a node without a vote is made a member of its
//! group again, or in the place of another.

use super::Register;
use super::nodes::{GroupInspection, RegisterNodes, RegisterRound};
use crate::engine::{NoVote, Node, NodeSet, quorum};
use crate::entropy::draw;
use crate::error::RegisterError;
use redlatch_protocol::node::{Durability, NodeAnswer, NodeError, NodeReport};
use redlatch_registers::{
    Epoch, Group, InvalidValue, Mark, MarkStep, Member, MemberAddress, MembershipView, NodeMark,
    Refill, RefillEnd, RefillStep, RegisterKeys, RegisterRequest,
};
use std::sync::Arc;

impl RegisterNodes<'_> {
    /// Makes the nodes a group. All must answer, and none may be a member of one.
    ///
    /// Each node draws a number first, and its mark must still have it when it becomes a member: so
    /// a copy of this that arrives late, after the node has lost its memory, makes it none.
    pub(super) async fn form(&self, in_memory: bool) -> Result<(), RegisterError> {
        let statuses = self.caller.servers(self.all()).await;
        let durability = |node: Node| Durability::of(&statuses[node.index()]);
        let lacks = |node| durability(node).lacks().filter(|_| !in_memory);
        // What can be refused is refused before anything is written.
        let (seen, round) = self.mark(&MarkStep::Look, self.all()).await;
        self.check_formation(&seen, round, lacks)?;
        let join = MarkStep::Join {
            seen: Arc::from([]),
        };
        let (mut seen, round) = self.mark(&join, self.all()).await;
        // One whose server was started again since it began to join does so anew.
        for it in seen.iter_mut().filter(|it| it.joining().is_none()) {
            if let Some(Mark::Joining(_)) = it.read() {
                *it = self.join(it).await.unwrap_or_else(|_| it.clone());
            }
        }
        self.check_formation(&seen, round.clone(), lacks)?;
        let group = Group {
            id: draw_number()?,
            epoch: 1,
            token: draw_number()?,
        };
        // Of clients that do this at one time, each begins with the same node, and only the one
        // that comes first there goes on.
        seen.sort_by(|one, other| one.run_id.cmp(&other.run_id));
        let mut members = Vec::new();
        for it in &seen {
            members.push(MemberAddress::new(draw_number()?, &round.url(it.node)));
        }
        let epoch = Epoch {
            group,
            members: members.into(),
        };
        for (it, place) in seen.iter().zip(&*epoch.members) {
            let is_durable = durability(it.node) == Durability::Whole;
            let run_id = it.run_id.to_string();
            let member = Member {
                epoch: epoch.clone(),
                run_id,
                id: place.id,
                is_durable,
            };
            if !self.enter(it, &member).await {
                return Err(RegisterError::NodesDiffer {
                    url: round.url(it.node),
                });
            }
        }
        Ok(())
    }

    /// Can these nodes be made a group?
    fn check_formation(
        &self,
        seen: &[NodeMark],
        round: RegisterRound,
        lacks: impl Fn(Node) -> Option<&'static str>,
    ) -> Result<(), RegisterError> {
        if seen.len() < self.count() {
            return Err(round.not_all());
        }
        if MembershipView::new(seen.to_vec(), self.count()).is_ok_and(|it| it.is_whole(seen.len()))
        {
            return Err(RegisterError::AlreadyFormed);
        }
        seen.iter()
            .try_for_each(|it| check_run(it, &round.url(it.node)))?;
        let lacking: Vec<_> = seen
            .iter()
            .filter_map(|it| Some((round.url(it.node), lacks(it.node)?)))
            .collect();
        if !lacking.is_empty() {
            return Err(RegisterError::NotDurable { nodes: lacking });
        }
        for it in seen {
            if let Some(Mark::Member(_) | Mark::Unknown) = it.read() {
                return Err(RegisterError::NodesDiffer {
                    url: round.url(it.node),
                });
            }
        }
        Ok(())
    }

    /// A node gives up the mark that was seen, and begins to join. Returns how it looks then, or
    /// why it has not.
    async fn join(&self, seen: &NodeMark) -> Result<NodeMark, String> {
        let mark = seen.mark.clone().unwrap_or_else(|| Arc::from([]));
        let nodes = NodeSet::from_iter([seen.node]);
        let (mut now, round) = self.mark(&MarkStep::Join { seen: mark }, nodes).await;
        now.pop()
            .filter(|now| now.mark != seen.mark && now.joining().is_some())
            .ok_or_else(|| why_lost(round.failure(seen.node)))
    }
}

fn draw_number() -> Result<u64, RegisterError> {
    draw()
        .map(|entropy| entropy.seed)
        .ok_or(RegisterError::NoEntropy)
}

const INTERRUPTED: &str = "it was started again or emptied, or another repair of it has begun";

/// Why a node has not done what was asked: its error, or that it is another by now.
fn why_lost(failure: Option<&NodeError>) -> String {
    failure.map_or_else(|| INTERRUPTED.to_owned(), NodeError::to_string)
}

const LAST_EPOCH: &str = "the group is in its last epoch, 8191, and each repair begins another one";

fn not_repaired(url: &str, why: &str) -> RegisterError {
    RegisterError::NotRepaired {
        url: Arc::from(url),
        why: Arc::from(why),
    }
}

/// Refuses to write the mark of a node whose run is not told: it would never have a vote.
fn check_run(seen: &NodeMark, url: &str) -> Result<(), RegisterError> {
    match seen.run_id.is_empty() {
        true => Err(not_repaired(url, &NoVote::RunNotTold.to_string())),
        false => Ok(()),
    }
}

/// How many epochs are begun for each node at most: another client may repair nodes as well.
const ATTEMPTS_PER_NODE: usize = 3;

impl Register {
    /// Gives each node that answers and has no vote one, in epochs that are the values of this
    /// register. Returns their URLs.
    pub(super) async fn repair(
        &self,
        replaced: Option<&str>,
    ) -> Result<Vec<Arc<str>>, RegisterError> {
        let nodes = self.nodes()?;
        let mut repaired = Vec::new();
        // An epoch that another client has decided comes before.
        for _ in 0..ATTEMPTS_PER_NODE * nodes.count() {
            let Some(repair) = nodes.begin_repair(replaced).await? else {
                break;
            };
            let decided = self.decide(&repair).await?;
            repaired.extend(nodes.end_repair(&repair, &decided).await?);
        }
        Ok(repaired)
    }

    /// The epoch that follows, as the group decides it in the epoch before: once.
    async fn decide(&self, repair: &Repair) -> Result<Epoch, RegisterError> {
        let decision = self.run_alone(|draft| {
            let decided = draft.current().map(|value| Epoch::read(value.bytes()));
            match decided {
                Some(None) => Err(RegisterError::OtherFormat {
                    url: None,
                    format: None,
                }),
                Some(Some(decided)) if decided.group.epoch > repair.before.group.epoch => {
                    Ok(decided)
                }
                _ => {
                    draft.put(repair.proposed.to_bytes(), None);
                    Ok(repair.proposed.clone())
                }
            }
        });
        let (epoch, _) = decision.await?;
        Ok(epoch)
    }
}

/// A node that is to get a vote, and the epoch in which it does if that one is decided.
pub(super) struct Repair {
    /// The node, which has begun to join.
    target: NodeMark,
    /// The epoch before.
    pub(super) before: Epoch,
    pub(super) proposed: Epoch,
    /// Which member it is to be.
    pub(super) id: u64,
}

impl RegisterNodes<'_> {
    /// Begins to give a node without a vote one again, if there is such a node: one that is a
    /// member, or one that is to have the place of the member at the `replaced` address.
    pub(super) async fn begin_repair(
        &self,
        replaced: Option<&str>,
    ) -> Result<Option<Repair>, RegisterError> {
        self.learn_group().await?;
        let inspection = self.inspect_group().await?;
        let before = inspection.view.epoch().clone();
        let voters = inspection.view.voters(&before);
        if voters.len() < quorum(self.count()) {
            // Marks are kept then: by them, a person may trust the nodes.
            return Err(inspection.without_majority());
        }
        let mut first_error = None;
        for seen in inspection
            .view
            .seen()
            .iter()
            .filter(|it| !voters.contains(it.node))
        {
            match self.begin_with(&inspection, seen, replaced).await {
                Ok((target, place)) => {
                    // Drawn after the node has drawn its number: what was sent in an earlier repair
                    // of it names another epoch.
                    let id = draw_number()?;
                    let token = draw_number()?;
                    let new = MemberAddress::new(id, &inspection.round.url(target.node));
                    let proposed = before.with((place, new), token);
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
        inspection: &GroupInspection,
        seen: &NodeMark,
        replaced: Option<&str>,
    ) -> Result<(NodeMark, u64), RegisterError> {
        let view = &inspection.view;
        let url = inspection.round.url(seen.node);
        let refuse = |why: &str| not_repaired(&url, why);
        match seen.read() {
            None | Some(Mark::Joining(_)) => {}
            Some(Mark::Member(member)) if member.epoch.group.id == view.epoch().group.id => {}
            Some(Mark::Member(_)) => return Err(RegisterError::NodesDiffer { url }),
            Some(Mark::Unknown) => {
                return Err(refuse(
                    "its mark is that of a later version, or of another program",
                ));
            }
        }
        check_run(seen, &url)?;
        if let (true, Some(lacks)) = (view.is_durable(), inspection.durability(seen.node).lacks()) {
            return Err(RegisterError::NotDurable {
                nodes: vec![(url, lacks)],
            });
        }
        if view.epoch().is_last() {
            // All registers would be frozen for ever.
            return Err(refuse(LAST_EPOCH));
        }
        let place = view
            .place_of(seen.node, MemberAddress::address(&url), replaced)
            .map_err(|members| RegisterError::PlaceTaken {
                url: Arc::clone(&url),
                members,
            })?;
        let target = self.join(seen).await.map_err(|why| refuse(&why))?;
        Ok((target, place))
    }

    /// Has the members enter the epoch that was decided. If it is the one that was proposed, the
    /// node gets the state of the registers, and its vote. Returns the node's URL then.
    pub(super) async fn end_repair(
        &self,
        repair: &Repair,
        decided: &Epoch,
    ) -> Result<Option<Arc<str>>, RegisterError> {
        let inspection = self.inspect_group().await?;
        self.enter_all(&inspection, decided).await;
        let inspection = self.inspect_group().await?;
        self.know(inspection.view.epoch());
        if *decided != repair.proposed {
            return Ok(None);
        }
        let url = inspection.round.url(repair.target.node);
        let refuse = |why: &str| not_repaired(&url, why);
        let is_durable = inspection.durability(repair.target.node) == Durability::Whole;
        let run_id = repair.target.run_id.to_string();
        let member = Member {
            epoch: decided.clone(),
            run_id,
            id: repair.id,
            is_durable,
        };
        let voters = inspection.view.voters(decided);
        let sources = inspection
            .view
            .seen()
            .iter()
            .filter(|seen| voters.contains(seen.node));
        let sources = sources.cloned().collect();
        let mut refill = Refill::new(repair.target.clone(), member, sources)
            .ok_or_else(|| refuse(INTERRUPTED))?;
        let (end, last) = self.refill(&mut refill).await?;
        let invalid = last.as_ref().and_then(RegisterRound::invalid);
        match (end, last) {
            (RefillEnd::Entered, _) => Ok(Some(url)),
            (RefillEnd::NoQuorum, Some(last)) => Err(refuse(&format!(
                "too few members could be copied: {}",
                last.no_quorum(false)
            ))),
            (RefillEnd::Lost, Some(last)) => {
                Err(refuse(&why_lost(last.failure(repair.target.node))))
            }
            (RefillEnd::Invalid(InvalidValue { format, .. }), _) => {
                Err(invalid.unwrap_or(RegisterError::OtherFormat { url: None, format }))
            }
            (RefillEnd::NoQuorum | RefillEnd::Lost, None) => Err(refuse(INTERRUPTED)),
        }
    }

    /// Takes the steps of a refill. Returns the answers to the last of them, too. Without the right
    /// to list keys, a node cannot be filled, nor be a source.
    async fn refill(
        &self,
        refill: &mut Refill,
    ) -> Result<(RefillEnd, Option<RegisterRound>), RegisterError> {
        let mut last = None;
        loop {
            match refill.poll() {
                RefillStep::List(node) => match self.caller.names(node).await {
                    Ok(names) => refill.listed(Some(names)),
                    Err(NodeReport {
                        url,
                        answer: NodeAnswer::Failed(error),
                        ..
                    }) if error.is_permanent() => {
                        return Err(not_repaired(
                            &url,
                            &format!("its registers are not listed: {error}"),
                        ));
                    }
                    Err(_) => refill.listed(None),
                },
                RefillStep::Ask {
                    nodes,
                    mark,
                    name,
                    command,
                } => {
                    let keys = RegisterKeys::new(&self.core.key_prefix, &name);
                    let round = self
                        .caller
                        .ask(RegisterRequest::new(keys, mark, command), nodes)
                        .await;
                    refill.handle(&round.replies);
                    last = Some(round);
                }
                RefillStep::Done(end) => return Ok((end, last)),
            }
        }
    }

    /// Gives a node its vote whose server was started again, although it may have forgotten
    /// something.
    pub(super) async fn trust(&self, url: &str) -> Result<(), RegisterError> {
        let inspection = self.inspect_group().await?;
        let epoch = inspection.view.epoch();
        self.enter_all(&inspection, epoch).await;
        let inspection = self.inspect_group().await?;
        let refuse = |why: &str| not_repaired(url, why);
        let seen = inspection
            .view
            .seen()
            .iter()
            .find(|it| *inspection.round.url(it.node) == *url);
        let seen = seen.ok_or_else(|| refuse("no node that has answered has this URL"))?;
        let member = match seen.read() {
            Some(Mark::Member(member)) if epoch.has(member.id) => member,
            _ => return Err(refuse("it has no mark of a member")),
        };
        check_run(seen, url)?;
        let run_id = seen.run_id.to_string();
        let new = Member {
            epoch: epoch.clone(),
            run_id,
            ..member.clone()
        };
        if new == member || self.enter(seen, &new).await {
            return Ok(());
        }
        Err(refuse(INTERRUPTED))
    }
}
