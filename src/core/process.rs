//! What happens to a client in a forked child: every call is refused, and nothing that belongs to
//! the parent is dropped.

use super::Core;
use std::mem;

impl Core {
    /// Is this another process than the one that built the client? Ask before taking any mutex: in
    /// a forked child, the thread that holds it may not exist.
    pub(crate) fn is_forked(&self) -> bool {
        self.owner_process.is_forked()
    }

    /// The result of the last [`is_forked`](Self::is_forked), for code that is reached only after
    /// it was called.
    pub(crate) fn is_known_forked(&self) -> bool {
        self.owner_process.is_known_forked()
    }
}

impl Drop for Core {
    fn drop(&mut self) {
        if self.owner_process.is_forked() {
            // References that are leaked, so that none of this is dropped here. The child
            // shares the poll with its parent: removing a socket here removes it there. And a
            // thread of the parent may have been half way through a change.
            let queues = (self.wait_queues.clone(), self.set_wait_queues.clone());
            let queues = (queues, self.joint_shares.clone());
            mem::forget(queues);
            self.backend.leak();
        }
    }
}
