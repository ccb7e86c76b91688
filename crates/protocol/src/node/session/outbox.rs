//! What is written when: requests, and pending releases before them.
//!
//! Requests for which the connection has no room wait until earlier commands are answered, as long
//! as the node answers at all. Removals are written first, and half of the room is reserved for
//! them: every key that was set can be removed, which makes room. All other requests are written in
//! order of arrival. A removal that the node has not confirmed is a pending release: it is sent
//! again when that is possible.

use super::{Answer, Session};
#[cfg(feature = "diagnostics")]
use crate::engine::Ping;
use crate::engine::{Command, Request};
use crate::node::command::{Form, NodeReply};
use crate::node::flight::{InFlight, Queued};
use crate::node::pending_releases::removal_if_unanswered;
use crate::node::{NodeError, SharedRequest, Ticket};
use crate::time::Time;
use std::time::Duration;

impl Session {
    /// Writes waiting requests while there is room. It is called whenever there may be room: so no
    /// request waits while there is room, and a later request cannot overtake one that waits. All
    /// bytes that have arrived must be processed first: none of them answers a command written
    /// here.
    pub(super) fn fill(&mut self, now: Time) {
        if !self.is_ready() || !self.has_unwritten() {
            return;
        }
        self.write_pending_releases(now);
        while self
            .waiting
            .first()
            .is_some_and(|request| self.flight.has_room(request))
        {
            let Some(mut next) = self.waiting.pop() else {
                return;
            };
            if next.request.waiter().is_some() {
                self.adapt(now, &mut next.ticket, &mut next.request);
            }
            self.write(now, next.ticket, next.request);
        }
    }

    pub(super) fn write(&mut self, now: Time, ticket: Option<Ticket>, mut request: SharedRequest) {
        if request.custom().is_some() {
            if let Err(problem) = self.adapt_custom(now, &mut request) {
                return self.fail(ticket, &problem, false);
            }
        }
        if let Some(group) = self.options.group.clone() {
            self.note_vote(now, &mut request, ticket.is_some(), &group);
        }
        self.prove(now, &request);
        let mut is_tracked = false;
        match &request.command {
            Command::Queue(entry) => self.listen(now, entry, request.counts_in_quarantine()),
            #[cfg(feature = "diagnostics")]
            Command::Ping(Ping { asks: true }) => self.examine(now, &request),
            Command::Custom(command) => is_tracked = self.track(now, command),
            _ => {}
        }
        let scripts = &mut self.connection.scripts;
        let form = scripts.form(now, &request, is_tracked);
        let (form, is_trial) = scripts.cautious_form(request.is_removal(), form);
        let trial = is_trial.then(|| request.clone());
        self.flight.push(now, ticket, request, form);
        if let Some(trial) = trial {
            self.flight.push(now, None, trial, Form::Digest);
        }
    }

    /// Ends the wait for this answer. Returns whether the request is unsent: then it is sent only
    /// if it is a removal, or would have withdrawn an attempt.
    pub fn cancel(&mut self, ticket: Ticket) -> bool {
        if let Some(request) = self.waiting.remove(ticket) {
            if request.queue_entry().is_some() {
                self.undo_later(request.started, request);
            }
            return true;
        }
        self.pending_releases.queue.unwait(ticket)
    }

    /// Would this request be written at once?
    pub(in crate::node) fn has_room(&self, request: &Request) -> bool {
        self.is_ready() && self.waiting.is_empty() && self.flight.has_room(request)
    }

    pub(in crate::node) fn round(&self) -> Duration {
        self.options.node_timeout
    }

    /// May one more request wait? A node that left commands unanswered for as long as a round lasts
    /// is not likely to make room. While the connection is being made, a few requests may wait
    /// even so.
    pub(super) fn may_wait(&self) -> bool {
        !self.is_silent || !self.is_ready() && self.waiting.are_few()
    }

    /// Fails the requests that wait for room if the node is silent.
    pub(super) fn fail_waiting(&mut self, now: Time) {
        while self.is_silent && self.is_ready() {
            let Some(Queued {
                ticket, request, ..
            }) = self.waiting.pop()
            else {
                return;
            };
            self.lose(now, ticket, request, &NodeError::Overloaded, false);
        }
    }

    /// Is the node likely to accept removals?
    pub(super) fn is_well(&self, now: Time) -> bool {
        !self.is_down() && !self.is_silent && now >= self.pending_at
    }

    /// Writes pending releases while there is room, unless the node has just refused one.
    pub(super) fn write_pending_releases(&mut self, now: Time) {
        if !self.is_ready() || now < self.pending_at {
            return;
        }
        while self.pending_releases.has_room_for_next(&self.flight) {
            let Some(mut next) = self.pending_releases.take() else {
                return;
            };
            // If the node refuses it, it stays pending for the rest of that time, and no longer.
            next.request.change(|request| {
                let Command::Remove(removal) = &mut request.command else {
                    return;
                };
                removal.ttl = removal.ttl.at_most(next.item.since(now));
                // The time for which the lock stays taken has been running since the release.
                let kept = removal.keep_for;
                removal.keep_for = kept.and_then(|time| time.left(request.started, now));
                request.started = now;
            });
            self.write(now, next.ticket, next.request);
        }
    }

    /// Fails a request that will get no answer. The removal of the keys that it may leave on the
    /// node becomes a pending release.
    pub(super) fn lose(
        &mut self,
        now: Time,
        ticket: Option<Ticket>,
        request: SharedRequest,
        problem: &NodeError,
        was_sent: bool,
    ) {
        self.fail(ticket, problem, was_sent);
        // A request that was never written leaves no key. A removal stays pending in any case.
        // A request about the queue would have withdrawn an attempt, which may have been written.
        let may_leave = was_sent || request.is_removal() || request.queue_entry().is_some();
        if may_leave {
            self.undo_later(now, request);
        }
    }

    /// The removal of what this request may have left on the node becomes a pending release.
    pub(super) fn undo_later(&mut self, now: Time, request: SharedRequest) {
        if let Some(removal) = removal_if_unanswered(request) {
            self.remove_later(now, None, removal);
        }
    }

    pub(super) fn remove_later(
        &mut self,
        now: Time,
        ticket: Option<Ticket>,
        request: SharedRequest,
    ) {
        let is_well = self.is_well(now);
        for ticket in self.pending_releases.add(now, ticket, request, is_well) {
            self.fail(ticket, &NodeError::Overloaded, false);
        }
    }

    pub(super) fn fail(
        &mut self,
        ticket: impl Into<Option<Ticket>>,
        problem: &NodeError,
        was_sent: bool,
    ) {
        self.answers.extend(ticket.into().map(|ticket| {
            let reply = NodeReply::failed(problem.clone());
            Answer {
                ticket,
                reply,
                was_sent,
                took: None,
            }
        }));
    }

    /// The node did not confirm a removal. It is sent again, but not immediately.
    pub(super) fn remove_again_later(&mut self, now: Time, command: InFlight) {
        // The pause counts from the time it was sent: its reply may have been unread for long.
        self.pending_at = self
            .pending_at
            .max(command.sent_at.after(self.options.reconnect.1));
        self.undo_later(now, command.request);
    }

    /// The handoff failed on this node: the key of the predecessor must be removed.
    pub(super) fn remove_predecessor_later(&mut self, now: Time, request: SharedRequest) {
        if request.predecessor().is_some() {
            self.undo_later(now, request);
        }
    }
}
