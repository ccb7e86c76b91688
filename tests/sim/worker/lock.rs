//! What a thread does with locks: acquires one, holds it, extends it, releases it, as in
//! `src/guard.rs`.

use super::{Outcome, Running, State, Worker};
use crate::checker::{Grant, Invariant, Taking, name};
use crate::client::Client;
use crate::clock::{MILLIS, SECONDS};
use crate::context::Context;
use crate::mistake::Mistake;
use redlatch_protocol::engine::{Acquired, Extended, Extension, HeldLock, Share, Ttl};
use redlatch_protocol::time::Time;
use std::time::Duration;

impl Worker {
    pub(super) fn finish(&mut self, client: &mut Client, context: &mut Context, outcome: Outcome) {
        match outcome {
            Outcome::Acquired(Acquired::Held(held)) if client.is_cancelled || self.is_cancelled => {
                self.stop_waiting(context);
                self.give_back(client, context, &held);
                self.rest(client, context);
            }
            Outcome::Acquired(Acquired::Held(mut held)) => {
                if context.options.mistake == Some(Mistake::ValidityFromReply) {
                    let ttl = client.rules.drift.validity(held.ttl);
                    held.valid_until = client.now(context).after(ttl);
                }
                if context.options.mistake == Some(Mistake::DriftIgnored) {
                    held.valid_until = held.valid_until.after(Duration::from_millis(2));
                }
                self.take(client, context, held);
            }
            Outcome::Extended(extended) => self.extended(client, context, extended),
            Outcome::Register(id, outcome) => self.register_returned(client, context, id, outcome),
            other => {
                context.trace(|| format!("client {:?}.{}: {other:?}", client.name, self.index));
                self.panic_if_held_by_others(context, &other);
                if matches!(other, Outcome::Acquired(Acquired::Contended)) {
                    self.expect_readers_only(context, "refused");
                }
                if let Some(before) = self.predecessor.take() {
                    let now = context.queue.now();
                    context.checker.order.released(&self.wanted, before, now);
                }
                self.stop_waiting(context);
                self.head = None;
                self.rest(client, context);
            }
        }
    }

    /// Holds a lock from now on.
    pub(super) fn take(&mut self, client: &Client, context: &mut Context, held: HeldLock) {
        let until = client.clock.when(held.valid_until);
        let token = name(held.token.as_bytes());
        let share = held
            .attributes
            .as_ref()
            .and_then(|attributes| attributes.share);
        let is_fenced = held
            .attributes
            .as_ref()
            .is_some_and(|it| it.fence.is_some());
        let fence = match share {
            // Nodes that have lost their keys have lost the number that readers ask for.
            Some(Share::Reader) if context.options.restart_guard => None,
            // A reader before any writer has no number, which counts as the smallest.
            Some(Share::Reader) if is_fenced => Some(held.fence.unwrap_or(0)),
            _ => held.fence,
        };
        let who = client.name;
        let what = &self.wanted;
        context.trace(|| {
            format!("client {who:?} holds {what:?} by {token:?} {fence:?} {share:?} until {until}")
        });
        let asked = client.clock.when(held.since);
        let now = context.queue.now();
        context.checker.granted(
            &self.wanted,
            &Grant {
                token,
                asked,
                now,
                until,
                fence,
                share,
            },
        );
        let waiter = self.waiter.take();
        let called_at = self.predecessor.is_none().then_some(self.called_at);
        for resource in self.wanted.iter().copied() {
            let taking = Taking {
                resource,
                token,
                share,
                waiter,
                called_at,
            };
            context.checker.granted_in_order(&taking, now);
        }
        if held.waiter.is_some() {
            self.expect_readers_only(context, "queued");
        }
        self.predecessor = None;
        self.set_key_expiry(client, &held);
        context.tally.from_queue += u64::from(held.waiter.is_some());
        context.tally.awaited += u64::from(held.is_awaited);
        context.tally.grants += 1;
        context.tally.grants_after += u64::from(context.tally.elections > 0);
        context.tally.fenced += u64::from(held.fence.is_some());
        context.tally.of_several += u64::from(self.wanted.len() > 1);
        context.tally.readers += u64::from(share == Some(Share::Reader));
        context.tally.permits += u64::from(share.is_some_and(|share| share.permits() > 0));
        context.tally.shares_from_queue += u64::from(share.is_some() && held.waiter.is_some());
        self.held = Some(held);
        self.hold(client, context);
    }

    fn extended(&mut self, client: &mut Client, context: &mut Context, extended: Extended) {
        context.trace(|| format!("client {:?}.{}: {extended:?}", client.name, self.index));
        let now = context.queue.now();
        let Some(current) = &mut self.held else {
            return;
        };
        match extended {
            Extended::Confirmed(held) => {
                let until = client.clock.when(held.valid_until);
                context.checker.extended(name(held.token.as_bytes()), until);
                context.tally.extensions += 1;
                context.tally.extensions_after += u64::from(context.tally.elections > 0);
                context.tally.extended_shares += u64::from(self.share.is_some());
                *current = held.clone();
                if let Some(head) = &self.head {
                    head.set_key_expiry(held.expires_at(&client.rules));
                }
            }
            Extended::Unanswered(held) => *current = held,
            Extended::Lost(mut held) => {
                held.valid_until = current.valid_until.min(client.clock.read(now));
                context.checker.left(name(current.token.as_bytes()), now);
                *current = held;
            }
            Extended::HeldTooLong(_) => {}
        }
        if context.options.mistake == Some(Mistake::ExtensionAssumed) {
            current.valid_until = self.began.after(client.rules.drift.validity(current.ttl));
            let until = client.clock.when(current.valid_until);
            context
                .checker
                .extended(name(current.token.as_bytes()), until);
        }
        self.hold(client, context);
    }

