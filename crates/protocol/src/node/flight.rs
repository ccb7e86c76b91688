//! The commands in flight at one node: written and not yet answered.

use super::command::Form;
use super::{GroupOptions, SharedRequest, Ticket};
use crate::engine::Request;
use crate::time::Time;
use crate::write_buffer::WriteBuffer;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// The most commands that may be unanswered at one node. Further requests wait until others have
/// been answered: without a limit, a node that has stopped could use up the client's memory.
pub const IN_FLIGHT_MAX: usize = 1024;

/// The most bytes of commands that may be unanswered at one node, sent or not.
pub const IN_FLIGHT_BYTES_MAX: usize = 1024 * 1024;

/// A command that was written and not yet answered.
#[derive(Debug)]
pub(super) struct InFlight {
    /// The round that waits for the answer, if any.
    pub(super) ticket: Option<Ticket>,
    pub(super) request: SharedRequest,
    pub(super) form: Form,
    /// The number that a script repeats in its answer, as proof that it answers this command.
    pub(super) number: u64,
    pub(super) sent_at: Time,
    size: usize,
}

/// The commands in flight on one connection, in the order of their answers, and their bytes that
/// are not written yet.
#[derive(Debug, Default)]
pub(super) struct Flight {
    commands: VecDeque<InFlight>,
    command_bytes: usize,
    /// The number of the last command. It continues from one connection to the next, so that an
    /// answer proves nothing on another connection.
    number: u64,
    /// Set if the node is a replicated group.
    group: Option<Arc<GroupOptions>>,
    output: WriteBuffer,
}

impl Flight {
    /// No commands yet. The first gets the number `number + 1`. `group` is set if the node is one.
    pub(super) fn after(number: u64, group: Option<Arc<GroupOptions>>) -> Self {
        Self {
            number,
            group,
            ..Self::default()
        }
    }

    /// Is there room for one more command? Half of the room is reserved for removals, so that every
    /// key that was set can be removed.
    pub(super) fn has_room(&self, request: &Request) -> bool {
        self.has_room_for(request.is_removal())
    }

    /// The same for a command that is a removal, or is none.
    pub(super) fn has_room_for(&self, is_removal: bool) -> bool {
        let share = if is_removal { 1 } else { 2 };
        self.commands.len() < IN_FLIGHT_MAX / share
            && self.command_bytes < IN_FLIGHT_BYTES_MAX / share
    }

    pub(super) fn push(
        &mut self,
        now: Time,
        ticket: Option<Ticket>,
        request: SharedRequest,
        form: Form,
    ) {
        let output = self.output.end();
        let start = output.len();
        self.number += 1;
        let number = self.number;
        request.encode(form, number, self.group.as_deref(), output);
        let size = output.len() - start;
        self.command_bytes += size;
        self.commands.push_back(InFlight {
            ticket,
            request,
            form,
            number,
            sent_at: now,
            size,
        });
    }

    /// What stands before each key.
    pub(super) fn tag(&self) -> &[u8] {
        self.group.as_ref().map_or(&[], |group| group.tag())
    }

    /// The number of the next command.
    #[cfg(feature = "groups")]
    pub(super) fn next_number(&self) -> u64 {
        self.number + 1
    }

    /// When the last command was written.
    #[cfg(feature = "groups")]
    pub(super) fn latest(&self) -> Option<Time> {
        self.commands.back().map(|command| command.sent_at)
    }

    /// Has the command of the next answer been written completely? A reply that arrives before that
    /// is not an answer to it.
    pub(super) fn is_next_written(&self) -> bool {
        let behind = self
            .commands
            .front()
            .map_or(0, |next| self.command_bytes - next.size);
        self.output().len() <= behind
    }

    /// Removes and returns the command of the next answer.
    pub(super) fn pop(&mut self) -> Option<InFlight> {
        let command = self.commands.pop_front()?;
        self.command_bytes -= command.size;
        Some(command)
    }

    /// The request of the next answer, if its command has been written completely.
    pub(super) fn next(&self) -> Option<&Request> {
        self.commands
            .front()
            .map(|next| &*next.request)
            .filter(|_| self.is_next_written())
    }

    /// Is a command of this kind in flight?
    pub(super) fn has(&self, is_meant: impl Fn(&SharedRequest) -> bool) -> bool {
        self.commands
            .iter()
            .any(|command| is_meant(&command.request))
    }

    /// When the oldest unanswered command was written.
    pub(super) fn oldest(&self) -> Option<Time> {
        self.commands.front().map(|command| command.sent_at)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.commands.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.commands.len()
    }

    pub(super) fn output(&self) -> &[u8] {
        self.output.unwritten()
    }

    /// The buffer for the greeting, before the first lock command.
    pub(super) fn output_mut(&mut self) -> &mut Vec<u8> {
        self.output.end()
    }

    pub(super) fn wrote(&mut self, count: usize) {
        self.output.wrote(count);
    }

    /// Clears everything, and returns the commands that will not be answered.
    pub(super) fn clear(&mut self) -> VecDeque<InFlight> {
        self.output.clear();
        self.command_bytes = 0;
        std::mem::take(&mut self.commands)
    }
}

// Requests that cannot be written yet, in order of arrival.

/// A queue of requests that are found by ticket, in logarithmic time.
#[derive(Debug, Default)]
pub(super) struct RequestQueue<T> {
    /// The requests by position, in order of arrival.
    queued: BTreeMap<u64, Queued<T>>,
    /// The positions of the requests that a caller waits for.
    places: BTreeMap<Ticket, u64>,
    next_place: u64,
    /// The bytes of the requests' keys.
    pub(super) bytes: usize,
}

