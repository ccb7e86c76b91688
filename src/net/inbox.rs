//! Where requests are left for the one who drives.

use crossbeam_channel::{Receiver, Sender};

/// A queue that takes from many and is never full: whoever leaves something here waits for it or
/// has just given back a lock, so there is no more in it than there are threads and guards.
#[derive(Debug)]
pub(super) struct Inbox<T> {
    sender: Sender<T>,
    receiver: Receiver<T>,
}

impl<T> Inbox<T> {
    pub(super) fn new() -> Self {
        let (sender, receiver) = crossbeam_channel::unbounded();
        Self { sender, receiver }
    }

    pub(super) fn push(&self, item: T) {
        // It fails only when there is no receiver, and there is one as long as there is a sender.
        let _ = self.sender.send(item);
    }

    pub(super) fn pop(&self) -> Option<T> {
        self.receiver.try_recv().ok()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.receiver.is_empty()
    }
}
