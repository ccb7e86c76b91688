//! Every way in which a few nodes may vote for a few permits, compared with a slow reference.

use crate::engine::{NodeSet, Verdict, Vote};
use crate::node::command::NodeReply;
use crate::node::fixture::{node, ticket};
use crate::node::rounds::entry::Entry;
use crate::node::session::Answer;

/// What a node may answer: three permits, a refusal, or nothing that counts. A code has a digit for
/// each node, in base six; zero is a node that has not answered.
const CHOICES: [(Vote, Option<u32>); 5] = [
    (Vote::Granted, Some(0)),
    (Vote::Granted, Some(1)),
    (Vote::Granted, Some(2)),
    (Vote::Refused, None),
    (Vote::Failed, None),
];

fn answers(nodes: usize, code: usize) -> Vec<Option<(Vote, Option<u32>)>> {
    let digit = |index| code / 6_usize.pow(index as u32) % 6;
    (0..nodes)
        .map(|index| digit(index).checked_sub(1).map(|choice| CHOICES[choice]))
        .collect()
}

/// The codes in which every node has answered, and those that had before have not changed.
fn completions(nodes: usize, code: usize) -> impl Iterator<Item = usize> {
    let open: Vec<u32> = (0..nodes as u32)
        .filter(|index| code / 6_usize.pow(*index) % 6 == 0)
        .collect();
    (0..5_usize.pow(open.len() as u32)).map(move |choice| {
        open.iter().enumerate().fold(code, |code, (nth, index)| {
            code + (1 + choice / 5_usize.pow(nth as u32) % 5) * 6_usize.pow(*index)
        })
    })
}

/// The end of a round: the permit that was won, or else whether a majority answered.
#[derive(Clone, Copy, Debug, PartialEq)]
enum End {
    Won(u32),
    Contended,
    Unanswered,
}

/// The slow reference: the end after all nodes have answered.
fn end(nodes: usize, code: usize) -> End {
    let answers = answers(nodes, code);
    for permit in 0..3 {
        let votes = answers
            .iter()
            .filter(|it| **it == Some((Vote::Granted, Some(permit))));
        if votes.count() * 2 > nodes {
            return End::Won(permit);
        }
    }
    let failed = answers
        .iter()
        .filter(|it| **it == Some((Vote::Failed, None)))
        .count();
    if (nodes - failed) * 2 > nodes {
        End::Contended
    } else {
        End::Unanswered
    }
}

/// A round that has counted these answers, in this order of the nodes.
fn counted(nodes: usize, code: usize, order: impl Iterator<Item = usize>) -> Entry<()> {
    let mut entry = Entry::vacant(nodes);
    let answers = answers(nodes, code);
    for index in order {
        if let Some((vote, permit)) = answers[index] {
            let reply = NodeReply {
                permit,
                ..NodeReply::of(vote)
            };
            let answer = Answer {
                ticket: ticket(0),
                reply,
                was_sent: false,
                took: None,
            };
            assert!(entry.count(node(index), answer));
        }
    }
    entry
}

#[test]
fn votes_for_permits_are_settled_exactly_when_nothing_can_change() {
    for nodes in [1, 2, 3, 4, 5] {
        for code in 0..6_usize.pow(nodes as u32) {
            let entry = counted(nodes, code, 0..nodes);
            let tally = entry.tally;
            let ends: Vec<End> = completions(nodes, code)
                .map(|code| end(nodes, code))
                .collect();
            let is_settled = ends.iter().all(|end| *end == ends[0]);
            assert_eq!(tally.is_settled(), is_settled, "{:?}", answers(nodes, code));
            let found = match (tally.granted_by_majority(), entry.permit()) {
                (Verdict::Won, Some(permit)) => End::Won(permit),
                _ if tally.answered_by_majority() == Verdict::Won => End::Contended,
                _ => End::Unanswered,
            };
            let is_wrong = is_settled && ends[0] != found;
            assert!(!is_wrong, "{found:?} for {:?}", answers(nodes, code));
        }
    }
}

#[test]
fn the_order_of_answers_makes_no_difference() {
    for nodes in [3, 5] {
        for code in 0..6_usize.pow(nodes as u32) {
            let one = counted(nodes, code, 0..nodes);
            for first in 0..nodes {
                let other = counted(nodes, code, (0..nodes).rev().map(|it| (it + first) % nodes));
                let answers = answers(nodes, code);
                assert_eq!(one.tally, other.tally, "{answers:?}");
                assert_eq!(one.permit(), other.permit(), "{answers:?}");
            }
        }
    }
}

#[test]
fn the_permit_of_most_nodes_counts_and_of_several_the_first() {
    for code in 0..6_usize.pow(5) {
        let entry = counted(5, code, 0..5);
        let answers = answers(5, code);
        let voted = |permit| -> NodeSet {
            let granted_it = |index: &usize| answers[*index] == Some((Vote::Granted, Some(permit)));
            (0..5).filter(granted_it).map(node).collect()
        };
        let mut best = (0, None);
        for permit in 0..3 {
            if voted(permit).len() > best.0 {
                best = (voted(permit).len(), Some(permit));
            }
        }
        assert_eq!(entry.permit(), best.1, "{answers:?}");
        let expected = best.1.map_or(NodeSet::EMPTY, voted);
        assert_eq!(entry.tally.granted, expected, "{answers:?}");
    }
}
