//! How a call about registers waits. The loops of registers are `async` functions over this, so
//! that the simulator runs the same ones: its caller has the same methods.

use super::Register;
use super::nodes::{RegisterNodes, RegisterRound};
use crate::backend::{Quorum, RegisterMemory};
use crate::core::Core;
use crate::engine::{Node, NodeSet};
use crate::error::RegisterError;
use crate::node::{NodeReport, NodeStatus};
use crossbeam_channel::{Receiver, RecvError};
use redlatch_registers::RegisterRequest;
use std::future::{Future, ready};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

/// A thread that blocks: it has waited when it is asked, so that its call ends in a single poll.
#[derive(Clone, Copy)]
pub(crate) struct Caller<'a> {
    pub(in crate::registers) quorum: &'a dyn Quorum,
}

impl<'a> Caller<'a> {
    /// What this client remembers of its registers.
    pub(crate) fn memory(self) -> &'a RegisterMemory {
        self.quorum.memory()
    }

    /// Asks these nodes, and waits until their answers decide or are late. A whole outcome is
    /// large, and does not go through a future, which would move it twice.
    pub(super) fn ask(
        self,
        request: RegisterRequest,
        nodes: NodeSet,
    ) -> impl Future<Output = RegisterRound> {
        ready(RegisterRound::of(self.quorum.ask(request, nodes)))
    }

    /// Asks all nodes, and waits for nothing.
    pub(crate) fn tell(self, request: RegisterRequest) {
        self.quorum.tell(request);
    }

    /// The state of the servers of these nodes.
    pub(crate) fn servers(self, nodes: NodeSet) -> impl Future<Output = Vec<NodeStatus>> {
        ready(self.quorum.servers(nodes))
    }

    /// The names of the registers that a node has keys of, or the report of one that was not read.
    pub(crate) fn names(
        self,
        node: Node,
    ) -> impl Future<Output = Result<Vec<Arc<[u8]>>, NodeReport>> {
        ready(self.quorum.names(node))
    }

    /// Waits for a message of another thread that changes the register.
    pub(crate) fn receive<T>(
        self,
        messages: &Receiver<T>,
    ) -> impl Future<Output = Result<T, RecvError>> {
        ready(messages.recv())
    }

    /// Has a participant of a transaction take a step, which takes as long as its disk does.
    pub(crate) fn act<T>(self, step: impl FnOnce() -> T) -> impl Future<Output = T> {
        ready(step())
    }

    pub(crate) async fn pause(self, delay: Duration) {
        thread::sleep(delay);
    }
}

impl Register {
    pub(crate) fn nodes(&self) -> Result<RegisterNodes<'_>, RegisterError> {
        self.client.core.register_nodes()
    }
}

impl Core {
    /// The nodes that keep registers.
    pub(crate) fn register_nodes(&self) -> Result<RegisterNodes<'_>, RegisterError> {
        if self.is_forked() {
            return Err(RegisterError::OtherProcess);
        }
        let quorum = self.backend.operator().quorum()?;
        Ok(RegisterNodes {
            core: self,
            caller: Caller { quorum },
        })
    }
}
