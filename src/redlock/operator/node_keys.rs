//! The keys that match a pattern, read from single nodes step by step.

use crate::backend::KeyListing;
use crate::clock;
use crate::engine::{Command, Node, Request, quorum};
use crate::error::{Error, NoQuorum};
use crate::node::{NodeAnswer, NodeError, NodeReport};
use crate::redlock::Redlock;
use redlatch_protocol::inspect::{KeyPage, Listing};
use std::sync::Arc;

/// About how many keys a server looks at in one step: it does nothing else for about a millisecond
/// at most.
const STEP: u32 = 500;

/// How often a node is asked for one step.
const TRIES: u32 = 3;

/// How far the keys of a node have been read.
pub(crate) struct NodeKeys {
    node: Node,
    cursor: u64,
    count: u32,
    tries: u32,
    progress: ListingProgress,
}

/// The next step.
pub(crate) enum KeyStep {
    /// These keys, perhaps none, and perhaps some that were there before.
    Keys(Vec<Vec<u8>>),
    /// There are no more: the node was read to its end.
    End(Vec<Vec<u8>>, NodeReport),
    /// The node does not answer, or its list has no end.
    GivenUp(NodeReport),
}

impl NodeKeys {
    pub(crate) fn new(node: Node) -> Self {
        Self {
            node,
            cursor: 0,
            count: STEP,
            tries: 0,
            progress: ListingProgress::default(),
        }
    }

    /// Takes the next step. `registers`: the keys are those of registers, which do not expire.
    pub(crate) fn next(
        &mut self,
        redlock: &Redlock,
        pattern: &Arc<[u8]>,
        registers: bool,
    ) -> KeyStep {
        let (page, report) = self.ask(redlock, Arc::clone(pattern), registers);
        self.tries += 1;
        match page {
            Some(KeyPage {
                keys: Some(keys),
                next,
                ..
            }) => {
                // A step with many long names says nothing about the next one.
                self.count = (self.count * 2).min(STEP);
                self.cursor = next;
                self.tries = 0;
                if next == 0 {
                    KeyStep::End(keys, report)
                } else if self.progress.goes_on(next) {
                    KeyStep::Keys(keys)
                } else {
                    given_up("its list of keys has no end", report)
                }
            }
            Some(KeyPage { keys: None, .. }) if self.count > 1 => {
                self.count /= 2;
                self.tries = 0;
                KeyStep::Keys(Vec::new())
            }
            Some(_) => given_up("more names in one step than fit in a reply", report),
            None if self.tries < TRIES && is_slow(&report) => KeyStep::Keys(Vec::new()),
            None => KeyStep::GivenUp(report),
        }
    }

    fn ask(
        &self,
        redlock: &Redlock,
        pattern: Arc<[u8]>,
        registers: bool,
    ) -> (Option<KeyPage>, NodeReport) {
        let listing = Command::Custom(Arc::new(Listing {
            pattern,
            cursor: self.cursor,
            count: self.count,
            registers,
            tag: Arc::default(),
        }));
        let request = Request::to_one(&redlock.rules, clock::now(), self.node, listing);
        let mut outcome = redlock.net.submit(request);
        let index = self.node.index();
        let said = outcome.said[index].as_ref();
        let page = said.and_then(|said| said.get().cloned());
        (page, outcome.reports.swap_remove(index))
    }
}

/// The keys of all nodes, read from one node after another.
pub(super) struct AllKeys<'a> {
    redlock: &'a Redlock,
    pattern: Arc<[u8]>,
    of_registers: bool,
    /// What each node that was read to its end, or given up, has answered.
    reports: Vec<NodeReport>,
    /// How far the node after those has been read, if it has been.
    node: Option<NodeKeys>,
}

impl<'a> AllKeys<'a> {
    pub(super) fn new(redlock: &'a Redlock, pattern: Arc<[u8]>, of_registers: bool) -> Self {
        Self {
            redlock,
            pattern,
            of_registers,
            reports: Vec::new(),
            node: None,
        }
    }
}

impl KeyListing for AllKeys<'_> {
    fn next_keys(&mut self) -> Result<Option<Vec<Vec<u8>>>, Error> {
        let Self {
            redlock,
            pattern,
            of_registers,
            reports,
            node,
        } = self;
        let next = reports.len();
        if next == redlock.rules.nodes {
            let read = reports
                .iter()
                .filter(|report| report.answer == NodeAnswer::Answered)
                .count();
            if read < quorum(redlock.rules.nodes) {
                return Err(Error::NoQuorum(NoQuorum::new(std::mem::take(reports))));
            }
            return Ok(None);
        }
        let keys = node.get_or_insert_with(|| NodeKeys::new(Node::new(next)));
        let (keys, end) = match keys.next(redlock, pattern, *of_registers) {
            KeyStep::Keys(keys) => return Ok(Some(keys)),
            KeyStep::End(keys, report) => (keys, report),
            KeyStep::GivenUp(report) => (Vec::new(), report),
        };
        reports.push(end);
        *node = None;
        Ok(Some(keys))
    }

    fn keep(&mut self, bytes: usize) {
        if let Some(node) = &mut self.node {
            node.progress.bytes += bytes;
        }
    }
}

fn given_up(reason: &str, mut report: NodeReport) -> KeyStep {
    report.answer = NodeAnswer::Failed(NodeError::UnexpectedReply(reason.to_owned()));
    KeyStep::GivenUp(report)
}

/// Has the node not answered in time? It may still connect, or do something else.
fn is_slow(report: &NodeReport) -> bool {
    matches!(report.answer, NodeAnswer::Failed(NodeError::TimedOut(_)))
}

/// The most steps that a node is asked for: enough for two billion keys.
const STEPS_MAX: u64 = 1 << 22;

/// The most memory for names that only this node and the nodes after it have listed.
const BYTES_MAX: usize = 256 * 1024 * 1024;

/// How far a node has been read: a server that lists keys without end must not keep the caller, and
/// its memory, for ever.
#[derive(Default)]
struct ListingProgress {
    steps: u64,
    /// How much memory the names take that this node was the first to list.
    bytes: usize,
    /// The cursor after the last step whose number is a power of two. A server that goes round in
    /// circles comes to it again (Brent's algorithm). Within one listing, no cursor of `SCAN` comes
    /// twice, even if the server's table grows or shrinks: the bits in reverse order only grow.
    mark: u64,
}

impl ListingProgress {
    /// Goes on at this cursor, unless the list seems to have no end.
    fn goes_on(&mut self, next: u64) -> bool {
        if next == self.mark {
            return false;
        }
        self.steps += 1;
        if self.steps.is_power_of_two() {
            self.mark = next;
        }
        self.steps < STEPS_MAX && self.bytes < BYTES_MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn circles_many_steps_and_many_names_are_no_progress() {
        let steps = |next: &dyn Fn(u64) -> u64| {
            let mut progress = ListingProgress::default();
            (1..=2 * STEPS_MAX)
                .take_while(|step| progress.goes_on(next(*step)))
                .count() as u64
        };
        assert_eq!(steps(&|step| step), STEPS_MAX - 1);
        for length in [1, 2, 3, 7, 100, 1_000] {
            let most = 4 * (length + 50);
            assert!(
                steps(&|step| 1 + step % length) < most,
                "a circle of {length}"
            );
            // It begins after 50 steps.
            assert!(
                steps(&|step| if step < 50 {
                    5_000 + step
                } else {
                    step % length + 1
                }) < most
            );
        }
        let mut progress = ListingProgress {
            bytes: BYTES_MAX,
            ..ListingProgress::default()
        };
        assert!(!progress.goes_on(1));
    }
}
