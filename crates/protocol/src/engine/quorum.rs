//! Counting votes: how each node voted, and whether the votes decide the round.
//!
//! A quorum is more than half of the nodes that were *configured*. Whether a node is connected,
//! reachable or known to fail does not change how many must agree: two clients that each see a
//! different half of the nodes must never both find a majority.

use super::{Node, NodeSet};
use std::time::Duration;

/// The smallest number of nodes that is a majority of `nodes`.
pub fn quorum(nodes: usize) -> usize {
    nodes / 2 + 1
}

/// How long until a majority of the nodes can vote: some of them will not for these times, and all
/// others are counted as if they did. `None` if the others are a majority.
pub fn until_quorum(nodes: usize, absent: impl Iterator<Item = Duration>) -> Option<Duration> {
    let mut absent: Vec<Duration> = absent.collect();
    absent.sort_unstable();
    let missing = quorum(nodes).saturating_sub(nodes - absent.len());
    missing.checked_sub(1).map(|last| absent[last])
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// A majority agreed; the remaining votes cannot change that.
    Won,
    /// A majority cannot agree any more; the remaining votes cannot change that.
    Lost,
    /// The nodes that have not answered decide.
    Pending,
}

/// Judges a vote of `nodes` nodes of which `yes` agreed and `no` will not agree any more.
pub fn judge(nodes: usize, yes: usize, no: usize) -> Verdict {
    debug_assert!(yes + no <= nodes, "no node votes twice");
    if yes >= quorum(nodes) {
        Verdict::Won
    } else if no > nodes - quorum(nodes) {
        Verdict::Lost
    } else {
        Verdict::Pending
    }
}

/// The meaning of one node's answer for the operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vote {
    /// The node carried out the request.
    Granted,
    /// The node refused: the key holds another token, or is gone.
    Refused,
    /// The node gave no answer that counts. Whether it carried out the request is unknown.
    Failed,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    nodes: usize,
    pub granted: NodeSet,
    pub refused: NodeSet,
    /// Nodes that will give no answer that counts.
    pub failed: NodeSet,
}

impl Tally {
    pub fn new(nodes: usize) -> Self {
        Self {
            nodes,
            ..Self::default()
        }
    }

    pub fn nodes(&self) -> usize {
        self.nodes
    }

    /// Counts a vote. Each node has one: a second vote changes nothing and returns `false`.
    pub fn cast(&mut self, node: Node, vote: Vote) -> bool {
        if node.index() >= self.nodes || self.voted().contains(node) {
            return false;
        }
        match vote {
            Vote::Granted => self.granted.insert(node),
            Vote::Refused => self.refused.insert(node),
            Vote::Failed => self.failed.insert(node),
        }
        true
    }

    pub fn voted(&self) -> NodeSet {
        self.granted.union(self.refused).union(self.failed)
    }

    pub fn is_complete(&self) -> bool {
        self.voted().len() == self.nodes
    }

    /// Did a majority carry out the request?
    pub fn granted_by_majority(&self) -> Verdict {
        judge(
            self.nodes,
            self.granted.len(),
            self.refused.len() + self.failed.len(),
        )
    }

    /// Did a majority answer, with a grant or a refusal?
    pub fn answered_by_majority(&self) -> Verdict {
        judge(
            self.nodes,
            self.granted.len() + self.refused.len(),
            self.failed.len(),
        )
    }

