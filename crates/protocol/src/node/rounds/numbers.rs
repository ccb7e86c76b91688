//! Tells the number of a waiter to the nodes that gave it another one.
//!
//! The round in which a waiter joins the queue ends with a majority that agrees on its number. On a
//! node that gave another, which may answer later, the waiter would stand at another place until it
//! renews its entry, and the node would call waiters in another order than the majority does.

use super::Rounds;
use crate::engine::{Command, Node, quorum};
use crate::time::Time;

impl<W> Rounds<W> {
    /// The round in this entry is over. If a waiter has joined in it, the nodes that have answered
    /// with another number are told. Returns whether others have yet to answer.
    pub(super) fn note_joined(&mut self, now: Time, round: usize) -> bool {
        let quorum = quorum(self.sessions.len());
        let entry = &mut self.entries[round];
        let agreed = entry.counters.nodes;
        let number = entry.counters.largest;
        let Some(request) = entry.request.as_mut().filter(|_| agreed.len() >= quorum) else {
            return false;
        };
        if request.queue_entry().is_none_or(|place| place.number != 0) {
            return false;
        }
        request.change(|request| {
            if let Command::Queue(place) = &mut request.command {
                place.number = number;
            }
        });
        let others = entry.tally.granted.without(agreed);
        others
            .iter()
            .for_each(|node| self.tell_number(now, round, node));
        !self.entries[round].tally.is_complete()
    }

    /// A node has answered after the round in which a waiter has joined.
    pub(super) fn note_late_number(&mut self, now: Time, round: usize, node: Node) {
        let entry = &self.entries[round];
        let Some(place) = entry.queue_entry() else {
            return;
        };
        let counters = &entry.counters;
        let is_agreed = counters.largest == place.number && counters.nodes.contains(node);
        if entry.tally.granted.contains(node) && !is_agreed {
            self.tell_number(now, round, node);
        }
    }

    /// Renews the waiter's entry on a node with the number that a majority has agreed on, unless
    /// its turn has begun or it has left.
    fn tell_number(&mut self, now: Time, round: usize, node: Node) {
        let entry = &self.entries[round];
        let Some(request) = entry.request.clone() else {
            return;
        };
        if entry
            .queue_entry()
            .is_some_and(|place| self.waits.is_queued(&place.waiter))
        {
            self.sessions[node.index()].send(now, None, request);
        }
    }
}
