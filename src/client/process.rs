//! What becomes of a client in a forked child: nothing that it asks for is done, and nothing that
//! belongs to its parent is dropped.

use super::{LockClient, Shared};
use std::mem;
use std::sync::Arc;

impl LockClient {
    /// Is this another process than the one that built the client? To be asked before any lock is
    /// taken: in a forked child, a thread that is not there may have it.
    pub(crate) fn is_forked(&self) -> bool {
        self.shared.origin.is_forked()
    }

    /// The same for those who are reached only when that has been asked.
    pub(super) fn is_known_forked(&self) -> bool {
        self.shared.origin.is_known_forked()
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        if self.origin.is_forked() {
            // A share that is never given back, so that none of this is dropped here. The poll is
            // its parent's as well, and a socket that is taken out of it here is out of it there.
            // And a thread of its parent may have been half way through a change.
            mem::forget((Arc::clone(&self.net), self.lines.clone(), self.set_lines.clone()));
        }
    }
}
