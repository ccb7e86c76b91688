//! Which nodes have a vote: no simulated client tells it.

use super::nodes::{GroupInspection, RegisterNodes, RegisterRound};
use redlatch_protocol::engine::NodeSet;

impl RegisterNodes<'_> {
    pub(super) fn note_voters(&self, inspection: &GroupInspection, _: NodeSet) {
        self.trust_by_mistake(inspection);
    }

    pub(super) fn note_answers(&self, _: &RegisterRound) {}
}
