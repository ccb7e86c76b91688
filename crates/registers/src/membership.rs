//! Which nodes have a vote on registers, and why the others have none.

use super::{Census, Group, Mark, Seen};
use redlatch_protocol::engine::{NoVote, Node, RegisterMembership};

/// Why a node with this mark has no vote in this group, in its epoch. `None` if the nodes are no
/// group.
pub fn no_vote(mark: Option<&[u8]>, group: Option<&Group>) -> NoVote {
    match mark.map(Mark::read) {
        None => NoVote::NoMark,
        Some(Mark::Joining(_)) => NoVote::Joining,
        Some(Mark::Member(member)) if Some(&member.epoch.group) == group => NoVote::Restarted,
        Some(Mark::Member(_)) => NoVote::OtherGroup,
        Some(Mark::Unknown) => NoVote::OtherFormat,
    }
}

/// Whether those of `nodes` nodes that have answered have a vote.
pub fn memberships(seen: &[Seen], nodes: usize) -> Vec<(Node, RegisterMembership)> {
    let census = Census::new(seen.to_vec(), nodes).ok();
    seen.iter().map(|it| (it.node, membership(it, census.as_ref()))).collect()
}

/// Without a census, the nodes are no group.
fn membership(seen: &Seen, census: Option<&Census>) -> RegisterMembership {
    let epoch = census.map(Census::epoch);
    let votes = |census: &Census| census.voters(census.epoch()).contains(seen.node);
    match (seen.member(), epoch) {
        (Some(member), Some(epoch)) if census.is_some_and(votes) => {
            let epoch = epoch.group.epoch;
            RegisterMembership::Member { epoch, is_durable: member.is_durable }
        }
        _ => RegisterMembership::NoVote(seen.no_vote(epoch)),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Epoch, Member, Place};
    use super::*;
    use std::sync::Arc;

    const JOINING: &[u8] = b"redlatch 1 joining 17 run ";

    fn epoch(group: u64, number: u64) -> Epoch {
        let group = Group { id: group, epoch: number, token: number };
        Epoch { group, members: [0, 1, 2].map(|id| Place::new(id, "")).into() }
    }

    fn mark(epoch: &Epoch, id: u64, run_id: &str) -> Vec<u8> {
        let (epoch, run_id) = (epoch.clone(), run_id.to_owned());
        Member { epoch, run_id, id, is_durable: id == 0 }.to_bytes().to_vec()
    }

    fn seen(marks: &[Option<Vec<u8>>]) -> Vec<Seen> {
        let run_id: Arc<str> = Arc::from("run");
        let seen = |(index, mark): (usize, &Option<Vec<u8>>)| Seen {
            node: Node::new(index),
            mark: mark.as_deref().map(Arc::from),
            run_id: Arc::clone(&run_id),
        };
        marks.iter().enumerate().map(seen).collect()
    }

    fn of(marks: &[Option<Vec<u8>>]) -> Vec<RegisterMembership> {
        let all = memberships(&seen(marks), 3);
        all.into_iter().map(|(_, membership)| membership).collect()
    }

    #[test]
    fn members_of_the_latest_epoch_vote() {
        let (old, latest) = (epoch(7, 1), epoch(7, 2));
        let ours = [mark(&latest, 0, "run"), mark(&latest, 1, "run")];
        let member = |is_durable| RegisterMembership::Member { epoch: 2, is_durable };
        for (mark, why) in [
            (None, NoVote::NoMark),
            (Some(JOINING.to_vec()), NoVote::Joining),
            (Some(mark(&latest, 2, "before")), NoVote::Restarted),
            (Some(mark(&old, 2, "run")), NoVote::OtherGroup),
            (Some(mark(&old, 3, "run")), NoVote::Replaced),
            (Some(mark(&epoch(8, 2), 2, "run")), NoVote::OtherGroup),
            (Some(b"words".to_vec()), NoVote::OtherFormat),
        ] {
            let [one, other] = ours.clone().map(Some);
            let expected = [member(true), member(false), RegisterMembership::NoVote(why)];
            assert_eq!(of(&[one, other, mark]), expected);
        }
    }

    #[test]
    fn whose_run_is_not_told_was_not_started_again() {
        let all = [0, 1, 2].map(|id| Some(mark(&epoch(7, 1), id, "run")));
        let mut seen = seen(&all);
        seen.iter_mut().for_each(|it| it.run_id = Arc::from(""));
        let found = memberships(&seen, 3).into_iter().map(|(_, it)| it);
        assert!(found.eq([RegisterMembership::NoVote(NoVote::RunNotTold); 3]));
    }

    #[test]
    fn nodes_that_are_no_group_have_no_vote() {
        let no_votes = |whys: [NoVote; 3]| whys.map(RegisterMembership::NoVote);
        let joining = Some(JOINING.to_vec());
        let expected = no_votes([NoVote::NoMark, NoVote::Joining, NoVote::OtherFormat]);
        assert_eq!(of(&[None, joining, Some(b"words".to_vec())]), expected);
        // Of two groups, neither of which has a majority.
        let marks = [7, 8].map(|group| Some(mark(&epoch(group, 1), 0, "run")));
        let [one, other] = marks;
        let expected = no_votes([NoVote::OtherGroup, NoVote::OtherGroup, NoVote::NoMark]);
        assert_eq!(of(&[one, other, None]), expected);
        assert!(of(&[]).is_empty());
    }
}