    /// Its call has ended without a lock.
    pub(super) fn stop_waiting(&mut self, context: &mut Context) {
        let now = context.queue.now();
        if let Some(waiter) = self.waiter.take() {
            context.checker.order.left(waiter, now);
        }
    }

    /// Holds the lock for a while.
    pub(super) fn hold(&mut self, client: &Client, context: &mut Context) {
        let now = context.queue.now();
        let Some(held) = &self.held else { return };
        let valid = client.clock.when(held.valid_until).saturating_sub(now);
        let work = if context.options.queueing.abandons_waiters {
            // All others arrive meanwhile.
            if context.tally.grants == 1 {
                2 * SECONDS
            } else {
                0
            }
        } else if context.has_faults_ended {
            context.random.below(5 * MILLIS)
        } else if context.options.has_steady_links && context.random.chance(500) {
            // Some are held for long, and nothing happens meanwhile.
            context.random.below(5 * MILLIS)
        } else if context.options.queueing.is_quiet {
            context.random.below(valid / 4)
        } else if context.random.chance(context.options.greedy_permille) {
            valid + context.random.below(20 * MILLIS)
        } else if context.options.ttls_differ && context.random.chance(700) {
            // Extends it again soon, so that several extensions are in flight.
            context.random.below(valid / 4 + MILLIS)
        } else {
            context.random.below(valid + MILLIS)
        };
        self.state = State::Holding;
        self.sleep(client, context, now + work);
    }

    /// Extends or releases the lock after holding it for a while.
    pub(super) fn go_on(&mut self, client: &mut Client, context: &mut Context) {
        let now = client.now(context);
        let Some(held) = self.held.clone() else {
            return;
        };
        if !context.has_faults_ended && context.random.chance(context.options.extend_permille) {
            let ttl = self.ttl(context);
            let extension = Extension {
                held,
                ttl,
                began: now,
                is_resumed: false,
            };
            let extending = Running::extending(extension, &client.rules);
            let limit = now.after(client.rules.node_timeout);
            self.start(client, context, extending, Some(limit));
            return self.advance(client, context);
        }
        context
            .checker
            .left(name(held.token.as_bytes()), context.queue.now());
        context.checker.over(name(held.token.as_bytes()));
        self.held = None;
        if self.hand_off(&held) {
            self.head = None;
            return self.rest(client, context);
        }
        self.note_released(context, &held);
        let keep_for = self.keep_for(context, &held, now);
        if context.random.chance(500) {
            let releasing = Running::releasing(held, keep_for, now, &client.rules);
            let limit = now.after(client.rules.node_timeout);
            self.start(client, context, releasing, Some(limit));
            self.advance(client, context);
        } else {
            // Dropped.
            client.post(context, held.undo_after(keep_for, now, &client.rules));
            self.head = None;
            self.rest(client, context);
        }
    }

    pub(super) fn note_released(&self, context: &mut Context, held: &HeldLock) {
        let token = name(held.token.as_bytes());
        let now = context.queue.now();
        context.checker.order.released(&self.wanted, token, now);
    }

    /// How long the key of a released lock stays, in some histories.
    fn keep_for(&self, context: &mut Context, held: &HeldLock, now: Time) -> Option<Ttl> {
        let permille = context.options.sharing.keep_permille;
        let longest = context.options.ttl.1;
        if permille == 0 || context.has_faults_ended || !context.random.chance(permille) {
            return None;
        }
        let hold_at_least = Duration::from_millis(context.random.below(longest));
        let keep_for = held.keep_for(hold_at_least, now)?;
        context.checker.allow_leftover(name(held.token.as_bytes()));
        context.tally.fault("lock is kept");
        Some(keep_for)
    }

    /// While nobody but readers uses a resource, and without faults, none of them waits.
    fn expect_readers_only(&self, context: &mut Context, what: &str) {
        if context.options.sharing.are_all_readers() && context.options.queueing.is_quiet {
            let text = format!("a reader of {:?} is {what} beside readers", self.wanted);
            context.checker.report_violation(Invariant::Sharing, text);
        }
    }

    pub(super) fn rest(&mut self, client: &Client, context: &mut Context) {
        (self.state, self.is_cancelled) = (State::Idle, false);
        let pause = match (context.has_faults_ended, self.index) {
            (false, _) => context.random.below(context.options.rest),
            // One thread is enough to keep the event loop running.
            (true, 0) => context.random.below(SECONDS),
            (true, _) => return,
        };
        self.sleep(client, context, context.queue.now() + pause);
    }
}
