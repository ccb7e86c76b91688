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
    /// node loses, for instance by a crash, still counts: no client can know of the loss. And with
    /// which permit.
    promised: [(u64, Option<u32>); NODES_MAX],
    /// The permit that it was granted, and the first that a node gave it.
    pub(super) permit: Option<u32>,
    first_permit: Option<u32>,
    is_split: bool,
    /// Replies that were not counted yet.
    answers: Vec<Answer>,
}

/// A node's reply to a command about a lock.
#[derive(Clone, Copy, Debug)]
struct Answer {
    node: usize,
    kind: Kind,
    is_granted: bool,
    permit: Option<u32>,
    at: u64,
}

/// A reply as a client counts it: was it granted, and with which permit of those that were asked
/// for?
#[derive(Clone, Copy, Debug)]
pub(crate) struct Credit {
    pub(crate) is_granted: bool,
    pub(crate) permit: Option<u32>,
}

impl Owner {
    pub(super) fn new(client: (usize, u64)) -> Self {
        Self {
            client,
            is_excused: false,
            is_over: false,
            is_void: false,
            holds: Vec::new(),
            promised: [(0, None); NODES_MAX],
            permit: None,
            first_permit: None,
            is_split: false,
            answers: Vec::new(),
        }
    }

    /// A node keeps the key until then. Only a removal changes that.
    pub(super) fn promise(&mut self, node: usize, until: u64, permit: Option<u32>) {
        let (before, same) = self.promised[node];
        let least = if same == permit { before } else { 0 };
        self.promised[node] = (until.max(least), permit);
    }

    /// A node has removed the key.
    pub(super) fn remove(&mut self, node: usize) {
        self.promised[node] = (0, None);
    }

    /// How many nodes have to keep the key until then?
    pub(super) fn keepers(&self, until: u64) -> usize {
        let keeps = |(promised, permit): &&(u64, Option<u32>)| {
            *promised >= until && (self.permit.is_none() || self.permit == *permit)
        };
        self.promised.iter().filter(keeps).count()
    }

    /// A node has replied to a command about it. Returns whether it is the first that gave another
    /// permit than the first did.
    pub(super) fn answered(
        &mut self,
        node: usize,
        command: &Command<'_>,
        Credit { is_granted, permit }: Credit,
        at: u64,
    ) -> bool {
        self.answers.push(Answer {
            node,
            kind: command.kind,
            is_granted,
            permit,
            at,
        });
        let Some(permit) = permit else { return false };
        let is_split = *self.first_permit.get_or_insert(permit) != permit;
        is_split && !std::mem::replace(&mut self.is_split, is_split)
    }

    /// A client counts a reply. Was there such a reply, sent since then and not counted before?
    /// A grant of another permit than the one that is counted is a refusal.
    pub(super) fn credit(&mut self, node: usize, kind: Kind, counted: Credit, since: u64) -> bool {
        let Credit { is_granted, permit } = counted;
        let found = self.answers.iter().position(|answer| {
            let is_counted_permit = permit.is_none() || answer.permit == permit;
            (answer.node, answer.kind) == (node, kind)
                && (answer.is_granted && is_counted_permit) == is_granted
                && answer.at >= since
        });
        found.map(|index| self.answers.swap_remove(index)).is_some()
    }
}
