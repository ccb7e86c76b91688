//! The configured nodes by number, and sets of them.

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
