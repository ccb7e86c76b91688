//! The answers of a round: counted, and what they say of a change whose answer was lost.

use super::Stored;
use super::transaction::{FINISHED, FORGOTTEN};
use super::{
    Accepted, Ballot, Epoch, Group, InvalidValue, Mark, MarkStep, Member, NodeMark, RegisterReply,
};
use redlatch_protocol::engine::{Node, Said, quorum};
use std::sync::Arc;

/// What each node answered. `None`: nothing that counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replies(pub Vec<Option<RegisterReply>>);

/// What a majority has promised.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Promised {
    /// The highest that any of them had accepted.
    pub(super) accepted: Option<Accepted>,
    pub(super) floor: u64,
}

impl Replies {
    /// What nodes have said about a register.
    pub fn of(said: &[Option<Said>]) -> Self {
        let replies = said.iter().map(|said| said.as_ref()?.get().cloned());
        Self(replies.collect())
    }

    /// The marks of the nodes that have shown theirs.
    pub fn marks(&self) -> Vec<NodeMark> {
        let mut marks = Vec::new();
        for (index, reply) in self.0.iter().enumerate() {
            if let Some(RegisterReply::Mark { mark, run_id }) = reply {
                marks.push(NodeMark {
                    node: Node::new(index),
                    mark: mark.clone(),
                    run_id: Arc::clone(run_id),
                });
            }
        }
        marks
    }

    fn all(&self) -> impl Iterator<Item = &RegisterReply> {
        self.0.iter().flatten()
    }

    fn is_majority(&self, count: usize) -> bool {
        count >= quorum(self.0.len())
    }

    /// What the nodes have promised, if a majority has.
    pub(super) fn promised(&self) -> Option<Promised> {
        let mut best = None::<&Accepted>;
        let mut floor = 0;
        let mut promises = 0;
        for reply in self.all() {
            let RegisterReply::Promise {
                accepted,
                floor: of_node,
            } = reply
            else {
                continue;
            };
            let number = accepted.as_ref().map(|it| it.ballot.number());
            if number > best.map(|best| best.ballot.number()) {
                best = accepted.as_ref();
            }
            floor = floor.max(*of_node);
            promises += 1;
        }
        if !self.is_majority(promises) {
            return None;
        }
        // What any of them has raised, a majority may have.
        let accepted = best.map(|best| {
            let value = Stored::raised_on(1, &self.copies(best.ballot));
            Accepted { value, ..*best }
        });
        Some(Promised { accepted, floor })
    }

    /// The values of a ballot that nodes have named.
    fn copies(&self, ballot: Ballot) -> Vec<&Stored> {
        let named = self.all().filter_map(|reply| match reply {
            RegisterReply::State(accepted) | RegisterReply::Promise { accepted, .. } => {
                accepted.as_ref()
            }
            _ => None,
        });
        let copies = named.filter(|it| it.ballot == ballot);
        copies.filter_map(|it| it.value.as_ref()).collect()
    }

    /// The value that a majority has [agreed](Self::agreed) on. Of what was raised in place counts
    /// what a majority has.
    pub fn value(&self, ballot: Ballot) -> Option<Stored> {
        Stored::raised_on(quorum(self.0.len()), &self.copies(ballot))
    }

    /// Has a majority accepted?
    pub(super) fn are_done(&self) -> bool {
        let done = self.all().filter(|reply| **reply == RegisterReply::Done);
        self.is_majority(done.count())
    }

    /// When all nodes have answered, and each participant of a transaction has finished on some of
    /// them: those that have on all nodes can be forgotten. Each of `count` has one of the last
    /// bytes of the record. Of different ballots, the later may not know what was raised in the
    /// earlier, and still reach a node that has raised it.
    pub fn forgotten(&self, count: usize) -> Option<Arc<[u8]>> {
        let agreed = self.agreed()?;
        if self.naming(agreed) < self.0.len() {
            return None;
        }
        let mut levels: Vec<&[u8]> = Vec::new();
        for state in self.states() {
            let value = state?.value.as_ref()?;
            levels.push(value.bytes().rchunks(count).next()?);
        }
        let mut forgotten = vec![0; count];
        for (place, level) in forgotten.iter_mut().enumerate() {
            let finished = levels.iter().filter(|it| it.get(place) >= Some(&FINISHED));
            match finished.count() {
                0 => return None,
                all if all == self.0.len() => *level = FORGOTTEN,
                _ => {}
            }
        }
        Some(forgotten.into())
    }

