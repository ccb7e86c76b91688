//! Who may still use a client: its clones, and the calls that were started and not dropped.
//!
//! A call that is dropped ends later, and keeps the client until then. A program that drops all of
//! this and returns from `main` would end in the middle of such calls, with what they have left on
//! the nodes. So the last handle waits for them.

use super::Core;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// How many times the time that a round takes the last handle waits at most.
const ROUNDS_MAX: u32 = 10;

pub(crate) struct Handle {
    core: Arc<Core>,
}

impl Handle {
    pub(crate) fn new(core: &Arc<Core>) -> Self {
        core.handles.fetch_add(1, Ordering::Relaxed);
        Self {
            core: Arc::clone(core),
        }
    }
}

impl Clone for Handle {
    fn clone(&self) -> Self {
        Self::new(&self.core)
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        let is_last = self.core.handles.fetch_sub(1, Ordering::AcqRel) == 1;
        if is_last && !self.core.is_forked() {
            let longest = self.core.rules.node_timeout * ROUNDS_MAX;
            self.core.backend.driver().await_dropped(longest);
        }
    }
}
