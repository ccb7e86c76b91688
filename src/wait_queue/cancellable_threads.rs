//! The threads in the wait queues whose call has a token of its own, by that: where thousands wait,
//! cancelling one does not look at the others. The simulator compiles this file too.

use super::waiting_thread::WaitingThread;
use crate::cancel_token::{CancelToken, CancelTokenId};
use std::collections::BTreeMap;
use std::sync::Arc;

/// By token, and by their numbers.
#[derive(Default)]
pub(super) struct CancellableThreads(BTreeMap<(CancelTokenId, usize), Arc<WaitingThread>>);

impl CancellableThreads {
    pub(super) fn insert(&mut self, waiter: &Arc<WaitingThread>) {
        if let Some(own) = &waiter.own {
            self.0.insert((own.id(), waiter.number), Arc::clone(waiter));
        }
    }

    pub(super) fn remove(&mut self, waiter: &WaitingThread) {
        if let Some(own) = &waiter.own {
            self.0.remove(&(own.id(), waiter.number));
        }
    }

    /// Has those that have this token look at it.
    pub(super) fn wake(&self, token: &CancelToken) {
        let of_token = (token.id(), 0)..=(token.id(), usize::MAX);
        for (_, waiter) in self.0.range(of_token) {
            waiter.wake();
        }
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }
}