    fn states(&self) -> impl Iterator<Item = Option<&Accepted>> {
        self.all().filter_map(|reply| match reply {
            RegisterReply::State(state) => Some(state.as_ref()),
            _ => None,
        })
    }

    /// How many nodes name this as accepted. A tombstone and no key at all are not the same answer.
    fn naming(&self, state: Option<&Accepted>) -> usize {
        let ballot = state.map(|it| it.ballot);
        let others = self.states().map(|other| other.map(|it| it.ballot));
        others.filter(|other| *other == ballot).count()
    }

    /// What a majority names as accepted, if one agrees. `Some(None)`: it has accepted nothing. Of
    /// what was raised in place, it must be known what a majority has, whatever the others have.
    pub fn agreed(&self) -> Option<Option<&Accepted>> {
        let mut states = self.states();
        let state = states.find(|state| self.is_majority(self.naming(*state)))?;
        let copies = state.map_or(Vec::new(), |it| self.copies(it.ballot));
        let mut pairs = copies.windows(2);
        if pairs.all(|pair| pair[0].bytes() == pair[1].bytes()) {
            return Some(state);
        }
        let majority = quorum(self.0.len());
        let others = self.0.len() - copies.len();
        let least = Stored::raised_on(majority, &copies);
        let most = Stored::raised_on(majority - others, &copies);
        (least == most).then_some(state)
    }

    /// How many nodes name the ballot as accepted that most of them name.
    pub fn largest(&self) -> usize {
        let counts = self.states().map(|state| self.naming(state));
        counts.max().unwrap_or(0)
    }

    /// Has a majority said anything about the register?
    pub fn are_enough(&self) -> bool {
        use RegisterReply::{Invalid, NoMember};
        let replies = self.all();
        let counted = replies.filter(|reply| !matches!(reply, NoMember(_) | Invalid(_)));
        self.is_majority(counted.count())
    }

    /// The highest ballot that came before ours.
    pub(super) fn preempted_by(&self) -> Option<u64> {
        let numbers = self.all().filter_map(|reply| match reply {
            RegisterReply::Preempted { least, .. } => Some(*least),
            _ => None,
        });
        numbers.max()
    }

    /// Have the clients that came first finished what they did? Then what the nodes have promised
    /// is the ballot that follows the one that they have accepted; or the register was deleted, and
    /// only their floor is above this ballot.
    pub(super) fn are_quiet(&self) -> bool {
        self.all().all(|reply| match reply {
            RegisterReply::Preempted {
                least,
                accepted: Some(accepted),
                ..
            } => accepted.ballot.number() + 1 == *least,
            RegisterReply::Preempted {
                least,
                accepted: None,
                floor,
            } => least == floor,
            _ => true,
        })
    }

    /// Have all nodes said that another ballot came first?
    pub(super) fn are_refusals(&self) -> bool {
        let mut replies = self.0.iter();
        replies.all(|reply| matches!(reply, Some(RegisterReply::Preempted { .. })))
    }

    /// What a majority names as accepted, while a change is made.
    pub(super) fn chosen(&self) -> Option<&Accepted> {
        self.named().find(|it| {
            let naming = self.named().filter(|other| other.ballot == it.ballot);
            self.is_majority(naming.count())
        })
    }

    /// What nodes name as accepted in answers to a prepare or an accept.
    fn named(&self) -> impl Iterator<Item = &Accepted> {
        self.all().filter_map(|reply| match reply {
            RegisterReply::Promise { accepted, .. } | RegisterReply::Preempted { accepted, .. } => {
                accepted.as_ref()
            }
            _ => None,
        })
    }

