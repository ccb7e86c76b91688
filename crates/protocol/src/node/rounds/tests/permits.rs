//! Permits: votes count for each permit, and nodes that granted another one get the right one.

mod restoring;
mod settled;

use super::{Nodes, set};
use crate::engine::{NodeSet, Share, Verb, Verdict};
use crate::node::fixture::{about, greeting, share};
use crate::node::{NodeAnswer, NodeError};

/// How many permits there are here.
const PERMITS: u32 = 4;

fn open_share(nodes: &mut Nodes, verb: Verb, owner: u8, of: Share) {
    let mut request = about(verb, share(owner, of), nodes.now);
    request.nodes = NodeSet::all(nodes.sent.len());
    nodes.rounds.begin(nodes.now, request, 1);
}

/// Requests any permit.
fn open(nodes: &mut Nodes, verb: Verb, owner: u8) {
    open_share(
        nodes,
        verb,
        owner,
        Share::Permit {
            of: PERMITS,
            number: None,
        },
    );
}

/// The answer to command `number` of a node that granted this permit.
fn granted(number: u64, permit: u32) -> String {
    format!("*4\r\n:{number}\r\n:1\r\n:0\r\n:{permit}\r\n")
}

/// Writes what is to be written, without a look at it.
fn write_all(nodes: &mut Nodes) {
    (0..nodes.sent.len()).for_each(|index| drop(nodes.commands(index)));
}

#[test]
fn votes_for_different_permits_are_no_majority_in_any_order() {
    let orders = [
        [0, 1, 2],
        [0, 2, 1],
        [1, 0, 2],
        [1, 2, 0],
        [2, 0, 1],
        [2, 1, 0],
    ];
    let table = [
        // The nodes' permits, the permit of most, and the nodes that count.
        ([2, 2, 2], 2, &[0, 1, 2][..]),
        ([0, 3, 3], 3, &[1, 2]),
        ([3, 0, 3], 3, &[0, 2]),
        ([1, 1, 0], 1, &[0, 1]),
        // Of several with as many votes, the smallest number counts.
        ([3, 2, 1], 1, &[2]),
        ([0, 1, 2], 0, &[0]),
    ];
    for (permits, best, which) in table {
        for order in orders {
            let mut nodes = Nodes::ready(true);
            open(&mut nodes, Verb::Acquire, 1);
            for index in order {
                nodes.receive(index, &granted(1, permits[index]));
            }
            let votes = nodes.over().votes;
            assert_eq!(votes.permit, Some(best), "{permits:?} {order:?}");
            assert_eq!(votes.tally.granted, set(which), "{permits:?} {order:?}");
            let others = NodeSet::all(3).without(set(which));
            assert_eq!(votes.tally.refused, others, "{permits:?} {order:?}");
        }
    }
}

#[test]
fn a_round_is_won_by_a_majority_for_one_permit_and_not_by_a_majority_of_grants() {
    let mut nodes = Nodes::of(5, false);
    (0..5).for_each(|index| nodes.greet(index));
    open(&mut nodes, Verb::Acquire, 1);
    for (index, permit) in [(0, 0), (1, 1), (2, 0), (3, 1)] {
        nodes.receive(index, &granted(1, permit));
        assert!(!nodes.is_over(), "{index}");
    }
    // The permit of the most votes was another before.
    nodes.receive(4, &granted(1, 1));
    let votes = nodes.over();
    assert_eq!(
        (votes.votes.permit, votes.votes.tally.granted),
        (Some(1), set(&[1, 3, 4]))
    );
    assert_eq!(votes.votes.tally.granted_by_majority(), Verdict::Won);
    assert!(votes.reports.is_empty());
}

/// Is the round over that two nodes have granted this share in?
fn is_over_with_two(nodes: &mut Nodes, number: u64, verb: Verb, share: Share) -> bool {
    open_share(nodes, verb, 1, share);
    let permit = if share == Share::Reader { ":-1" } else { ":2" };
    let granted = format!("*4\r\n:{number}\r\n:1\r\n:0\r\n{permit}\r\n");
    (0..2).for_each(|index| nodes.receive(index, &granted));
    nodes.is_over()
}

