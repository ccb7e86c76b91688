//! Marks of three nodes, and what they say together.

use super::*;
use crate::{Group, MemberAddress};

const A: u64 = 1;
const B: u64 = 2;
const C: u64 = 3;

fn at(id: u64) -> &'static str {
    ["", "a:1/0", "b:1/0", "c:1/0", "d:1/0"]
        .get(id as usize)
        .copied()
        .unwrap_or("")
}

fn epoch(number: u64, members: &[u64]) -> Epoch {
    let group = Group {
        id: 9,
        epoch: number,
        token: number,
    };
    Epoch {
        group,
        members: members
            .iter()
            .map(|id| MemberAddress::new(*id, at(*id)))
            .collect(),
    }
}

fn first() -> Epoch {
    epoch(1, &[A, B, C])
}

fn member(epoch: &Epoch, id: u64, run: &str) -> Member {
    Member {
        epoch: epoch.clone(),
        run_id: run.into(),
        id,
        is_durable: true,
    }
}

fn seen(node: usize, mark: Option<Arc<[u8]>>) -> NodeMark {
    NodeMark {
        node: Node::new(node),
        mark,
        run_id: Arc::from("run"),
    }
}

/// Nodes with the marks of these members, whose servers all have the same run.
fn view(members: &[Option<Member>]) -> Result<MembershipView, NoGroup> {
    let marks = members.iter().enumerate();
    let seen = marks.map(|(node, member)| seen(node, member.as_ref().map(Member::to_bytes)));
    MembershipView::new(seen.collect(), 3)
}

fn of(epoch: &Epoch, ids: [u64; 3]) -> [Option<Member>; 3] {
    ids.map(|id| Some(member(epoch, id, "run")))
}

/// Which nodes get which mark.
fn renewals(view: &MembershipView, keeps: Option<bool>) -> Vec<(usize, Member)> {
    let renewals = view.renewals(view.epoch(), |_| keeps);
    renewals
        .into_iter()
        .map(|(seen, member)| (seen.node.index(), member))
        .collect()
}

fn voters(view: &MembershipView) -> Vec<usize> {
    view.voters(view.epoch()).iter().map(Node::index).collect()
}

#[test]
fn the_latest_epoch_of_the_group_of_most_is_the_group() {
    let whole = view(&of(&first(), [A, B, C])).unwrap();
    assert_eq!((whole.epoch(), voters(&whole)), (&first(), vec![0, 1, 2]));
    let [a, b, _] = of(&first(), [A, B, C]);
    let later = epoch(2, &[A, B, 4]);
    let census_of = |third| view(&[a.clone(), b.clone(), third]);
    let view = census_of(Some(member(&later, 4, "run"))).unwrap();
    assert_eq!((view.epoch(), voters(&view)), (&later, vec![2]));
    let other = Epoch {
        group: Group {
            id: 8,
            epoch: 7,
            token: 0,
        },
        ..epoch(7, &[5, 6, 7])
    };
    let view = census_of(Some(member(&other, 5, "run"))).unwrap();
    assert_eq!(
        (view.epoch(), voters(&view)),
        (&first(), vec![0, 1]),
        "it is of another"
    );
    assert_eq!(census_of(None).unwrap().epoch(), &first());
}

#[test]
fn without_a_majority_of_one_group_of_this_size_there_is_none() {
    assert_eq!(view(&[None, None, None]).unwrap_err(), NoGroup::NoMember);
    let [a, b, _] = of(&first(), [A, B, C]);
    let other = Epoch {
        group: Group {
            id: 8,
            epoch: 1,
            token: 0,
        },
        ..epoch(1, &[5, 6, 7])
    };
    let differs = |members: &[_]| matches!(view(members), Err(NoGroup::Differs(_)));
    assert!(differs(&[a.clone(), Some(member(&other, 5, "run")), None]));
    let five = epoch(1, &[1, 2, 3, 4, 5]);
    assert!(differs(&of(&five, [A, B, C])));
    assert!(
        !differs(&[a, b, Some(member(&five, A, "run"))]),
        "one of another size has no vote"
    );
}

