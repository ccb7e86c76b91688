//! Where the one who drives leaves what has changed about the nodes, for whoever has put the driver
//! down: those who are told may use the client, and must not find its driver taken by themselves.

use crate::node::{Changes, NodeChange};
use std::mem;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Changes that are still to be told, in their order.
#[derive(Debug, Default)]
pub(crate) struct ChangeQueue {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    changes: Changes,
    /// Is somebody telling one? Two at a time would tell them in any order.
    is_telling: bool,
}

impl ChangeQueue {
    pub(super) fn push(&self, change: NodeChange) {
        self.lock().changes.push(change);
    }

    /// Tells what there is, one after another, unless another thread is at it: that one tells what
    /// comes meanwhile as well. If `tell` panics, the rest is for the next who comes. To be called
    /// when nothing is held and nothing owed: `tell` may use the client. It says whether this is
    /// still the same process: in a forked child, a thread that is not there may have the lock.
    pub(crate) fn drain(&self, mut tell: impl FnMut(&NodeChange) -> bool) {
        while let Some(change) = self.begin() {
            let telling = Telling(self);
            if !tell(&change) {
                mem::forget(telling);
                return;
            }
        }
    }

    fn begin(&self) -> Option<NodeChange> {
        let mut state = self.lock();
        let change = if state.is_telling { None } else { state.changes.pop() };
        state.is_telling |= change.is_some();
        change
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One change that is being told.
struct Telling<'a>(&'a ChangeQueue);

impl Drop for Telling<'_> {
    fn drop(&mut self) {
        self.0.lock().is_telling = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::NodeState;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    fn change(name: &str) -> NodeChange {
        NodeChange { url: name.into(), state: NodeState::Up }
    }

    fn told(mailbox: &ChangeQueue) -> Vec<String> {
        let mut told = Vec::new();
        mailbox.drain(|change| {
            told.push(change.url.to_string());
            true
        });
        told
    }

    #[test]
    fn each_change_is_told_once_and_in_order() {
        let mailbox = ChangeQueue::default();
        ["a", "b"].iter().for_each(|name| mailbox.push(change(name)));
        assert_eq!(told(&mailbox), ["a", "b"]);
        assert_eq!(told(&mailbox), [""; 0]);
    }

    #[test]
    fn who_comes_while_another_tells_leaves_it_to_that_one() {
        let mailbox = ChangeQueue::default();
        mailbox.push(change("a"));
        let mut all = Vec::new();
        mailbox.drain(|told_now| {
            all.push(told_now.url.to_string());
            if all.len() == 1 {
                mailbox.push(change("b"));
                assert_eq!(told(&mailbox), [""; 0]);
            }
            true
        });
        assert_eq!(all, ["a", "b"]);
    }

    #[test]
    fn a_panic_costs_no_other_change() {
        let mailbox = ChangeQueue::default();
        ["a", "b"].iter().for_each(|name| mailbox.push(change(name)));
        let panicked = catch_unwind(AssertUnwindSafe(|| mailbox.drain(|_| panic!("on purpose"))));
        assert!(panicked.is_err());
        assert_eq!(told(&mailbox), ["b"]);
    }
}
