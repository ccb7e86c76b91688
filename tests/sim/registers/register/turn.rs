//! The turns of clients that change a register at the same time, on which nothing depends: one
//! comes after a while.

use super::Register;
use std::time::Duration;

/// A turn comes this late at most.
const TURN_MAX: Duration = Duration::from_millis(1);

pub(super) struct Turn;

impl Register {
    pub(super) async fn take_turn(&self) -> Option<Turn> {
        let nodes = self.nodes().ok()?;
        nodes
            .caller
            .pause(self.thread.shared.part_of(TURN_MAX))
            .await;
        Some(Turn)
    }
}