    /// The node whose value has an unknown format. `None` while a majority has said something else:
    /// what a majority has not accepted is not the value.
    pub fn invalid(&self) -> Option<(Node, InvalidValue)> {
        if self.are_enough() {
            return None;
        }
        let mut replies = self.0.iter().enumerate();
        replies.find_map(|(index, reply)| match reply {
            Some(RegisterReply::Invalid(value)) => Some((Node::new(index), *value)),
            _ => None,
        })
    }

    /// The nodes that have refused, with their marks, if they are members of this group in any
    /// epoch.
    fn members(&self, id: u64) -> impl Iterator<Item = (Node, &Arc<[u8]>, Member)> {
        let replies = self.0.iter().enumerate();
        let marks = replies.filter_map(|(index, reply)| match reply {
            Some(RegisterReply::NoMember(Some(mark))) => Some((Node::new(index), mark)),
            _ => None,
        });
        let members = marks.filter_map(|(node, mark)| match Mark::read(mark) {
            Mark::Member(member) => Some((node, mark, member)),
            Mark::Joining(_) | Mark::Unknown => None,
        });
        members.filter(move |(_, _, member)| member.epoch.group.id == id)
    }

    /// The latest epoch of this group that a node says that it has entered, if it is a later one.
    pub fn later(&self, group: &Group) -> Option<Epoch> {
        let entered = self.members(group.id).map(|(_, _, member)| member.epoch);
        let later = entered.filter(|epoch| epoch.group.epoch > group.epoch);
        later.max_by_key(|epoch| epoch.group.epoch)
    }

    /// The members of this epoch that have not entered it, with the steps by which they do.
    ///
    /// A mark names the run of the server as before, so a server that was started again gets no
    /// vote by this.
    pub fn behind(&self, epoch: &Epoch) -> Vec<(Node, MarkStep)> {
        let mut steps = Vec::new();
        for (node, seen, member) in self.members(epoch.group.id) {
            if member.epoch.group.epoch < epoch.group.epoch && epoch.has(member.id) {
                let seen = Arc::clone(seen);
                let epoch = epoch.clone();
                let new = Member { epoch, ..member }.to_bytes();
                steps.push((node, MarkStep::Enter { seen, new }));
            }
        }
        steps
    }

    /// Is there a node that may not vote?
    pub fn lack_votes(&self) -> bool {
        self.all()
            .any(|reply| matches!(reply, RegisterReply::NoMember(_)))
    }
}

// Whether a change was made whose answer was lost.

/// What is known of a change that was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// A value that has it was accepted somewhere. It is made when a majority has accepted that.
    Included,
    /// It was not made by what was seen.
    NotIncluded,
    /// The register was deleted since, or changed too often.
    Unknown,
}

