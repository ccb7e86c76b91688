//! The epoch that follows is decided, as `src/registers/register/group.rs` does it: a change of the
//! register of the group.

use crate::membership::{Ask, Learnt, Membership, ask_all};
use crate::repairer::Repair;
use crate::server::GROUP;
use redlatch_protocol::engine::Token;
use redlatch_registers::{
    Ballot, Change, ChangeEnd, ChangeStep, Draft, Epoch, Group, Proposer, Replies,
};

/// How often the marks of the nodes are looked at in one change.
const LOOKS_MAX: usize = 3;

/// The change of the register of the group.
#[derive(Clone, Debug)]
pub(crate) struct Decision {
    nodes: usize,
    change: Change,
    group: Group,
    /// What was made of the drafts, by their ballots.
    drafts: Vec<(Ballot, Epoch)>,
    looks: usize,
    refused: Option<Replies>,
}

/// What is asked next, or what was decided, if that is known.
type Next = Result<Ask, Option<Epoch>>;

impl Decision {
    /// Begins it. The owner must be of this decision only.
    pub(crate) fn begin(
        owner: [u8; 3],
        group: Group,
        nodes: usize,
        repair: &Repair,
    ) -> (Self, Ask) {
        let mut token = [b'0'; Token::LEN];
        token[..owner.len()].copy_from_slice(&owner);
        let mut proposer = Proposer::new(Token::new(token));
        proposer.enter(&group);
        let change = Change::new(proposer);
        let drafts = Vec::new();
        let looks = 0;
        let refused = None;
        let mut begun = Self {
            nodes,
            change,
            group,
            drafts,
            looks,
            refused,
        };
        let ask = begun.go_on(repair).expect("it prepares");
        (begun, ask)
    }

    pub(crate) fn hear(
        &mut self,
        membership: &mut Membership,
        repair: &Repair,
        replies: &Replies,
    ) -> Next {
        if membership.is_asking() {
            return match membership.hear(replies) {
                Learnt::Ask(ask) => Ok(ask),
                Learnt::Known => self.enter(membership, repair),
                Learnt::Nothing => {
                    self.change
                        .handle(self.refused.as_ref().expect("they have refused"));
                    self.go_on(repair)
                }
            };
        }
        if !replies.are_enough() && replies.lack_votes() && self.looks < LOOKS_MAX {
            let ask = membership.follow(replies, &self.group);
            self.refused = Some(replies.clone());
            if ask.is_empty() {
                membership.hear(replies);
                return self.enter(membership, repair);
            }
            return Ok(ask);
        }
        self.change.handle(replies);
        self.go_on(repair)
    }

    fn enter(&mut self, membership: &Membership, repair: &Repair) -> Next {
        let group = &membership.known.as_ref().expect("it was looked at").group;
        self.looks += usize::from(*group == self.group);
        self.group = group.clone();
        self.change.enter(group);
        self.go_on(repair)
    }

    fn go_on(&mut self, repair: &Repair) -> Next {
        loop {
            match self.change.poll() {
                ChangeStep::Send(command) => {
                    return Ok(ask_all(self.nodes, GROUP, &self.group, &command));
                }
                ChangeStep::Draft(mut draft) => {
                    let decided = decide(&mut draft, repair);
                    self.drafts.push((draft.ballot(), decided));
                    self.change.propose(draft);
                }
                ChangeStep::Preempted(_) => self.change.try_again(),
                ChangeStep::Done(ChangeEnd::Committed(ballot) | ChangeEnd::Unchanged(ballot)) => {
                    let mut drafts = self.drafts.iter();
                    let found = drafts.find(|(draft, _)| *draft == ballot);
                    return Err(found.map(|(_, decided)| decided.clone()));
                }
                ChangeStep::Done(_) => return Err(None),
            }
        }
    }
}

/// What the epoch is that follows, if the draft counts.
fn decide(draft: &mut Draft, repair: &Repair) -> Epoch {
    let decided = draft
        .current()
        .map(|value| Epoch::read(value.bytes()).expect("an epoch"));
    match decided {
        Some(decided) if decided.group.epoch > repair.before.group.epoch => decided,
        _ => {
            draft.put(repair.proposed.to_bytes(), None);
            repair.proposed.clone()
        }
    }
}
