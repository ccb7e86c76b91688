//! The place at the head of a line, for one who only has something to say about it.

use super::WaitQueues;
use crate::clock::{self, Time};
use std::fmt;
use std::sync::Arc;
use std::thread;

/// The place at the head of a line, without the right to it.
#[derive(Clone)]
pub(crate) struct HeadHandle {
    pub(super) lines: Arc<WaitQueues>,
    pub(super) key: Arc<[u8]>,
    pub(super) number: u64,
}

impl HeadHandle {
    /// The lock is held; `until` is when its key will have expired.
    pub(crate) fn set_key_expiry(&self, until: Time) {
        if let Some(line) = self.lines.lock().get_mut(&self.key) {
            let number = self.number;
            if let Some(head) = line.head.as_mut().filter(|head| head.number == number) {
                if head.until.replace(until).is_none() && line.handed_off == 0 {
                    line.taken_at = clock::now();
                }
                line.alert();
            }
        }
    }

    /// The lock is given up by this thread and by no other, and not before what it is about to do
    /// has ended: if that waits for the lock, it waits for itself.
    pub(crate) fn bind_to_this_thread(&self) {
        if let Some(line) = self.lines.lock().get_mut(&self.key) {
            let number = self.number;
            if let Some(head) = line.head.as_mut().filter(|head| head.number == number) {
                head.bound_to = Some(thread::current().id());
            }
        }
    }
}

impl fmt::Debug for HeadHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HeadHandle").field("number", &self.number).finish_non_exhaustive()
    }
}
