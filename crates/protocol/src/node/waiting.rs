//! Requests that cannot be written yet, in order of arrival.

use super::Ticket;
use super::flight::{IN_FLIGHT_BYTES_MAX, IN_FLIGHT_MAX};
use crate::engine::Request;
use std::collections::BTreeMap;

/// A queue whose items are found by ticket, in logarithmic time.
#[derive(Debug)]
pub(super) struct TicketQueue<T> {
    /// The items by position, in order of arrival.
    items: BTreeMap<u64, (Option<Ticket>, T)>,
    /// The positions of the items that a caller waits for.
    places: BTreeMap<Ticket, u64>,
    next_place: u64,
}

impl<T> Default for TicketQueue<T> {
    fn default() -> Self {
        Self { items: BTreeMap::new(), places: BTreeMap::new(), next_place: 0 }
    }
}

impl<T> TicketQueue<T> {
    pub(super) fn push(&mut self, ticket: Option<Ticket>, item: T) {
        let place = self.next_place;
        self.next_place += 1;
        self.items.insert(place, (ticket, item));
        self.places.extend(ticket.map(|ticket| (ticket, place)));
    }

    pub(super) fn first(&self) -> Option<&T> {
        self.items.first_key_value().map(|(_, (_, item))| item)
    }

    /// Removes and returns the first item.
    pub(super) fn pop(&mut self) -> Option<(Option<Ticket>, T)> {
        let (_, (ticket, item)) = self.items.pop_first()?;
        ticket.map(|ticket| self.places.remove(&ticket));
        Some((ticket, item))
    }

    /// Removes and returns the item of `ticket`.
    pub(super) fn remove(&mut self, ticket: Ticket) -> Option<T> {
        let place = self.places.remove(&ticket)?;
        self.items.remove(&place).map(|(_, item)| item)
    }

    /// Marks the item of `ticket` as not waited for. Returns whether the queue has such an item.
    pub(super) fn unwait(&mut self, ticket: Ticket) -> bool {
        let place = self.places.remove(&ticket);
        let item = place.and_then(|place| self.items.get_mut(&place));
        item.map(|(ticket, _)| *ticket = None).is_some()
    }

    /// Marks all items as not waited for. Returns the tickets that waited.
    pub(super) fn unwait_all(&mut self) -> Vec<Ticket> {
        self.places.clear();
        self.items.values_mut().filter_map(|(ticket, _)| ticket.take()).collect()
    }

    /// Drops the items for which `is_kept` is false. Returns the tickets that waited for them.
    pub(super) fn retain(&mut self, is_kept: impl Fn(&T) -> bool) -> Vec<Ticket> {
        let mut dropped = Vec::new();
        self.items.retain(|_, (ticket, item)| {
            let is_kept = is_kept(item);
            if !is_kept {
                dropped.extend(*ticket);
            }
            is_kept
        });
        for ticket in &dropped {
            self.places.remove(ticket);
        }
        dropped
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        self.items.values().map(|(_, item)| item)
    }

    pub(super) fn len(&self) -> usize {
        self.items.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.items.is_empty()
    }
}

/// Requests that wait until the greeting is answered, or until there is room on the connection.
/// A caller waits for each of them, so there are no more requests than callers.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    requests: TicketQueue<Request>,
    bytes: usize,
}

impl Waiting {
    /// Are there so few that one more may wait for a node that has been silent for long? Most
    /// requests to such a node fail.
    pub(super) fn are_few(&self) -> bool {
        self.requests.len() < IN_FLIGHT_MAX / 2 && self.bytes < IN_FLIGHT_BYTES_MAX / 2
    }

    pub(super) fn push(&mut self, ticket: Ticket, request: Request) {
        self.bytes += request.key_bytes();
        self.requests.push(Some(ticket), request);
    }

    pub(super) fn first(&self) -> Option<&Request> {
        self.requests.first()
    }

    /// Removes and returns the first request.
    pub(super) fn pop(&mut self) -> Option<(Ticket, Request)> {
        let (ticket, request) = self.requests.pop()?;
        self.bytes -= request.key_bytes();
        Some((ticket?, request))
    }

    /// Removes and returns the request of `ticket`.
    pub(super) fn cancel(&mut self, ticket: Ticket) -> Option<Request> {
        let request = self.requests.remove(ticket)?;
        self.bytes -= request.key_bytes();
        Some(request)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::fixture::ticket;

    /// `a` and `c`, with tickets, and `b` between them, without one.
    fn three() -> TicketQueue<char> {
        let mut queue = TicketQueue::default();
        queue.push(Some(ticket(1)), 'a');
        queue.push(None, 'b');
        queue.push(Some(ticket(3)), 'c');
        queue
    }

    fn all(queue: &mut TicketQueue<char>) -> Vec<(Option<Ticket>, char)> {
        let all = std::iter::from_fn(|| queue.pop()).collect();
        assert!(queue.is_empty() && queue.places.is_empty());
        all
    }

    #[test]
    fn items_stay_in_order_of_arrival_when_others_are_removed() {
        let (a, b, c) = ((Some(ticket(1)), 'a'), (None, 'b'), (Some(ticket(3)), 'c'));
        assert_eq!(all(&mut three()), [a, b, c]);
        let mut queue = three();
        assert_eq!((queue.remove(ticket(1)), queue.remove(ticket(1))), (Some('a'), None));
        queue.push(a.0, a.1);
        assert_eq!(all(&mut queue), [b, c, a]);
    }

    #[test]
    fn removing_a_ticket_does_not_change_the_other_items() {
        let mut queue = three();
        assert!(queue.unwait(ticket(3)) && !queue.unwait(ticket(3)) && !queue.unwait(ticket(2)));
        assert_eq!(queue.unwait_all(), [ticket(1)]);
        assert_eq!(all(&mut queue), [(None, 'a'), (None, 'b'), (None, 'c')]);
        let mut queue = three();
        assert_eq!(queue.retain(|item| *item == 'c'), [ticket(1)]);
        assert_eq!((queue.first(), queue.len()), (Some(&'c'), 1));
        assert_eq!(all(&mut queue), [(Some(ticket(3)), 'c')]);
    }
}
