//! The place of a call in the wait queue of this process.

use super::LockClient;
use super::acquire::Terms;
use crate::clock::{self, Time};
use crate::core::draw;
use crate::engine::{HeldLock, Jitter};
use crate::error::Error;
use crate::event::Listener;
use crate::wait_queue::{Joined, QueueHead, WaitQueues};
use std::sync::Arc;
use std::time::Duration;

/// The longest pause of the head of a wait queue before it asks the nodes, when the handoff limit
/// is reached: other processes ask now and then, and should find the lock free once.
const PAUSE_AFTER_LIMIT: Duration = Duration::from_millis(20);

/// The place of a call in the wait queue of this process, if it has one.
#[derive(Default)]
pub(super) struct Place {
    pub(super) head: Option<QueueHead>,
    /// The lock, if another thread has handed it over.
    pub(super) held: Option<HeldLock>,
    /// Other processes may have it first.
    pub(super) not_before: Option<Time>,
}

impl LockClient {
    /// Waits in the queue of this process until this thread is its head. `None` if the deadline
    /// passes first and another thread holds the lock; an error if that thread is this one.
    pub(super) fn enqueue(
        &self,
        wait_queues: &Arc<WaitQueues>,
        key: &Arc<[u8]>,
        &Terms { wait, call, .. }: &Terms<'_>,
        is_shared: bool,
    ) -> Result<Option<Place>, Error> {
        if self.is_in_callback() {
            // The call that this callback belongs to may be ahead of this one in the queue.
            return Ok(Some(Place::default()));
        }
        let node_timeout = self.core.rules.node_timeout;
        if is_shared {
            if wait_queues.waits_for_itself(key, wait) {
                return Err(Error::HeldByThisThread);
            }
            // Threads of this client can have the lock at the same time.
            return Ok(Some(Place::default()));
        }
        let (head, held) = match wait_queues.join(key, wait, node_timeout, call.own()) {
            Joined::Head(head, held) => (head, held),
            Joined::NotQueued => return Ok(Some(Place::default())),
            Joined::TimedOut => return Ok(None),
            Joined::HeldByThisThread => return Err(Error::HeldByThisThread),
            Joined::Cancelled => return Err(Error::Cancelled),
        };
        let deadline = wait.deadline();
        let mut not_before = None;
        if let Some(held) = &held {
            if call.is_cancelled() {
                self.give_back(held.clone(), Some(&head));
                return Err(Error::Cancelled);
            }
            if deadline.is_some_and(|deadline| clock::now() >= deadline) {
                self.give_back(held.clone(), Some(&head));
                return Ok(None);
            }
        } else if head.is_after_limit() {
            let now = clock::now();
            let seed = draw().map_or(0, |draw| draw.seed);
            let pause = Jitter::from_seed(seed).below(PAUSE_AFTER_LIMIT);
            // An attempt must fit in before the caller's deadline.
            let left = deadline.map_or(Duration::MAX, |deadline| deadline.since(now));
            not_before = Some(now.after(pause.min(left / 2)));
        }
        Ok(Some(Place { head: Some(head), held, not_before }))
    }

    /// Is this called by a callback of this client's listener?
    pub(super) fn is_in_callback(&self) -> bool {
        self.core.listener.is_some() && Listener::is_in_callback()
    }
}

/// The name of a set of keys in the wait queues: no two sets have the same name.
pub(super) fn name_of_set(first: &Arc<[u8]>, more: &[Arc<[u8]>]) -> Arc<[u8]> {
    let keys = std::iter::once(first).chain(more);
    keys.flat_map(|key| key.len().to_le_bytes().into_iter().chain(key.iter().copied())).collect()
}