/// What the highest value that a majority has accepted, and its highest floor, say of the change
/// with this ballot.
///
/// `NotIncluded` does not say that it will not be: it may be on a node that was not asked, where
/// another client finds it and goes on with it. If that happens, nothing is made that this client
/// proposes after what was seen here: the two are on different branches, of which one survives.
pub(super) fn fate(sent: Ballot, accepted: Option<&Accepted>, floor: u64) -> Fate {
    match accepted {
        Some(accepted) if accepted.ballot == sent => Fate::Included,
        Some(newer) if newer.ballot.number() > sent.number() => match &newer.value {
            Some(value) if value.was_made_by(sent) => Fate::Included,
            // A register that was not deleted since, and remembers all changes since.
            Some(value) if value.gone() < sent.number() && value.remembers_since(sent.number()) => {
                Fate::NotIncluded
            }
            // Deleted since, or changed often.
            _ => Fate::Unknown,
        },
        // If it had been accepted and deleted since, the value would have a higher ballot.
        Some(_) => Fate::NotIncluded,
        // Deleted since, and the keys removed.
        None if floor >= sent.number() => Fate::Unknown,
        None => Fate::NotIncluded,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Ballot, MemberAddress};
    use redlatch_protocol::engine::Token;

    fn accepted(number: u64, owner: u8) -> Option<Accepted> {
        let ballot = Ballot::new(number, Token::new([owner; Token::LEN])).unwrap();
        Some(Accepted {
            ballot,
            value: None,
        })
    }

    fn state(accepted: Option<Accepted>) -> Option<RegisterReply> {
        Some(RegisterReply::State(accepted))
    }

    fn preempted(least: u64) -> Option<RegisterReply> {
        Some(RegisterReply::Preempted {
            least,
            accepted: None,
            floor: 0,
        })
    }

    #[test]
    fn a_majority_agrees_that_names_one_ballot_or_none() {
        let agreed = |states: [Option<RegisterReply>; 3]| {
            let replies = Replies(states.to_vec());
            replies
                .agreed()
                .map(|state| state.map(|it| it.ballot.number()))
        };
        assert_eq!(
            agreed([state(accepted(3, 1)), state(accepted(3, 1)), None]),
            Some(Some(3))
        );
        assert_eq!(agreed([state(None), None, state(None)]), Some(None));
        assert_eq!(
            agreed([state(accepted(3, 1)), state(accepted(3, 2)), None]),
            None,
            "owners"
        );
        assert_eq!(
            agreed([state(None), state(accepted(3, 1)), None]),
            None,
            "a tombstone"
        );
        assert_eq!(agreed([state(None), None, None]), None, "a minority");
        let without_vote = Some(RegisterReply::NoMember(None));
        assert_eq!(
            agreed([state(None), without_vote.clone(), without_vote]),
            None
        );
    }

    /// What nodes answer that have accepted the ballot with this number, and raised these bytes.
    fn raised(copies: &[(u64, [u8; 2])], nodes: usize) -> Replies {
        let reply = |(number, levels): &(u64, [u8; 2])| {
            let ballot = Ballot::new(*number, Token::new([1; Token::LEN])).unwrap();
            let value = Stored::changed(Err(0), (ballot, 0), Arc::from(&levels[..]), 0);
            state(Some(Accepted {
                ballot,
                value: Some(value),
            }))
        };
        let mut replies: Vec<_> = copies.iter().map(reply).collect();
        replies.resize(nodes, None);
        Replies(replies)
    }

    #[test]
    fn of_what_was_raised_counts_what_a_majority_has_if_that_is_known() {
        let agreed = |copies: &[[u8; 2]], nodes| {
            let copies: Vec<_> = copies.iter().map(|levels| (3, *levels)).collect();
            let replies = raised(&copies, nodes);
            let ballot = replies.agreed()??.ballot;
            Some(replies.value(ballot)?.bytes().to_vec())
        };
        assert_eq!(agreed(&[[1, 0], [1, 0]], 3), Some(vec![1, 0]));
        assert_eq!(agreed(&[[1, 0], [1, 1]], 3), None, "the third may have it");
        assert_eq!(agreed(&[[1, 0], [1, 1], [0, 0]], 3), Some(vec![1, 0]));
        assert_eq!(agreed(&[[1, 0], [0, 2], [1, 1]], 3), Some(vec![1, 1]));
        assert_eq!(
            agreed(&[[1, 1], [1, 1], [1, 1], [1, 0]], 5),
            Some(vec![1, 1])
        );
        assert_eq!(agreed(&[[1, 1], [1, 1], [1, 0], [1, 0]], 5), None);
        // Who goes on with another ballot takes it that a majority has what any of them has.
        let replies = raised(&[(3, [1, 0]), (3, [0, 1]), (2, [2, 2])], 3);
        let promise = |it: &Option<RegisterReply>| match it {
            Some(RegisterReply::State(it)) => Some(RegisterReply::Promise {
                accepted: it.clone(),
                floor: 0,
            }),
            _ => None,
        };
        let promised = Replies(replies.0.iter().map(promise).collect())
            .promised()
            .unwrap();
        assert_eq!(**promised.accepted.unwrap().value.unwrap().bytes(), [1, 1]);
    }

    #[test]
    fn who_has_finished_on_all_nodes_is_forgotten_when_all_have_finished_somewhere() {
        let forgotten = |copies: [(u64, [u8; 2]); 3]| raised(&copies, 3).forgotten(2);
        assert_eq!(forgotten([(3, [2, 2]); 3]).as_deref(), Some(&[3, 3][..]));
        assert_eq!(forgotten([(3, [2, 1]); 3]), None, "one has not finished");
        let mixed = forgotten([(3, [2, 2]), (3, [2, 1]), (3, [3, 1])]);
        assert_eq!(
            mixed.as_deref(),
            Some(&[3, 0][..]),
            "its answers tell the other one"
        );
        assert_eq!(forgotten([(3, [2, 2]), (3, [2, 2]), (4, [2, 2])]), None);
        assert_eq!(raised(&[(3, [2, 2]), (3, [2, 2])], 3).forgotten(2), None);
    }

    #[test]
    fn a_later_epoch_of_the_same_group_is_learnt_from_a_refusal() {
        let group = |id, epoch| Group {
            id,
            epoch,
            token: epoch,
        };
        let places = |ids: [u64; 3]| Arc::from(ids.map(|id| MemberAddress::new(id, "")));
        let member = |id, epoch| {
            let epoch = Epoch {
                group: group(id, epoch),
                members: places([1, 2, 3]),
            };
            let member = Member {
                epoch,
                run_id: "run".into(),
                id: 1,
                is_durable: true,
            };
            Some(RegisterReply::NoMember(Some(member.to_bytes())))
        };
        let later = |replies: [Option<RegisterReply>; 3]| {
            Replies(replies.to_vec())
                .later(&group(1, 2))
                .map(|epoch| epoch.group.epoch)
        };
        assert_eq!(later([member(1, 3), None, member(1, 4)]), Some(4));
        assert_eq!(
            later([
                member(1, 1),
                member(2, 9),
                Some(RegisterReply::NoMember(None))
            ]),
            None
        );
        assert_eq!(
            later([member(1, 2), state(None), None]),
            None,
            "it was started again"
        );
        let epoch = Epoch {
            group: group(1, 3),
            members: places([1, 2, 3]),
        };
        let replies = Replies(vec![member(1, 3), member(1, 2), member(2, 2), member(1, 4)]);
        let behind = replies.behind(&epoch);
        let [(node, MarkStep::Enter { new, .. })] = &behind[..] else {
            panic!("{behind:?}")
        };
        let Mark::Member(new) = Mark::read(new) else {
            panic!("{new:?}")
        };
        assert_eq!((node.index(), &new.epoch, &*new.run_id), (1, &epoch, "run"));
        let replaced = Epoch {
            members: places([4, 2, 3]),
            ..epoch
        };
        assert!(
            replies.behind(&replaced).is_empty(),
            "another node has its place"
        );
    }

    #[test]
    fn a_majority_of_promises_names_the_highest_value_and_floor() {
        let promise = |accepted, floor| Some(RegisterReply::Promise { accepted, floor });
        let replies = [promise(accepted(3, 1), 9), promise(accepted(5, 2), 0), None];
        let promised = Replies(replies.to_vec()).promised().unwrap();
        assert_eq!(
            promised,
            Promised {
                accepted: accepted(5, 2),
                floor: 9
            }
        );
        let replies = [promise(accepted(3, 1), 9), preempted(7), None];
        let replies = Replies(replies.to_vec());
        assert_eq!(
            (replies.promised(), replies.preempted_by()),
            (None, Some(7))
        );
        assert!(replies.are_enough());
    }

    mod fate {
        use super::super::*;
        use crate::Stored;
        use redlatch_protocol::engine::Token;
        use std::sync::Arc;

        #[test]
        fn a_register_that_another_client_has_created_is_no_sign_of_a_deletion() {
            let ballot =
                |number, owner| Ballot::new(number, Token::new([owner; Token::LEN])).unwrap();
            let created = |gone| {
                let value = Stored::changed(Err(gone), (ballot(7, 2), 0), Arc::from([]), 0);
                Accepted {
                    ballot: ballot(7, 2),
                    value: Some(value),
                }
            };
            let fate = |gone| fate(ballot(5, 1), Some(&created(gone)), 0);
            assert_eq!([0, 4, 5, 6].map(fate), {
                use Fate::{NotIncluded, Unknown};
                [NotIncluded, NotIncluded, Unknown, Unknown]
            });
        }
    }
}
