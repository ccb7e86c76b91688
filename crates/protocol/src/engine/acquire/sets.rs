//! A set of resources that waits: how long the nodes keep some of them for it while another is
//! missing.
//!
//! ```text
//!   waits for all ── some are kept for it, and its ttl has passed ──▶ waits for one alone
//!        ▲                                                                    │
//!        └───────────── a majority reserves that one for it ──────────────────┘
//! ```
//!
//! A set that waits for one alone stands in that queue only, so others have the rest. It keeps its
//! number: when it returns, it is before all that came later. So a call is kept from a resource by
//! sets that wait for another only until each of the sets that came before it has waited for its
//! ttl, and those wait at the same time. Sets that return and lack another key by then keep the one
//! that they have waited for in turn, each for its ttl.

use super::Acquire;
use super::place::Place;
use crate::engine::{Command, LockId, QueueEntry, QueueState, Request, Votes, quorum};
use crate::time::Time;
use std::sync::Arc;
use std::time::Duration;

impl Place {
    /// The lock whose queue it stands in: all keys of a set, or the one that it waits for alone.
    pub(super) fn awaited(&self) -> LockId {
        let lock = &self.entry.lock;
        self.alone
            .map_or_else(|| lock.clone(), |index| lock.split_at(index).0)
    }

    /// The key for which it waits longest. The nodes are to tell of changes of this one: what they
    /// keep for a set they prolong at each renewal, which is a change too.
    pub(super) fn missing(&self) -> Arc<[u8]> {
        let lock = &self.entry.lock;
        let index = self.alone.or(self.state.lacks).unwrap_or(0);
        let more = lock
            .attributes
            .as_ref()
            .map_or(&[][..], |attributes| &attributes.more_keys);
        Arc::clone(
            index
                .checked_sub(1)
                .and_then(|index| more.get(index))
                .unwrap_or(&lock.key),
        )
    }

    /// The key to wait for alone. A minority that has not freed a key says that the set lacks that
    /// one. If it is free on a majority, the set has it at once and returns. So where nodes say
    /// different things, it waits for another the next time, or others would never have that key.
    fn lacks_next(&self, state: &QueueState) -> Option<usize> {
        let Some(last) = self.alone_last else {
            return state.lacks;
        };
        let later = state.lacking & (u64::MAX << last << 1);
        let next = if later == 0 { state.lacking } else { later };
        (next != 0).then_some(next.trailing_zeros() as usize)
    }

    /// For how long from now nodes may go on to keep a part of a set for this waiter, if they do.
    pub(super) fn part_lasts(&self, now: Time) -> Option<Duration> {
        let is_kept = !self.state.part.is_empty() && now < self.keeps_part_until;
        is_kept.then(|| self.keeps_part_until.since(now))
    }
}

impl Acquire {
    /// Has a set whose part the nodes have kept from others for long enough wait for the key that
    /// it lacks alone. Returns whether it has asked the nodes.
    pub(super) fn let_others_pass(&mut self, now: Time, votes: &Votes) -> bool {
        let quorum = quorum(self.rules.nodes);
        let Some(place) = &mut self.place else {
            return false;
        };
        // In a quarantine nobody else could have it, and with a majority it takes its turn.
        let can_keep = now < place.keeps_part_until || !votes.quarantine.is_zero();
        if can_keep || votes.queue.reserved.len() >= quorum {
            return false;
        }
        let Some(index) = place.lacks_next(&votes.queue) else {
            return false;
        };
        place.alone = Some(index);
        place.alone_last = Some(index);
        let (_, lock) = place.entry.lock.split_at(index);
        let removal = QueueEntry {
            lock,
            ..place.entry.clone()
        }
        .leave();
        self.undo = Some(Request::to_all(&self.rules, now, Command::Remove(removal)));
        self.ask(now);
        true
    }

    /// Enters all queues again: the key that the set has waited for alone is reserved for it.
    pub(super) fn wait_for_all(&mut self, now: Time) {
        let ttl = self.ttl.as_duration();
        if let Some(place) = &mut self.place {
            place.alone = None;
            place.keeps_part_until = now.after(ttl);
            // It was out of the other queues, and has missed nothing.
            place.was_missed = true;
        }
        self.ask(now);
    }
}