    /// Is the outcome of the round decided?
    ///
    /// A majority of grants decides it. So does the certainty that there will be no such majority,
    /// but only when the *reason* is certain too: "other clients hold the lock" needs a majority
    /// that answered, "too few nodes answered" needs the certainty that no majority will answer. If
    /// one of three nodes is down and another has refused, the third node's answer decides between
    /// the two reasons.
    pub fn is_settled(&self) -> bool {
        match self.granted_by_majority() {
            Verdict::Won => true,
            Verdict::Lost => self.answered_by_majority() != Verdict::Pending,
            Verdict::Pending => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::NODES_MAX;

    /// The slow reference for `judge`: tries every way in which the remaining nodes may vote.
    fn judge_by_enumeration(nodes: usize, yes: usize, no: usize) -> Verdict {
        let outcomes: Vec<bool> = (0..=nodes - yes - no)
            .map(|more| {
                let mut half_or_less = 0;
                while 2 * half_or_less <= nodes {
                    half_or_less += 1;
                }
                yes + more >= half_or_less
            })
            .collect();
        match (outcomes.contains(&true), outcomes.contains(&false)) {
            (true, false) => Verdict::Won,
            (false, true) => Verdict::Lost,
            _ => Verdict::Pending,
        }
    }

    #[test]
    fn every_count_of_votes_up_to_seven_nodes_is_judged_like_the_slow_way() {
        for nodes in 1..=7 {
            for yes in 0..=nodes {
                for no in 0..=nodes - yes {
                    let slow = judge_by_enumeration(nodes, yes, no);
                    assert_eq!(
                        judge(nodes, yes, no),
                        slow,
                        "{nodes} nodes, {yes} yes, {no} no"
                    );
                }
            }
        }
    }

    #[test]
    fn a_quorum_is_more_than_half() {
        let table = [
            (1, 1),
            (2, 2),
            (3, 2),
            (4, 3),
            (5, 3),
            (6, 4),
            (7, 4),
            (64, 33),
        ];
        for (nodes, expected) in table {
            assert_eq!(quorum(nodes), expected);
        }
    }

    #[test]
    fn two_quorums_always_share_a_node() {
        for nodes in 1..=NODES_MAX {
            assert!(2 * quorum(nodes) > nodes);
        }
    }

    /// Every assignment of votes to up to seven nodes, in base four: not yet, yes, no, failed.
    #[test]
    fn every_tally_up_to_seven_nodes_is_settled_exactly_when_nothing_can_change() {
        for nodes in 1..=7_usize {
            for code in 0..4_usize.pow(nodes as u32) {
                let tally = tally_of(nodes, code);
                let endings: Vec<(bool, bool)> = completions(nodes, code)
                    .map(|code| {
                        let end = tally_of(nodes, code);
                        let answered = end.granted.len() + end.refused.len();
                        (end.granted.len() * 2 > nodes, answered * 2 > nodes)
                    })
                    // Once a majority has granted it, other answers make no difference.
                    .map(|(granted, answered)| (granted, granted || answered))
                    .collect();
                let settled = endings.iter().all(|ending| *ending == endings[0]);
                assert_eq!(tally.is_settled(), settled, "{tally:?}");
            }
        }
    }

    fn tally_of(nodes: usize, code: usize) -> Tally {
        let mut tally = Tally::new(nodes);
        for index in 0..nodes {
            let vote = match code / 4_usize.pow(index as u32) % 4 {
                0 => continue,
                1 => Vote::Granted,
                2 => Vote::Refused,
                _ => Vote::Failed,
            };
            assert!(tally.cast(Node::new(index), vote));
        }
        tally
    }

    /// The codes in which every node that has not voted in `code` has voted too.
    fn completions(nodes: usize, code: usize) -> impl Iterator<Item = usize> {
        let open: Vec<u32> = (0..nodes as u32)
            .filter(|index| code / 4_usize.pow(*index) % 4 == 0)
            .collect();
        (0..3_usize.pow(open.len() as u32)).map(move |choice| {
            open.iter().enumerate().fold(code, |code, (nth, index)| {
                code + (1 + choice / 3_usize.pow(nth as u32) % 3) * 4_usize.pow(*index)
            })
        })
    }

    /// Every assignment of three times, or none, to up to six nodes, in base four. The slow way
    /// lets time pass until more than half of the nodes can vote.
    #[test]
    fn a_majority_can_vote_as_soon_as_enough_nodes_can() {
        for nodes in 1..=6_u32 {
            for code in 0..4_u32.pow(nodes) {
                let absent: Vec<u64> = (0..nodes)
                    .map(|index| u64::from(code / 4_u32.pow(index) % 4))
                    .filter(|left| *left > 0)
                    .collect();
                let voting =
                    |now: u64| nodes as usize - absent.iter().filter(|left| **left > now).count();
                let first = (0..=3).find(|now| 2 * voting(*now) > nodes as usize);
                let slow = first.filter(|now| *now > 0).map(Duration::from_secs);
                let absent = absent.iter().copied().map(Duration::from_secs);
                assert_eq!(
                    until_quorum(nodes as usize, absent),
                    slow,
                    "{nodes} nodes, {code}"
                );
            }
        }
    }

    #[test]
    fn a_second_vote_of_a_node_changes_nothing() {
        let mut tally = Tally::new(3);
        assert!(tally.cast(Node::new(0), Vote::Failed));
        assert!(!tally.cast(Node::new(0), Vote::Granted));
        assert!(
            !tally.cast(Node::new(3), Vote::Granted),
            "not one of the three"
        );
        assert_eq!(tally.granted, NodeSet::EMPTY);
    }
}