const ANY: Share = Share::Permit {
    of: PERMITS,
    number: None,
};

#[test]
fn a_round_that_has_a_permit_waits_for_every_node_that_is_not_silent() {
    for verb in [Verb::Acquire, Verb::Turn] {
        for (millis, answer) in [
            (0, granted(1, 2)),
            (30, granted(1, 0)),
            (49, ":-1\r\n".into()),
        ] {
            let mut nodes = Nodes::ready(false);
            assert!(
                !is_over_with_two(&mut nodes, 1, verb, ANY),
                "the third may grant another"
            );
            nodes.pass(millis);
            assert!(!nodes.is_over(), "{millis}");
            nodes.receive(2, &answer);
            let votes = nodes.over().votes;
            assert_eq!(
                (votes.permit, votes.tally.is_complete()),
                (Some(2), true),
                "{millis}"
            );
        }
    }
    let mut nodes = Nodes::ready(false);
    assert!(
        is_over_with_two(&mut nodes, 1, Verb::Acquire, Share::Reader),
        "all are the same"
    );
}

#[test]
fn a_round_that_has_a_permit_waits_for_no_node_that_is_silent_or_down() {
    let mut nodes = Nodes::ready(false);
    assert!(!is_over_with_two(&mut nodes, 1, Verb::Acquire, ANY));
    nodes.pass(49);
    assert!(!nodes.is_over());
    nodes.pass(1);
    assert_eq!(
        nodes.over().votes.permit,
        Some(2),
        "the time of a round is over"
    );
    // The last node is known to be silent now, while it is connected and after that.
    assert!(is_over_with_two(&mut nodes, 2, Verb::Acquire, ANY));
    nodes.lose(2);
    assert!(is_over_with_two(&mut nodes, 3, Verb::Acquire, ANY));
    nodes.pass(500);
    nodes.connect(2);
    assert!(
        is_over_with_two(&mut nodes, 4, Verb::Acquire, ANY),
        "its greeting is missing"
    );
    // It was down before the round, or goes down in it.
    let mut nodes = Nodes::ready(false);
    nodes.lose(2);
    assert!(is_over_with_two(&mut nodes, 1, Verb::Acquire, ANY));
    let mut nodes = Nodes::ready(false);
    assert!(!is_over_with_two(&mut nodes, 1, Verb::Acquire, ANY));
    nodes.lose(2);
    assert!(nodes.is_over());
}

#[test]
fn a_round_ends_as_soon_as_no_permit_can_get_a_majority() {
    let mut nodes = Nodes::of(5, false);
    (0..5).for_each(|index| nodes.greet(index));
    open(&mut nodes, Verb::Acquire, 1);
    for (index, permit) in [(0, 0), (1, 1), (2, 2)] {
        nodes.receive(index, &granted(1, permit));
        // The nodes that have not answered may make a majority with one of these.
        assert!(!nodes.is_over(), "{index}");
    }
    nodes.receive(3, &granted(1, 3));
    let votes = nodes.over();
    assert_eq!(votes.votes.tally.granted_by_majority(), Verdict::Lost);
    assert_eq!(votes.votes.tally.answered_by_majority(), Verdict::Won);
    write_all(&mut nodes);
    nodes.receive(4, &granted(1, 3));
    (0..5).for_each(|index| assert_eq!(nodes.commands(index), [""; 0], "no permit was won"));
}

#[test]
fn the_permit_of_a_round_does_not_count_in_the_next() {
    let mut nodes = Nodes::ready(true);
    open(&mut nodes, Verb::Acquire, 1);
    (0..3).for_each(|index| nodes.receive(index, &granted(1, 3)));
    assert_eq!(nodes.over().votes.permit, Some(3));
    open(&mut nodes, Verb::Acquire, 2);
    nodes.receive(0, &granted(2, 0));
    nodes.receive(1, ":-2\r\n");
    nodes.receive(2, ":-2\r\n");
    let votes = nodes.over().votes;
    assert_eq!((votes.permit, votes.tally.granted), (Some(0), set(&[0])));
    nodes.open(3, Verb::Acquire, 3);
    (0..3).for_each(|index| nodes.receive(index, "$-1\r\n"));
    assert_eq!(nodes.over().votes.permit, None);
}

