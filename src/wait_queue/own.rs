//! What the queues say of the threads of this client: which of them holds a lock, and since when
//! others wait for it.

use super::queue::WaitQueues;
use super::taker::Taker;
use crate::clock::Time;

impl WaitQueues {
    /// The thread that took the lock, if one of this client holds it.
    pub(crate) fn holder(&self, key: &[u8]) -> Option<Taker> {
        self.lock().by_key.get(key)?.holder()
    }

    /// Since when threads wait in the queues with such names, or ask the nodes as their heads.
    pub(crate) fn waiting_since(&self, is_wanted: impl Fn(&[u8]) -> bool) -> Vec<Time> {
        let queues = self.lock();
        let mut since = Vec::new();
        for (_, queue) in queues.by_key.iter().filter(|(name, _)| is_wanted(name)) {
            let asking = queue.head.iter().filter(|head| head.key_expiry.is_none());
            since.extend(asking.map(|head| head.waited_since.unwrap_or(head.since)));
            since.extend(queue.waiters.values().map(|waiter| waiter.since));
        }
        since
    }
}
