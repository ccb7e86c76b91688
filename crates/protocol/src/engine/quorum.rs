//! Counting votes: how each node voted, and whether the votes decide the round.
//!
//! A quorum is more than half of the nodes that were *configured*. Whether a node is connected,
//! reachable or known to fail does not change how many must agree: two clients that each see a
//! different half of the nodes must never both find a majority.

use std::time::Duration;
use std::{fmt, iter};

/// The most nodes of one client: the capacity of a [`NodeSet`], and far more than is useful.
pub const NODES_MAX: usize = 64;

/// One of the configured nodes, by its position in the configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Node(u8);

impl Node {
    /// The node at `index` of the configuration.
    ///
    /// # Panics
    ///
    /// If `index` is not below [`NODES_MAX`]; the configuration has checked that.
    #[inline]
    pub fn new(index: usize) -> Self {
        assert!(
            index < NODES_MAX,
            "a configuration has at most {NODES_MAX} nodes"
        );
        Self(index as u8)
    }

    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct NodeSet(u64);

impl NodeSet {
    pub const EMPTY: Self = Self(0);

    /// All of the first `nodes` nodes.
    pub fn all(nodes: usize) -> Self {
        Self(
            u64::MAX
                .checked_shr((NODES_MAX - nodes) as u32)
                .unwrap_or(0),
        )
    }

    pub fn insert(&mut self, node: Node) {
        self.0 |= 1 << node.0;
    }

    pub fn remove(&mut self, node: Node) {
        self.0 &= !(1 << node.0);
    }

    pub fn contains(self, node: Node) -> bool {
        self.0 & (1 << node.0) != 0
    }

    pub fn len(self) -> usize {
        self.0.count_ones() as usize
    }

    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// The nodes of this set that are not in the other.
    pub fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// The nodes in ascending order.
    pub fn iter(self) -> impl Iterator<Item = Node> {
        // Each step takes the lowest node from those that are left.
        iter::successors(Some(self.0), |left| Some(left & left.wrapping_sub(1)))
            .take_while(|left| *left != 0)
            .map(|left| Node(left.trailing_zeros() as u8))
    }
}

impl FromIterator<Node> for NodeSet {
    fn from_iter<I: IntoIterator<Item = Node>>(nodes: I) -> Self {
        let mut set = Self::EMPTY;
        nodes.into_iter().for_each(|node| set.insert(node));
        set
    }
}

impl fmt::Debug for NodeSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter().map(Node::index)).finish()
    }
}

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

// Which of a resource's permits are free: on one node, or on a majority.

pub const PERMITS_MAX: u32 = 1024;

/// A bit for each permit, up to the last one: most locks have none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PermitSet(Vec<u64>);

impl PermitSet {
    /// The permits at whose place in the text is a `1`. `None` if something else than a `0` is at
    /// the place of another, or there are too many places.
    pub fn read(digits: &[u8]) -> Option<Self> {
        let mut set = Self::default();
        for (number, digit) in digits.iter().enumerate() {
            match digit {
                _ if number >= PERMITS_MAX as usize => return None,
                b'1' => set.insert(number),
                b'0' => {}
                _ => return None,
            }
        }
        Some(set)
    }

    fn insert(&mut self, number: usize) {
        self.0.resize(self.0.len().max(number / 64 + 1), 0);
        self.0[number / 64] |= 1 << (number % 64);
    }

    pub fn contains(&self, number: u32) -> bool {
        let word = self
            .0
            .get((number / 64) as usize)
            .copied()
            .unwrap_or_default();
        word & 1 << (number % 64) != 0
    }

    /// The permits that are in this many of the sets, or in more.
    pub fn in_at_least(sets: &[Self], count: usize) -> Self {
        let mut common = Self::default();
        let is_common =
            |number: &u32| sets.iter().filter(|set| set.contains(*number)).count() >= count;
        for number in (0..PERMITS_MAX).filter(is_common) {
            common.insert(number as usize);
        }
        common
    }

    pub fn numbers(&self) -> impl Iterator<Item = u32> {
        (0..PERMITS_MAX).filter(|number| self.contains(*number))
    }

    /// One of them, by a random number.
    pub fn choose(&self, random: u64) -> Option<u32> {
        let index = random.checked_rem(self.numbers().count() as u64)?;
        self.numbers().nth(index as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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

    mod permit_set {
        use super::super::*;

        fn read(digits: &str) -> PermitSet {
            PermitSet::read(digits.as_bytes()).unwrap()
        }

        #[test]
        fn a_set_has_the_permits_at_whose_places_the_text_has_a_one() {
            let all = "1".repeat(PERMITS_MAX as usize);
            let set = read("0110");
            assert_eq!(
                (0..5).map(|it| set.contains(it)).collect::<Vec<_>>(),
                [false, true, true, false, false]
            );
            assert!((0..PERMITS_MAX).all(|number| read(&all).contains(number)));
            assert!(!read(&all).contains(PERMITS_MAX));
            assert_eq!(read(""), PermitSet::default());
            for wrong in [
                all.clone() + "1",
                all + "0",
                "12".to_owned(),
                "1 ".to_owned(),
            ] {
                assert_eq!(PermitSet::read(wrong.as_bytes()), None);
            }
        }

        #[test]
        fn what_a_majority_has_free_is_free_and_each_of_these_is_chosen() {
            let sets = ["00111", "01011", "01101", ""].map(read);
            let common = PermitSet::in_at_least(&sets, 2);
            assert_eq!(common, read("01111"));
            assert_eq!(PermitSet::in_at_least(&sets, 3), read("00001"));
            assert_eq!(
                (0..5).map(|it| common.choose(it)).collect::<Vec<_>>(),
                [1, 2, 3, 4, 1].map(Some)
            );
            assert_eq!(PermitSet::in_at_least(&sets, 4).choose(7), None);
        }
    }
}