#[derive(Debug)]
pub(super) struct Queued<T> {
    /// The round that waits for the answer, if any.
    pub(super) ticket: Option<Ticket>,
    pub(super) request: SharedRequest,
    /// What else is known of it.
    pub(super) item: T,
}

impl<T> RequestQueue<T> {
    pub(super) fn push(&mut self, ticket: Option<Ticket>, request: SharedRequest, item: T) {
        let place = self.next_place;
        self.next_place += 1;
        self.bytes += request.key_bytes();
        self.queued.insert(
            place,
            Queued {
                ticket,
                request,
                item,
            },
        );
        self.places.extend(ticket.map(|ticket| (ticket, place)));
    }

    pub(super) fn first(&self) -> Option<&Request> {
        self.queued
            .first_key_value()
            .map(|(_, first)| &*first.request)
    }

    /// Removes and returns the first request.
    pub(super) fn pop(&mut self) -> Option<Queued<T>> {
        let (_, first) = self.queued.pop_first()?;
        first.ticket.map(|ticket| self.places.remove(&ticket));
        self.bytes -= first.request.key_bytes();
        Some(first)
    }

    /// Removes and returns the request of `ticket`.
    pub(super) fn remove(&mut self, ticket: Ticket) -> Option<SharedRequest> {
        let place = self.places.remove(&ticket)?;
        let request = self.queued.remove(&place)?.request;
        self.bytes -= request.key_bytes();
        Some(request)
    }

    /// Marks the request of `ticket` as not waited for. Returns whether the queue has it.
    pub(super) fn unwait(&mut self, ticket: Ticket) -> bool {
        let place = self.places.remove(&ticket);
        let queued = place.and_then(|place| self.queued.get_mut(&place));
        queued.map(|it| it.ticket = None).is_some()
    }

    /// Marks all requests as not waited for. Returns the tickets that waited.
    pub(super) fn unwait_all(&mut self) -> Vec<Ticket> {
        self.places.clear();
        self.queued
            .values_mut()
            .filter_map(|it| it.ticket.take())
            .collect()
    }

    /// Drops the requests for which `is_kept` is false. Returns the tickets that waited for them.
    pub(super) fn retain(&mut self, is_kept: impl Fn(&Queued<T>) -> bool) -> Vec<Ticket> {
        let mut dropped = Vec::new();
        self.queued.retain(|_, it| {
            let is_kept = is_kept(it);
            if !is_kept {
                dropped.extend(it.ticket);
                self.bytes -= it.request.key_bytes();
            }
            is_kept
        });
        for ticket in &dropped {
            self.places.remove(ticket);
        }
        dropped
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Queued<T>> {
        self.queued.values()
    }

    pub(super) fn len(&self) -> usize {
        self.queued.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.queued.is_empty()
    }

    /// Are there so few that one more may wait for a node that has been silent for long? Most
    /// requests to such a node fail.
    pub(super) fn are_few(&self) -> bool {
        self.len() < IN_FLIGHT_MAX / 2 && self.bytes < IN_FLIGHT_BYTES_MAX / 2
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::fixture::{at, removal};

    #[test]
    fn a_peer_that_never_reads_all_does_not_make_the_buffer_grow() {
        let mut flight = Flight::default();
        flight.push(at(0), None, removal(10_000).into(), Form::Digest);
        for _ in 0..10_000 {
            flight.push(at(0), None, removal(10_000).into(), Form::Digest);
            flight.pop();
            let rest = flight.output().len() / 2;
            flight.wrote(rest + 1);
            assert!(
                flight.output.capacity() < 200_000,
                "{}",
                flight.output.capacity()
            );
        }
        assert!(!flight.output().is_empty());
    }

    mod waiting {
        use super::super::*;
        use crate::node::fixture::{removal, ticket};

        /// `a` and `c`, with tickets, and `b` between them, without one.
        fn three() -> RequestQueue<char> {
            let mut queue = RequestQueue::default();
            queue.push(Some(ticket(1)), removal(1).into(), 'a');
            queue.push(None, removal(2).into(), 'b');
            queue.push(Some(ticket(3)), removal(3).into(), 'c');
            queue
        }

        fn all(queue: &mut RequestQueue<char>) -> Vec<(Option<Ticket>, char)> {
            let all = std::iter::from_fn(|| queue.pop())
                .map(|it| (it.ticket, it.item))
                .collect();
            assert!(queue.is_empty() && queue.places.is_empty() && queue.bytes == 0);
            all
        }

        #[test]
        fn items_stay_in_order_of_arrival_when_others_are_removed() {
            let a = (Some(ticket(1)), 'a');
            let b = (None, 'b');
            let c = (Some(ticket(3)), 'c');
            assert_eq!(all(&mut three()), [a, b, c]);
            let mut queue = three();
            let keys = [1; 2].map(|it| queue.remove(ticket(it)).map(|it| it.key_bytes()));
            assert_eq!((keys, queue.bytes), ([Some(1), None], 5));
            queue.push(a.0, removal(1).into(), a.1);
            assert_eq!(all(&mut queue), [b, c, a]);
        }

        #[test]
        fn removing_a_ticket_does_not_change_the_other_items() {
            let mut queue = three();
            assert!(
                queue.unwait(ticket(3)) && !queue.unwait(ticket(3)) && !queue.unwait(ticket(2))
            );
            assert_eq!(queue.unwait_all(), [ticket(1)]);
            assert_eq!(all(&mut queue), [(None, 'a'), (None, 'b'), (None, 'c')]);
            let mut queue = three();
            assert_eq!(queue.retain(|it| it.item == 'c'), [ticket(1)]);
            let first = queue.first().map(Request::key_bytes);
            assert_eq!((first, queue.len(), queue.bytes), (Some(3), 1, 3));
            assert_eq!(all(&mut queue), [(Some(ticket(3)), 'c')]);
        }
    }
}
