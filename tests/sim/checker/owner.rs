//! What the checker knows of one lock: who drew its token, and what became of it on the nodes.

use super::{Command, Kind};

/// The most nodes there are in a history.
const NODES_MAX: usize = 7;

/// One lock, granted or not.
#[derive(Debug)]
pub(super) struct Owner {
    pub(super) client: (usize, u64),
    /// Did it happen to it what no client can mend before the ttl has passed?
    pub(super) is_excused: bool,
    /// Has it been given back, or was it never granted?
    pub(super) is_over: bool,
    /// Has an operator taken it away, on one node at least? Then nothing is promised any more.
    pub(super) is_void: bool,
    /// Its holds, if it was granted: one for each resource.
    pub(super) holds: Vec<usize>,
    /// Until when each node has promised to keep the key. What a node loses against its promise,
    /// by a crash for instance, is not taken off: no client can know that.
    promised: [u64; NODES_MAX],
    /// Answers that nobody has counted yet.
    answers: Vec<Answer>,
}

/// A node's answer to a command about a lock.
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

    /// A node keeps the key until then. No promise is taken back but by a removal.
    pub(super) fn promise(&mut self, node: usize, until: u64) {
        self.promised[node] = self.promised[node].max(until);
    }

    /// A node has removed the key.
    pub(super) fn remove(&mut self, node: usize) {
        self.promised[node] = 0;
    }

    /// How many nodes have promised to keep the key until then?
    pub(super) fn keepers(&self, until: u64) -> usize {
        self.promised.iter().filter(|promised| **promised >= until).count()
    }

    /// A node has answered a command about it.
    pub(super) fn answered(
        &mut self,
        node: usize,
        command: &Command<'_>,
        is_granted: bool,
        at: u64,
    ) {
        self.answers.push(Answer { node, kind: command.kind, is_granted, at });
    }

    /// A client counts an answer. Was there one, given since then, and not counted before?
    pub(super) fn credit(&mut self, node: usize, kind: Kind, is_granted: bool, since: u64) -> bool {
        let found = self.answers.iter().position(|answer| {
            (answer.node, answer.kind, answer.is_granted) == (node, kind, is_granted)
                && answer.at >= since
        });
        found.map(|index| self.answers.swap_remove(index)).is_some()
    }
}
