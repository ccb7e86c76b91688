//! The nodes as those that keep registers.

use super::node_keys::{KeyStep, NodeKeys};
use crate::backend::{Quorum, RegisterMemory};
use crate::clock;
use crate::config::Settings;
use crate::engine::{Command, Node, NodeSet, QueueWait, Request, Token};
use crate::error::RegisterError;
use crate::net::RoundOutcome;
use crate::node::{NodeError, NodeReport, NodeStatus};
use crate::redlock::Redlock;
use redlatch_registers::{MarkStep, RegisterKeys, RegisterRequest, Replies, memberships};
use std::sync::Arc;

/// What keeping registers takes besides the connections.
pub(super) struct RegisterKeeping {
    memory: RegisterMemory,
    key_prefix: Arc<[u8]>,
    /// Why these nodes keep none.
    refusal: Option<RegisterError>,
}

impl RegisterKeeping {
    pub(super) fn new(settings: &Settings) -> Self {
        let group = settings.nodes.group();
        Self {
            memory: RegisterMemory::default(),
            key_prefix: Arc::from(&settings.key_prefix[..]),
            refusal: group.map(|url| RegisterError::Replicated {
                url: url.to_string().into(),
            }),
        }
    }
}

impl Quorum for Redlock {
    fn memory(&self) -> &RegisterMemory {
        &self.diagnostics.registers.memory
    }

    fn ask(&self, request: RegisterRequest, nodes: NodeSet) -> RoundOutcome {
        self.net.submit(Request {
            nodes,
            ..self.about(request)
        })
    }

    fn tell(&self, request: RegisterRequest) {
        self.post(self.about(request));
    }

    fn wait(&self, wait: QueueWait) {
        self.net.wait(wait);
    }

    fn leave(&self, watcher: Token) {
        if !self.owner_process.is_known_forked() {
            self.net.leave(watcher);
        }
    }

    fn servers(&self, nodes: NodeSet) -> Vec<NodeStatus> {
        self.examine(nodes)
    }

    fn names(&self, node: Node) -> Result<Vec<Arc<[u8]>>, NodeReport> {
        let prefix = &self.diagnostics.registers.key_prefix[..];
        let quoted = prefix.iter().flat_map(|byte| [b'\\', *byte]);
        let infix = RegisterKeys::PROMISE.iter().copied();
        let pattern: Arc<[u8]> = quoted.chain(infix).chain(*b"*").collect();
        let mut keys = NodeKeys::new(node);
        let mut names = Vec::new();
        loop {
            let (page, is_last) = match keys.next(self, &pattern, true) {
                KeyStep::Keys(page) => (page, false),
                KeyStep::End(page, _) => (page, true),
                KeyStep::GivenUp(report) => return Err(report),
            };
            for key in page {
                let key = key.strip_prefix(prefix);
                let name = key.and_then(|key| key.strip_prefix(RegisterKeys::PROMISE));
                names.extend(name.map(Arc::from));
            }
            if is_last {
                return Ok(names);
            }
        }
    }
}

impl Redlock {
    /// Keeps registers, unless one of the nodes cannot.
    pub(super) fn keeping_registers(&self) -> Result<&dyn Quorum, RegisterError> {
        let refusal = &self.diagnostics.registers.refusal;
        refusal.clone().map_or(Ok(self), Err)
    }

    fn about(&self, request: RegisterRequest) -> Request {
        let command = Command::Custom(Arc::new(request));
        Request::to_all(&self.rules, clock::now(), command)
    }

    /// Notes in the statuses of the nodes whether each has a vote. Of one that does not answer, or
    /// that this user may not ask, that stays unknown.
    pub(super) fn note_votes(&self, statuses: &mut [NodeStatus]) {
        let mut asked = NodeSet::EMPTY;
        for (index, status) in statuses.iter().enumerate() {
            // One that has just been waited for in vain is not waited for again.
            let is_late = matches!(status.last_error, Some(NodeError::TimedOut(_)));
            if status.is_connected && !is_late {
                asked.insert(Node::new(index));
            }
        }
        if asked.is_empty() {
            return;
        }
        let look =
            RegisterRequest::of_marks(&self.diagnostics.registers.key_prefix, MarkStep::Look);
        let RoundOutcome { said, .. } = self.ask(look, asked);
        let seen = Replies::of(&said).marks();
        for (node, membership) in memberships(&seen, self.rules.nodes) {
            statuses[node.index()].registers = Some(membership);
        }
    }
}
