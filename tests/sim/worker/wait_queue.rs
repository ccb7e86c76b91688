//! Threads of one client that want one lock wait in a queue, as in `src/wait_queue.rs`: only the
//! head sends requests to the nodes. When it releases the lock, it hands it off to the next, which
//! replaces the token on the nodes.
//!
//! Simpler than there: a thread whose deadline passes in the queue leaves without a request, and
//! the number of handoffs is random.

use super::lock::ROUNDS_MAX;
use super::{Running, State, Worker};
use crate::checker::name;
use crate::client::Client;
use crate::context::Context;
use crate::queue::Event;
use redlatch::internal::Time;
use redlatch::internal::engine::{Acquire, Lease};

/// A waiting thread.
#[derive(Debug)]
pub(super) struct Waiting {
    acquire: Acquire,
    limit: Option<Time>,
    since: u64,
    /// It is the head now, with the lock of its predecessor or without.
    call: Option<Option<Lease>>,
}

impl Worker {
    /// Requests a lock, or waits in the queue behind another thread of the client.
    pub(super) fn join(
        &mut self,
        client: &mut Client,
        context: &mut Context,
        acquire: Acquire,
        limit: Option<Time>,
        waits: bool,
    ) {
        let is_lined = context.options.is_lined;
        let is_before = |other: &Self| other.has_place && other.wanted == self.wanted;
        let is_taken = client.workers.iter().any(is_before);
        self.has_place = is_lined && !is_taken;
        if !is_lined || !is_taken || !waits {
            self.start(client, context, Running::Acquire(acquire), limit);
            return self.advance(client, context);
        }
        context.trace(|| format!("client {:?}.{} waits in the queue", client.name, self.index));
        let since = context.queue.now();
        self.state = State::InLine(Waiting { acquire, limit, since, call: None });
        if let Some(limit) = limit {
            self.sleep(client, context, client.clock.when(limit));
        }
    }

    /// Checks whether it is the head now, or its deadline has passed.
    pub(super) fn look_up(&mut self, client: &mut Client, context: &mut Context, waiting: Waiting) {
        let is_late = waiting.limit.is_some_and(|limit| client.now(context) >= limit);
        let Waiting { mut acquire, mut limit, call, .. } = waiting;
        match call {
            Some(lease) if is_late => {
                // Called too late. Another waiter may have more time.
                self.pass_on_or_release(client, context, lease);
                self.rest(client, context);
            }
            Some(lease) => {
                self.has_place = true;
                if let Some(lease) = lease {
                    context.tally.handoffs += 1;
                    if self.believes_handoff(client, context, &lease) {
                        return;
                    }
                    acquire = acquire.succeeding(lease);
                } else {
                    // A thread that begins with too little time left still gets one whole attempt.
                    let whole = client.now(context).after(client.rules.node_timeout * ROUNDS_MAX);
                    limit = limit.map(|limit| limit.max(whole));
                }
                self.start(client, context, Running::Acquire(acquire), limit);
                self.advance(client, context);
            }
            None if is_late => self.rest(client, context),
            None => self.state = State::InLine(Waiting { acquire, limit, call, ..waiting }),
        }
    }

    /// Makes the next waiter the head, with the lock if it still has it and the handoff is allowed.
    /// Returns whether the lock was handed off; otherwise the caller must release it.
    pub(super) fn pass_on(
        &mut self,
        client: &mut Client,
        context: &mut Context,
        lease: Option<&Lease>,
    ) -> bool {
        if !std::mem::take(&mut self.has_place) {
            return false;
        }
        let waiting = client.workers.iter().enumerate().filter_map(|(index, other)| {
            let State::InLine(waiting) = &other.state else { return None };
            let is_next = other.wanted == self.wanted && waiting.call.is_none();
            is_next.then_some((waiting.since, index))
        });
        let Some((_, next)) = waiting.min() else { return false };
        let now = client.now(context);
        let is_handed = context.random.chance(context.options.pass_permille);
        let lease = lease.filter(|lease| is_handed && now < lease.valid_until);
        context
            .trace(|| format!("client {:?}.{} calls .{next}: {lease:?}", client.name, self.index));
        client.workers[next].has_place = true;
        if let State::InLine(waiting) = &mut client.workers[next].state {
            waiting.call = Some(lease.cloned());
        }
        let scheduling_delay = context.network.scheduling_delay(&mut context.random);
        let (owner, life) = client.name;
        context.queue.after(scheduling_delay, Event::Work { client: owner, life, worker: next });
        lease.is_some()
    }

    /// Hands off the lock that it was called with, or releases it.
    fn pass_on_or_release(
        &mut self,
        client: &mut Client,
        context: &mut Context,
        lease: Option<Lease>,
    ) {
        self.has_place = true;
        if !self.pass_on(client, context, lease.as_ref()) {
            if let Some(lease) = lease {
                context.checker.over(name(lease.token.as_bytes()));
                client.post(context, &lease.undo(client.now(context), &client.rules));
            }
        }
    }
}
