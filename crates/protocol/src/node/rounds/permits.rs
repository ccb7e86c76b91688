//! The votes for a permit: which one the nodes granted.
//!
//! Each node chooses a permit that is free there, so a minority may grant another one than the
//! majority. Such a vote is a refusal, and the node is told the right permit before the caller has
//! it: see `propagation.rs`. For this the round waits for every node that is not silent. If it
//! ended with the majority, the other permit would stay taken on that node until somebody read its
//! answer, which may be never: each of several nodes could have another permit free, and nobody
//! would get the one that is free.

use super::entry::Entry;
use crate::engine::{Node, Request, Share, Tally};
use crate::node::session::Session;
use std::cmp::Reverse;

impl<W> Entry<W> {
    fn permits(&self) -> impl Iterator<Item = (Node, u32)> {
        self.replied()
            .filter_map(|(node, reply)| Some((node, reply.permit?)))
    }

    pub(super) fn granted_permit(&self, node: Node) -> Option<u32> {
        self.replies[node.index()].as_ref()?.permit
    }

    /// The permit that most nodes granted; of several, the first.
    pub(super) fn permit(&self) -> Option<u32> {
        self.permits()
            .map(|(_, permit)| permit)
            .max_by_key(|permit| {
                let votes = self.permits().filter(|(_, it)| it == permit).count();
                (votes, Reverse(*permit))
            })
    }

    /// Does a round that grants a permit need the votes of other nodes, which are not silent?
    pub(super) fn waits_for_permits(&self, sessions: &[Session]) -> bool {
        self.takes_permit() && self.is_confirmed() && self.awaited(sessions) > 0
    }

    fn takes_permit(&self) -> bool {
        let share = self.request.as_deref().and_then(Request::share);
        share.map_or(0, Share::permits) > 0 && self.is_claim()
    }

    /// Votes for different permits are not votes for the same lock: only those for one permit are
    /// grants, the others are refusals.
    pub(super) fn count_permits(&mut self) {
        let best = self.permit();
        let mut tally = self.tally;
        for (node, permit) in self.permits() {
            let Tally {
                granted, refused, ..
            } = &mut tally;
            if Some(permit) == best {
                refused.remove(node);
                granted.insert(node);
            } else {
                granted.remove(node);
                refused.insert(node);
            }
        }
        self.tally = tally;
    }
}
