//! Replaces `net/inbox.rs` by a queue that loom can see into.

use loom::sync::Mutex;
use std::collections::VecDeque;

pub(crate) struct Inbox<T>(Mutex<VecDeque<T>>);

impl<T> Inbox<T> {
    pub(crate) fn new() -> Self {
        Self(Mutex::new(VecDeque::new()))
    }

    pub(crate) fn push(&self, item: T) {
        self.0.lock().unwrap().push_back(item);
    }

    pub(crate) fn pop(&self) -> Option<T> {
        self.0.lock().unwrap().pop_front()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.lock().unwrap().is_empty()
    }
}
