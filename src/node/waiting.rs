//! Requests that were made before there was a connection to write them to.

use super::Ticket;
use super::flight::{IN_FLIGHT_BYTES_MAX, IN_FLIGHT_MAX};
use crate::engine::Request;
use std::collections::VecDeque;

/// Requests that wait until the greeting is answered, in their order. No more of them, in number
/// and in the bytes of their keys, than there would be room for then.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    requests: VecDeque<(Ticket, Request)>,
    bytes: usize,
}

impl Waiting {
    /// Is there room for one more?
    pub(super) fn has_room(&self) -> bool {
        self.requests.len() < IN_FLIGHT_MAX / 2 && self.bytes < IN_FLIGHT_BYTES_MAX / 2
    }

    pub(super) fn push(&mut self, ticket: Ticket, request: Request) {
        self.bytes += request.key_bytes();
        self.requests.push_back((ticket, request));
    }

    /// Takes out the request that `ticket` stands for, and says whether it was there.
    pub(super) fn cancel(&mut self, ticket: Ticket) -> bool {
        let place = self.requests.iter().position(|(other, _)| *other == ticket);
        let request = place.and_then(|place| self.requests.remove(place));
        request.map(|(_, request)| self.bytes -= request.key_bytes()).is_some()
    }

    /// Takes out all of them.
    pub(super) fn take(&mut self) -> VecDeque<(Ticket, Request)> {
        self.bytes = 0;
        std::mem::take(&mut self.requests)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }
}