#[test]
fn readers_grants_are_votes_for_the_same_share_and_refusals_are_not_restored() {
    let mut nodes = Nodes::ready(false);
    open_share(&mut nodes, Verb::Acquire, 1, Share::Reader);
    write_all(&mut nodes);
    nodes.receive(0, ":-1\r\n");
    nodes.receive(1, "*4\r\n:1\r\n:1\r\n:0\r\n:-1\r\n");
    nodes.receive(2, "*4\r\n:1\r\n:1\r\n:0\r\n:-1\r\n");
    let votes = nodes.over().votes;
    assert_eq!((votes.permit, votes.tally.granted), (None, set(&[1, 2])));
    assert_eq!(votes.tally.refused, set(&[0]));
    (0..3).for_each(|index| assert_eq!(nodes.commands(index), [""; 0]));
    assert_eq!(
        nodes.rounds.entries.len(),
        nodes.rounds.vacant.len(),
        "the entry is free again"
    );
}

#[test]
fn a_permit_of_one_server_with_two_names_counts_once() {
    let mut nodes = Nodes::ready(false);
    nodes.lose(0);
    nodes.pass(500);
    open(&mut nodes, Verb::Acquire, 1);
    nodes.receive(2, &granted(1, 2));
    // The first node reconnects: its greeting reveals the same server, so the third has no vote.
    nodes.connect(0);
    nodes.receive(0, &greeting("run 2", 1_000));
    nodes.receive(0, &granted(1, 2));
    assert!(!nodes.is_over(), "a majority of one server");
    // The grant that counted before does not make another one a refusal.
    nodes.receive(1, &granted(1, 3));
    let votes = nodes.over();
    assert_eq!(votes.votes.permit, Some(2));
    assert_eq!(
        (votes.votes.tally.granted, votes.votes.tally.failed),
        (set(&[0]), set(&[2]))
    );
    assert_eq!(votes.votes.tally.refused, set(&[1]));
}

#[test]
fn withdrawn_votes_make_another_permit_the_best() {
    let mut nodes = Nodes::of(5, false);
    (0..5).for_each(|index| nodes.greet(index));
    nodes.lose(0);
    nodes.pass(500);
    open(&mut nodes, Verb::Acquire, 1);
    for (index, permit) in [(1, 3), (2, 0), (4, 0)] {
        nodes.receive(index, &granted(1, permit));
    }
    // The first node is the same server as the last, which has granted the other permit.
    nodes.connect(0);
    nodes.receive(0, &greeting("run 4", 1_000));
    nodes.receive(0, &granted(1, 3));
    assert!(!nodes.is_over());
    nodes.receive(3, &granted(1, 3));
    let votes = nodes.over().votes;
    assert_eq!(
        (votes.permit, votes.tally.granted),
        (Some(3), set(&[0, 1, 3]))
    );
    assert_eq!(
        (votes.tally.refused, votes.tally.failed),
        (set(&[2]), set(&[4]))
    );
}

#[test]
fn a_node_that_granted_another_permit_is_reported_as_refusing() {
    let mut nodes = Nodes::ready(false);
    open(&mut nodes, Verb::Acquire, 1);
    nodes.receive(0, &granted(1, 1));
    nodes.lose(1);
    nodes.lose(2);
    let votes = nodes.over();
    let answers: Vec<_> = votes
        .reports
        .into_iter()
        .map(|report| report.answer)
        .collect();
    assert!(matches!(answers[0], NodeAnswer::Granted), "{answers:?}");
    assert!(
        matches!(&answers[1], NodeAnswer::Failed(NodeError::Disconnected(_))),
        "{answers:?}"
    );
}
