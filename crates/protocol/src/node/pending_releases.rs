//! Removals that are pending for one node, because there was no connection to write them to, or no
//! room on it.

use super::flight::{Flight, IN_FLIGHT_BYTES_MAX, IN_FLIGHT_MAX, Queued, RequestQueue};
use super::{SharedRequest, Ticket};
use crate::engine::{
    Before, Claim, Command, LockId, Predecessor, QueueEntry, Removal, Request, Ttl,
};
use crate::time::Time;
use std::sync::Arc;
use std::time::Duration;

/// The most removals that are kept for a node that does not answer. Beyond that the oldest is
/// dropped, and its key stays until its ttl has passed. For a node that answers there may be more,
/// one for each lock that was released, and those are kept if the node stops answering.
pub const PENDING_MAX: usize = 4096;

/// The most bytes of keys of such removals.
const PENDING_BYTES_MAX: usize = IN_FLIGHT_BYTES_MAX;

/// The removal that a node must get if it has not, or may not have, carried out this request. For a
/// handoff this is the predecessor's removal, because no other request removes its key.
pub(super) fn removal_if_unanswered(request: SharedRequest) -> Option<SharedRequest> {
    let undo = |lock, ttl, waiter| Removal {
        lock,
        ttl,
        keep_for: None,
        waiter,
        is_awaited: false,
    };
    let removal = match &request.command {
        Command::Remove(_) => return Some(request),
        Command::Claim(Claim {
            lock,
            before: Before::Predecessor(before),
            ..
        }) => {
            let Predecessor {
                token,
                attributes,
                waiter,
                ttl_longest,
            } = before.clone();
            undo(
                LockId {
                    key: Arc::clone(&lock.key),
                    token,
                    attributes,
                },
                ttl_longest,
                waiter,
            )
        }
        // It would have withdrawn the failed attempt. The waiter stays in the queue.
        Command::Queue(QueueEntry { lock, ttl, .. }) => undo(lock.clone(), *ttl, None),
        _ => return None,
    };
    Some(Request::into(Request {
        command: Command::Remove(removal),
        ..*request
    }))
}

/// The pending removals of one node, each with the time when its key will have expired by itself.
#[derive(Debug, Default)]
pub(super) struct PendingReleases {
    pub(super) queue: RequestQueue<Time>,
    /// The most, in number and bytes, that is kept beyond the limits if the node does not answer.
    peak: (usize, usize),
    /// No key expires by itself before this time.
    expires_at: Time,
    /// How much longer than its ttl a key lives on the node.
    skew: Duration,
}

impl PendingReleases {
    pub(super) fn new(skew: Duration) -> Self {
        Self {
            skew,
            ..Self::default()
        }
    }

    /// Keeps a removal until the key's ttl has passed. Returns the tickets of removals that were
    /// dropped for it and will not get an answer. As long as the node `is_well` none is dropped:
    /// there is at most one for each lock that its callers held.
    pub(super) fn add(
        &mut self,
        now: Time,
        ticket: Option<Ticket>,
        request: SharedRequest,
        is_well: bool,
    ) -> Vec<Ticket> {
        let lifetime = request.ttl().map_or(Duration::ZERO, Ttl::as_duration);
        let until = now.after(lifetime).after(self.skew);
        self.expires_at = if self.queue.is_empty() {
            until
        } else {
            self.expires_at.min(until)
        };
        self.queue.push(ticket, request, until);
        if is_well {
            // If the node stops answering, the removals in flight become pending too.
            let number = self.queue.len() + IN_FLIGHT_MAX;
            let bytes = self.queue.bytes + 2 * IN_FLIGHT_BYTES_MAX;
            self.peak = (self.peak.0.max(number), self.peak.1.max(bytes));
        }
        let number = self.peak.0.max(PENDING_MAX);
        let bytes = self.peak.1.max(PENDING_BYTES_MAX);
        let mut given_up = Vec::new();
        while self.queue.len() > number || self.queue.bytes > bytes {
            given_up.extend(self.take().and_then(|oldest| oldest.ticket));
        }
        given_up
    }

