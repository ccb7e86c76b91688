//! The queue of jobs for the leader.

use crossbeam_channel::{Receiver, Sender};

/// An unbounded queue with many producers. A producer waits for its request or has just released a
/// lock, so the queue is never longer than the number of threads and lock guards.
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
        // It fails only without a receiver, and the receiver lives as long as this sender.
        let _ = self.sender.send(item);
    }

    pub(super) fn pop(&self) -> Option<T> {
        self.receiver.try_recv().ok()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.receiver.is_empty()
    }
}
