//! An order of a call that has no thread: the call is polled when it is woken.

use super::servers::{LockOrder, Servers};
use crate::net::follower::Follower;
use crate::net::leader_followers::{Job, LeaderFollowers};
use crate::net::socket_loop::SocketLoop;
use redlatch_zookeeper::lock_table::Outcome;
use std::sync::Arc;
use std::task::Waker;

type ServersLoop = LeaderFollowers<SocketLoop<Servers>>;

/// An order that the thread which drives the connection fulfils.
pub(crate) struct BegunOrder<'a> {
    shared: &'a ServersLoop,
    /// `None` once the outcome was taken.
    follower: Option<Arc<Follower<Outcome>>>,
}

impl<'a> BegunOrder<'a> {
    /// # Panics
    ///
    /// The event loop panicked.
    pub(super) fn new(shared: &'a ServersLoop, order: LockOrder, waker: Waker) -> Self {
        shared.expect_not_poisoned();
        let follower = shared.lock_followers().join();
        follower.set_waker(Some(waker));
        shared.send_to_leader(Job::Open(order, Arc::clone(&follower)));
        Self {
            shared,
            follower: Some(follower),
        }
    }

    /// The outcome, once it is there.
    ///
    /// # Panics
    ///
    /// The event loop panicked.
    pub(crate) fn take_outcome(&mut self) -> Option<Outcome> {
        let follower = self.follower.take()?;
        let Some(outcome) = follower.take_outcome() else {
            self.follower = Some(follower);
            self.shared.expect_not_poisoned();
            return None;
        };
        follower.set_waker(None);
        self.shared.lock_followers().reuse(follower);
        Some(outcome)
    }
}

impl Drop for BegunOrder<'_> {
    fn drop(&mut self) {
        if let Some(follower) = &self.follower {
            follower.set_waker(None);
            // Its outcome may still be delivered: it is not used again.
            self.shared.lock_followers().remove(follower);
        }
    }
}
