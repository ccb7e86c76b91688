//! The votes for a permit: which one the nodes granted.

use super::entry::Entry;
use crate::engine::{Node, Tally};
use std::cmp::Reverse;

impl<W> Entry<W> {
    /// The permit that most nodes granted; of several, the first.
    pub(super) fn permit(&self) -> Option<u32> {
        let votes = |permit| self.permits.iter().filter(|it| **it == Some(permit)).count();
        let most = |permit: &u32| (votes(*permit), Reverse(*permit));
        self.permits.iter().flatten().copied().max_by_key(most)
    }

    /// Votes for different permits are not votes for the same lock: only those for one permit are
    /// grants, the others are refusals.
    pub(super) fn count_permits(&mut self) {
        let best = self.permit();
        for (index, permit) in self.permits.iter().enumerate().filter(|(_, it)| it.is_some()) {
            let (node, Tally { granted, refused, .. }) = (Node::new(index), &mut self.tally);
            let (from, to) = if *permit == best { (refused, granted) } else { (granted, refused) };
            from.remove(node);
            to.insert(node);
        }
    }
}
