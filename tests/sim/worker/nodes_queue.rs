//! A thread in the nodes' queue: what the checker is told about its place, and how its wait is
//! ended early.

use super::workload::key;
use super::{Running, Worker};
use crate::checker::{Place, name};
use crate::client::Client;
use crate::context::Context;
use crate::entropy;
use crate::node::Ability;
use redlatch_protocol::engine::{Request, Token, Verdict, Votes, quorum};
use redlatch_protocol::node::Ended;
use std::sync::atomic::Ordering;

impl Worker {
    /// A failed attempt's token is withdrawn by the request that enters the queue.
    pub(super) fn note_place(&self, context: &mut Context, request: &Request) {
        if let Some(entry) = request.queue_entry() {
            context.checker.over(name(entry.lock.token.as_bytes()));
        }
    }

    pub(super) fn note_asked(&mut self, context: &mut Context, request: &Request) {
        self.is_queued = false;
        self.is_turn = request.is_turn();
        self.is_entering = None;
        if let Some(entry) = request.queue_entry() {
            let waiter = Some(name(entry.waiter.as_bytes()));
            if self.waiter != waiter {
                // It has given its place up, and joins the queue at its end.
                self.stop_waiting(context);
            }
            self.waiter = waiter;
            self.is_entering = Some(entry.number == 0);
            // A set may wait for one of its resources alone.
            let is_asked = |resource: &u64| entry.lock.keys().any(|it| *it == *key(*resource));
            self.queues = self.wanted.iter().copied().filter(is_asked).collect();
        }
    }

    /// Has a majority of the nodes given the waiter its number?
    pub(super) fn note_answered(&self, context: &mut Context, votes: &Votes) {
        let (Some(is_first), Some(waiter)) = (self.is_entering, self.waiter) else {
            return;
        };
        // A client learns that it may not subscribe after it has entered the queue. A release in
        // between removes it, as one that hears nothing, and it enters once more.
        if is_first
            && context
                .options
                .queueing
                .abilities
                .contains(&Ability::NoChannels)
        {
            return;
        }
        let agree = votes.counters.nodes.len() >= quorum(context.options.nodes);
        if votes.tally.granted_by_majority() == Verdict::Won && (agree || !is_first) {
            let resources = self.queues.clone();
            let since = context.queue.now();
            let share = self.share;
            let called_at = self.called_at;
            context.checker.order.joined(
                waiter,
                Place {
                    resources,
                    share,
                    called_at,
                    since,
                },
            );
        }
    }

    /// Cancels its call. Returns its waiter, whose rounds are to end.
    pub(crate) fn cancel(&mut self) -> Option<Token> {
        self.is_cancelled = true;
        self.token.cancel();
        self.is_dropped.store(true, Ordering::SeqCst);
        self.note_cancelled();
        match &self.operation {
            Some(Running::Acquire(task)) => task.waiter(),
            _ => None,
        }
    }

    /// Its call is cancelled, or all calls of its client are.
    pub(crate) fn note_cancelled(&mut self) {
        if let Some(Running::Acquire(task)) = &mut self.operation {
            task.cancel();
        }
    }

    /// Its wait in the nodes' queue has ended so.
    pub(super) fn answer(&mut self, ended: Ended) {
        if let Some(Running::Acquire(task)) = &mut self.operation {
            task.answer(ended);
        }
    }

    /// Its pause is over, or its call is cancelled.
    pub(super) fn end_pause(&mut self, client: &mut Client, context: &mut Context, is_cut: bool) {
        if !is_cut {
            entropy::put(self.draw(client, context));
        }
        if let Some(Running::Acquire(task)) = &mut self.operation {
            task.end_pause(is_cut);
        }
        self.advance(client, context);
    }
}
