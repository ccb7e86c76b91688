//! The queue between the leader, which notices changes of the nodes' states, and the threads that
//! report them to the listener. A change is reported only by a thread that is not the leader: the
//! listener may use the client, which would otherwise wait for its own thread.

use crate::node::{Changes, NodeChange};
use std::mem;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Changes that are not yet reported, in their order.
#[derive(Debug, Default)]
pub(crate) struct ChangeQueue {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    changes: Changes,
    /// Is a thread reporting a change? Two at a time could report them in the wrong order.
    is_reporting: bool,
}

impl ChangeQueue {
    pub(crate) fn push(&self, change: NodeChange) {
        self.lock().changes.push(change);
    }

    /// Calls `report` for each change in turn, unless another thread is doing so: that thread also
    /// reports the changes that come meanwhile. If `report` panics, the next call reports the rest.
    ///
    /// The caller must hold no lock of the client, because `report` may use it. `report` returns
    /// whether this is still the same process: in a forked child, the mutex may be held by a thread
    /// that does not exist there, so it is not touched again.
    pub(crate) fn drain(&self, mut report: impl FnMut(&NodeChange) -> bool) {
        while let Some(change) = self.begin() {
            let reporting = Reporting(self);
            if !report(&change) {
                mem::forget(reporting);
                return;
            }
        }
    }

    fn begin(&self) -> Option<NodeChange> {
        let mut state = self.lock();
        let change = if state.is_reporting {
            None
        } else {
            state.changes.pop()
        };
        state.is_reporting |= change.is_some();
        change
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Reporting<'a>(&'a ChangeQueue);

impl Drop for Reporting<'_> {
    fn drop(&mut self) {
        self.0.lock().is_reporting = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::NodeState;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    fn node_change(name: &str) -> NodeChange {
        NodeChange {
            url: name.into(),
            state: NodeState::Up,
        }
    }

    fn reported(changes: &ChangeQueue) -> Vec<String> {
        let mut reported = Vec::new();
        changes.drain(|change| {
            reported.push(change.url.to_string());
            true
        });
        reported
    }

    #[test]
    fn each_change_is_reported_once_and_in_order() {
        let changes = ChangeQueue::default();
        ["a", "b"]
            .iter()
            .for_each(|name| changes.push(node_change(name)));
        assert_eq!(reported(&changes), ["a", "b"]);
        assert_eq!(reported(&changes), [""; 0]);
    }

    #[test]
    fn a_change_that_comes_during_a_report_is_reported_by_the_same_call() {
        let changes = ChangeQueue::default();
        changes.push(node_change("a"));
        let mut all = Vec::new();
        changes.drain(|change| {
            all.push(change.url.to_string());
            if all.len() == 1 {
                changes.push(node_change("b"));
                assert_eq!(reported(&changes), [""; 0]);
            }
            true
        });
        assert_eq!(all, ["a", "b"]);
    }

    #[test]
    fn a_panic_of_the_callback_loses_no_other_change() {
        let changes = ChangeQueue::default();
        ["a", "b"]
            .iter()
            .for_each(|name| changes.push(node_change(name)));
        let panicked = catch_unwind(AssertUnwindSafe(|| changes.drain(|_| panic!("on purpose"))));
        assert!(panicked.is_err());
        assert_eq!(reported(&changes), ["b"]);
    }
}
