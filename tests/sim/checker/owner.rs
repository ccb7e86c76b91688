//! The checker's record of one lock: which client drew its token, and its keys on the nodes.

use super::{Command, Kind};

/// The maximum number of nodes in a history.
const NODES_MAX: usize = 7;

/// One lock, granted or not.
#[derive(Debug)]
pub(super) struct Owner {
    pub(super) client: (usize, u64),
    /// May its key be left over until its ttl has passed, because no client can remove it?
    pub(super) is_excused: bool,
    /// Was it released, or never granted?
    pub(super) is_over: bool,
    /// Was it force-released on at least one node? Then there is no guarantee any more.
    pub(super) is_void: bool,
    /// Its holds, if it was granted: one for each resource.
    pub(super) holds: Vec<usize>,
    /// Until when each node has to keep the key, by the commands that it received. A key that a
    /// node loses, for instance by a crash, still counts: no client can know of the loss.
    promised: [u64; NODES_MAX],
    /// Replies that were not counted yet.
    answers: Vec<Answer>,
}

/// A node's reply to a command about a lock.
#[derive(Clone, Copy, Debug)]
struct Answer {
    node: usize,
    kind: Kind,
    is_granted: bool,
    at: u64,
}

impl Owner {
    pub(super) fn new(client: (usize, u64)) -> Self {
        Self {
            client,
            is_excused: false,
            is_over: false,
            is_void: false,
            holds: Vec::new(),
            promised: [0; NODES_MAX],
            answers: Vec::new(),
        }
    }

    /// A node keeps the key until then. Only a removal changes that.
    pub(super) fn promise(&mut self, node: usize, until: u64) {
        self.promised[node] = self.promised[node].max(until);
    }

    /// A node has removed the key.
    pub(super) fn remove(&mut self, node: usize) {
        self.promised[node] = 0;
    }

    /// How many nodes have to keep the key until then?
    pub(super) fn keepers(&self, until: u64) -> usize {
        self.promised.iter().filter(|promised| **promised >= until).count()
    }

    /// A node has replied to a command about it.
    pub(super) fn answered(
        &mut self,
        node: usize,
        command: &Command<'_>,
        is_granted: bool,
        at: u64,
    ) {
        self.answers.push(Answer { node, kind: command.kind, is_granted, at });
    }

    /// A client counts a reply. Was there such a reply, sent since then and not counted before?
    pub(super) fn credit(&mut self, node: usize, kind: Kind, is_granted: bool, since: u64) -> bool {
        let found = self.answers.iter().position(|answer| {
            (answer.node, answer.kind, answer.is_granted) == (node, kind, is_granted)
                && answer.at >= since
        });
        found.map(|index| self.answers.swap_remove(index)).is_some()
    }
}
