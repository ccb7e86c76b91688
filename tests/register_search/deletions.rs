//! Deletions on their way to all nodes: the keys are removed when each node has accepted.
//!
//! This is what `crates/protocol/src/node/rounds/custom.rs` does with the follow-up of a change.
//! The client need not wait for it.

use crate::server::Command;

/// A deletion, the nodes that have not carried it out, and those that have accepted it when they
/// did so first, as bits.
#[derive(Clone, Copy, Debug)]
struct Deletion {
    command: Command,
    missing: u8,
    accepted: u8,
}

/// The deletions that may still be accepted by as many nodes as are needed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Deletions(Vec<Deletion>);

impl Deletions {
    /// A deletion is sent to this many nodes.
    pub(crate) fn begin(&mut self, command: Command, nodes: usize) {
        self.0.push(Deletion {
            command,
            missing: (1 << nodes) - 1,
            accepted: 0,
        });
    }

    /// Is this a deletion that the node has not carried out?
    pub(crate) fn await_node(&self, command: Command, node: usize) -> bool {
        self.0
            .iter()
            .any(|it| it.command == command && it.missing >> node & 1 == 1)
    }

    /// A node has carried out a command. Returns whether that is a deletion which as many nodes
    /// have accepted now as are needed.
    pub(crate) fn is_complete(
        &mut self,
        command: Command,
        node: usize,
        is_done: bool,
        needed: usize,
    ) -> bool {
        let Some(place) = self.0.iter().position(|it| it.command == command) else {
            return false;
        };
        let it = &mut self.0[place];
        if it.missing >> node & 1 == 0 {
            return false;
        }
        it.missing &= !(1 << node);
        it.accepted |= u8::from(is_done) << node;
        let is_complete = it.accepted.count_ones() as usize == needed;
        let most = (it.accepted | it.missing).count_ones() as usize;
        if is_complete || most < needed {
            self.0.remove(place);
        }
        is_complete
    }

    /// Which of them a node has not carried out, and which it has accepted.
    pub(crate) fn of_node(&self, node: usize) -> Vec<(bool, bool)> {
        let bit = |bits: u8| bits >> node & 1 == 1;
        self.0
            .iter()
            .map(|it| (bit(it.missing), bit(it.accepted)))
            .collect()
    }

    pub(crate) fn commands(&self) -> impl Iterator<Item = Command> + '_ {
        self.0.iter().map(|it| it.command)
    }
}