    pub(super) fn take(&mut self) -> Option<Queued<Time>> {
        let oldest = self.queue.pop()?;
        self.forget_peak();
        Some(oldest)
    }

    /// Has `flight` room for the oldest removal?
    pub(super) fn has_room_for_next(&self, flight: &Flight) -> bool {
        self.queue
            .first()
            .is_some_and(|oldest| flight.has_room(oldest))
    }

    /// Drops the removals whose keys have expired. Returns the tickets that still waited for them.
    pub(super) fn expire(&mut self, now: Time) -> Vec<Ticket> {
        if now < self.expires_at {
            return Vec::new();
        }
        let given_up = self.queue.retain(|pending| pending.item > now);
        let next = self.queue.iter().map(|pending| pending.item).min();
        self.expires_at = next.unwrap_or(self.expires_at);
        self.forget_peak();
        given_up
    }

    /// Resets the limits when no removal is pending.
    fn forget_peak(&mut self) {
        if self.queue.is_empty() {
            self.peak = (0, 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::fixture::{at, removal, ttl};

    #[test]
    fn pending_releases_are_bounded_in_bytes_whatever_their_sizes() {
        let mut pending_releases = PendingReleases::default();
        for length in [1, 64 * 1024, 7] {
            for _ in 0..2 * PENDING_MAX {
                pending_releases.add(at(0), None, removal(length).into(), false);
                let bytes: usize = pending_releases
                    .queue
                    .iter()
                    .map(|pending| pending.request.key().len())
                    .sum();
                assert_eq!(bytes, pending_releases.queue.bytes);
                assert!(bytes <= PENDING_BYTES_MAX && pending_releases.queue.len() <= PENDING_MAX);
                assert!(!pending_releases.queue.is_empty(), "the latest is kept");
            }
        }
    }

    #[test]
    fn pending_releases_of_an_answering_node_are_kept_when_it_stops_answering() {
        let mut pending_releases = PendingReleases::default();
        let many = 3 * PENDING_MAX;
        let more = 2 * PENDING_MAX;
        let add = |pending_releases: &mut PendingReleases, count, is_well| {
            (0..count).for_each(|_| {
                drop(pending_releases.add(at(0), None, removal(1_000).into(), is_well));
            });
        };
        add(&mut pending_releases, many, true);
        assert_eq!(pending_releases.queue.len(), many);
        // The removals in flight become pending. Beyond that the number does not grow.
        add(&mut pending_releases, IN_FLIGHT_MAX, false);
        assert_eq!(pending_releases.queue.len(), many + IN_FLIGHT_MAX);
        add(&mut pending_releases, more, false);
        assert_eq!(pending_releases.queue.len(), many + IN_FLIGHT_MAX);
        while pending_releases.take().is_some() {}
        add(&mut pending_releases, more, false);
        assert_eq!(pending_releases.queue.len(), PENDING_BYTES_MAX / 1_000);
    }

    #[test]
    fn a_release_is_pending_for_as_long_as_the_key_may_live() {
        let mut pending_releases = PendingReleases::new(Duration::from_millis(500));
        let mut removal = removal(1);
        removal.removal_mut().ttl = ttl(1_000);
        pending_releases.add(at(0), None, removal.into(), true);
        pending_releases.expire(at(1_499));
        assert_eq!(pending_releases.queue.len(), 1);
        pending_releases.expire(at(1_500));
        assert_eq!(pending_releases.queue.len(), 0);
    }

    #[test]
    fn each_pending_release_expires_with_its_own_ttl_in_any_order() {
        let mut pending_releases = PendingReleases::default();
        for millis in [30, 10, 20] {
            let mut removal = removal(1);
            removal.removal_mut().ttl = ttl(millis);
            pending_releases.add(at(0), None, removal.into(), false);
        }
        for (millis, left) in [(9, 3), (10, 2), (19, 2), (20, 1), (29, 1), (30, 0)] {
            pending_releases.expire(at(millis));
            assert_eq!(
                (pending_releases.queue.len(), pending_releases.queue.bytes),
                (left, left),
                "after {millis} ms"
            );
        }
    }
}