#[test]
fn members_enter_the_latest_epoch_if_they_are_in_it() {
    let later = epoch(2, &[A, 4, C]);
    let [a, b, _] = of(&first(), [A, B, C]);
    let view = view(&[a, b, Some(member(&later, C, "run"))]).unwrap();
    assert_eq!(
        renewals(&view, None),
        [(0, member(&later, A, "run"))],
        "b was replaced"
    );
}

#[test]
fn who_was_started_again_is_believed_only_if_it_keeps_all_and_always_has() {
    let restarted = |is_durable| Member {
        is_durable,
        ..member(&first(), A, "before")
    };
    let census_of = |a: Member| {
        let [_, b, c] = of(&first(), [A, B, C]);
        view(&[Some(a), b, c]).unwrap()
    };
    let durable = census_of(restarted(true));
    assert_eq!(voters(&durable), [1, 2]);
    assert_eq!(
        renewals(&durable, Some(true)),
        [(0, member(&first(), A, "run"))]
    );
    assert!(renewals(&durable, None).is_empty());
    assert!(renewals(&census_of(restarted(false)), Some(true)).is_empty());
    // That a member would forget is noted, also of one that was not started again.
    let noted = renewals(&durable, Some(false));
    assert!(noted.iter().all(|(_, member)| !member.is_durable) && noted.len() == 3);
    assert_eq!(noted[0].1.run_id, "before");
}

#[test]
fn a_replica_with_its_masters_mark_gets_none() {
    let [a, b, _] = of(&first(), [A, B, C]);
    let view = view(&[a, b, Some(member(&first(), B, "before"))]).unwrap();
    assert!(renewals(&view, Some(true)).is_empty());
    // And no place but the one that its address has.
    assert_eq!(view.place_of(Node::new(2), at(C), None), Ok(C));
    assert_eq!(
        view.place_of(Node::new(2), "r:1/0", None),
        Err(vec![at(C).into()])
    );
}

#[test]
fn a_node_has_the_place_that_it_shows_or_of_its_address_or_that_it_is_given() {
    let [a, b, _] = of(&first(), [A, B, C]);
    let place = |members: [&Option<Member>; 3], node: usize, address: &str| {
        let view = view(&members.map(Option::clone)).unwrap();
        view.place_of(Node::new(node), address, None)
    };
    assert_eq!(place([&a, &b, &None], 2, at(C)), Ok(C));
    // A new server, and one that was replaced and emptied.
    let taken = |ids: &[u64]| -> Result<u64, Vec<Arc<str>>> {
        Err(ids.iter().map(|id| Arc::from(at(*id))).collect())
    };
    assert_eq!(place([&a, &b, &None], 2, "d:1/0"), taken(&[C]));
    let restarted = Some(member(&first(), B, "before"));
    assert_eq!(
        place([&a, &restarted, &None], 1, "moved:1/0"),
        Ok(B),
        "it shows"
    );
    assert_eq!(
        place([&a, &restarted, &None], 2, at(B)),
        taken(&[C]),
        "the other shows"
    );
    assert_eq!(place([&a, &None, &None], 1, "d:1/0"), taken(&[B, C]));
    // It was a member, and is none of this epoch.
    let later = epoch(2, &[A, B, 4]);
    let ours = [A, B].map(|id| Some(member(&later, id, "run")));
    let old = Some(member(&first(), C, "run"));
    assert_eq!(place([&ours[0], &ours[1], &old], 2, at(C)), taken(&[4]));
    let replaces = |replaced| {
        let view = view(&[a.clone(), b.clone(), None]).unwrap();
        view.place_of(Node::new(2), "d:1/0", Some(replaced))
    };
    assert_eq!(replaces(at(C)), Ok(C));
    assert_eq!(replaces(at(B)), taken(&[C]), "it votes");
}

#[test]
fn a_node_joins_only_with_the_server_that_began_it() {
    let joining = |run: &str| {
        seen(
            0,
            Some(format!("redlatch 1 joining 5 {run} ").as_bytes().into()),
        )
    };
    assert_eq!(
        joining("run").joining().map(|joining| joining.number),
        Some(5)
    );
    assert!(joining("before").joining().is_none() && seen(0, None).joining().is_none());
}
