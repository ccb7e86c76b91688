//! The state of a lock, as a majority of the nodes reports it.

use super::{Holder, NotALock};
use crate::engine::Share;

/// Whether a lock is free or held, as a majority of the nodes reports it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LockState {
    /// A majority has no key for it: an attempt would have been granted, but for a
    /// [quarantine](super::Inspection::quarantine).
    Free,
    /// A majority holds the same value.
    Held(Holder),
    /// A majority has it shared, by [readers](crate::LockRequest::shared) or
    /// [permits](crate::LockRequest::one_of): those that a majority has, readers first and then
    /// permits by their slots. Each node reports a hundred holders at most, those that end first.
    ///
    /// ```no_run
    /// # use redlatch::{LockClient, LockState};
    /// # fn example(client: &LockClient) -> Result<(), redlatch::Error> {
    /// if let LockState::Shared(holders) = client.inspect("licences")?.state {
    ///     for holder in holders {
    ///         eprintln!("{:?} has slot {:?}", holder.owner(), holder.slot);
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    Shared(Vec<Holder>),
    /// No client holds it, and nodes reserve it for a waiter in their queue: a majority has a
    /// reservation or no key, and no majority is without a key. As long as the first waiter is
    /// alive, it acquires the lock within about a round, or after a
    /// [quarantine](super::Inspection::quarantine); other attempts are refused.
    Reserved,
    /// So many nodes have data under the lock's key that is no lock that no majority can grant it.
    /// It is other data of this name, and a [key prefix](crate::Builder::key_prefix) keeps the two
    /// apart. [`NodeView::not_a_lock`](super::NodeView::not_a_lock) tells which nodes have it.
    NotALock(NotALock),
    /// Neither: it is just being acquired or released, or keys of a failed attempt have yet to be
    /// removed or to expire. In a [quarantine](super::Inspection::quarantine), also if only a
    /// minority has a lock: the others may have forgotten it.
    Undecided,
}

impl LockState {
    /// Is the lock held so that nobody else can have it, or such a share of it, at the same time?
    pub(crate) fn keeps_out(&self, share: Option<Share>) -> bool {
        let Self::Shared(holders) = self else { return matches!(self, Self::Held(_)) };
        let are_readers = holders.iter().any(|holder| holder.slot.is_none());
        match share.map(Share::permits) {
            None => true,
            Some(0) => !are_readers,
            Some(permits) => are_readers || holders.len() >= permits as usize,
        }
    }
}
