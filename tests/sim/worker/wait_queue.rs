//! Threads of one client that want one lock wait in a queue, as in `src/wait_queue.rs`: only the
//! head sends requests to the nodes. When it releases the lock, it hands it off to the next, which
//! replaces the token on the nodes.
//!
//! Simpler than there: a thread whose deadline passes in the queue leaves without a request, and
//! the number of handoffs is random if no other client waits.

use super::workload::ROUNDS_MAX;
use super::{Running, State, Worker};
use crate::checker::name;
use crate::client::Client;
use crate::clock::MILLIS;
use crate::context::Context;
use crate::queue::Event;
use redlatch_protocol::engine::{Acquire, HeldLock, Wait};
use redlatch_protocol::time::Time;
use std::time::Duration;

/// How long a client may keep a lock for which another client waits.
const AWAITED: Duration = Duration::from_millis(10);

/// The longest pause of a thread that is called because the client has kept the lock for so long.
const PAUSE: u64 = 20 * MILLIS;

/// What a thread gets when it becomes the head.
#[derive(Debug)]
struct Call {
    held: Option<HeldLock>,
    kept_since: Time,
    is_after_limit: bool,
}

/// A waiting thread.
#[derive(Debug)]
pub(super) struct Waiting {
    acquire: Acquire,
    wait: Wait,
    limit: Option<Time>,
    since: u64,
    /// It is the head now, with the lock of its predecessor or without.
    call: Option<Call>,
}

impl Worker {
    /// Requests a lock, or waits in the queue behind another thread of the client.
    pub(super) fn join(
        &mut self,
        client: &mut Client,
        context: &mut Context,
        acquire: Acquire,
        limit: Option<Time>,
        wait: Wait,
    ) {
        let is_lined = context.options.is_lined;
        self.predecessor = None;
        if acquire.is_shared() {
            // Threads of a client can have shares at the same time.
            self.has_place = false;
            self.start(client, context, Running::Acquire(acquire), limit);
            return self.advance(client, context);
        }
        let is_before = |other: &Self| other.has_place && other.wanted == self.wanted;
        let is_taken = client.workers.iter().any(is_before);
        self.has_place = is_lined && !is_taken;
        if !is_lined || !is_taken || wait == Wait::No {
            self.start(client, context, Running::Acquire(acquire), limit);
            return self.advance(client, context);
        }
        context.trace(|| format!("client {:?}.{} waits in the queue", client.name, self.index));
        let since = context.queue.now();
        self.state = State::InLine(Waiting { acquire, wait, limit, since, call: None });
        if let Some(limit) = limit {
            self.sleep(client, context, client.clock.when(limit));
        }
    }

    /// Checks whether it is the head now, or its deadline has passed.
    pub(super) fn look_up(&mut self, client: &mut Client, context: &mut Context, waiting: Waiting) {
        let is_late = waiting.limit.is_some_and(|limit| client.now(context) >= limit);
        let Waiting { mut acquire, wait, mut limit, call, .. } = waiting;
        match call {
            Some(Call { held, kept_since, .. }) if is_late => {
                self.kept_since = kept_since;
                // Called too late. Another waiter may have more time.
                self.pass_on_or_release(client, context, held);
                self.rest(client, context);
            }
            Some(Call { held, kept_since, is_after_limit }) => {
                self.has_place = true;
                if let Some(held) = held {
                    self.kept_since = kept_since;
                    self.predecessor = Some(name(held.token.as_bytes()));
                    context.tally.handoffs += 1;
                    if self.believes_handoff(client, context, &held) {
                        return;
                    }
                    acquire = acquire.taking_over(held);
                } else {
                    // A thread that begins with too little time left still gets one whole attempt.
                    let whole = client.now(context).after(client.rules.node_timeout * ROUNDS_MAX);
                    limit = limit.map(|limit| limit.max(whole));
                    if is_after_limit {
                        let now = client.now(context);
                        let pause = Duration::from_nanos(context.random.below(PAUSE));
                        let end = wait.deadline();
                        let left = end.map_or(Duration::MAX, |end| end.since(now));
                        acquire = acquire.pausing(now.after(pause.min(left / 2)));
                    }
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
        held: Option<&HeldLock>,
    ) -> bool {
        if !self.has_place {
            return false;
        }
        let now = client.now(context);
        let may_hand = context.random.chance(context.options.pass_permille);
        let is_kept = now.since(self.kept_since) >= AWAITED;
        let may_keep =
            |held: &HeldLock| may_hand && now < held.valid_until && !(held.is_awaited && is_kept);
        let is_handed = held.is_some_and(may_keep);
        if held.is_some() && !is_handed {
            // The lock is released first.
            self.is_limited = true;
            return false;
        }
        self.has_place = false;
        let is_after_limit = std::mem::take(&mut self.is_limited);
        let waiting = client.workers.iter().enumerate().filter_map(|(index, other)| {
            let State::InLine(waiting) = &other.state else { return None };
            let is_next = other.wanted == self.wanted && waiting.call.is_none();
            is_next.then_some((waiting.since, index))
        });
        let Some((_, next)) = waiting.min() else { return false };
        context
            .trace(|| format!("client {:?}.{} calls .{next}: {held:?}", client.name, self.index));
        client.workers[next].has_place = true;
        if let State::InLine(waiting) = &mut client.workers[next].state {
            let kept_since = self.kept_since;
            waiting.call = Some(Call { held: held.cloned(), kept_since, is_after_limit });
        }
        let scheduling_delay = context.network.scheduling_delay(&mut context.random);
        let (owner, life) = client.name;
        context.queue.after(scheduling_delay, Event::Work { client: owner, life, worker: next });
        is_handed
    }

    /// Hands off the lock that it was called with, or releases it.
    fn pass_on_or_release(
        &mut self,
        client: &mut Client,
        context: &mut Context,
        held: Option<HeldLock>,
    ) {
        self.has_place = true;
        if !self.pass_on(client, context, held.as_ref()) {
            if let Some(held) = held {
                context.checker.over(name(held.token.as_bytes()));
                self.note_released(context, &held);
                client.post(context, held.undo(client.now(context), &client.rules));
            }
            self.pass_on(client, context, None);
        }
    }

    /// Leaves the wait queue because the call is cancelled.
    pub(super) fn leave_line(
        &mut self,
        client: &mut Client,
        context: &mut Context,
        waiting: Waiting,
    ) {
        if let Some(Call { held, kept_since, .. }) = waiting.call {
            self.kept_since = kept_since;
            self.pass_on_or_release(client, context, held);
        }
        self.rest(client, context);
    }
}
