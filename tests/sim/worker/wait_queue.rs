//! Threads of one client that want one lock wait in the library's own queue, whose head alone sends
//! requests to the nodes and hands the lock off when it releases it. Only sleeping is simulated: a
//! thread sees at once what has become of it, and acts on that a little later.

use super::workload::ROUNDS_MAX;
use super::{Running, State, Worker};
use crate::cancel_token::CancelToken;
use crate::checker::name;
use crate::client::Client;
use crate::clock::{Clock, MILLIS};
use crate::context::Context;
use crate::queue::Event;
use crate::redlock;
use crate::taker::{Caller, StartedCaller};
use crate::wait_queue::{Joined, WaitQueues};
use crate::waiting_thread::WaitingCaller;
use redlatch_protocol::engine::{Acquire, HeldLock, Wait};
use redlatch_protocol::time::Time;
use std::fmt;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

/// The longest pause of a thread that is called because the client has kept the lock for so long.
const PAUSE: u64 = 20 * MILLIS;

/// What a thread asks for when it is the head.
pub(super) struct Call {
    acquire: Acquire,
    wait: Wait,
    limit: Option<Time>,
}

/// A waiting thread.
pub(super) struct Waiting {
    call: Call,
    place: WaitingCaller,
    /// What has become of it.
    joined: Option<Joined>,
    wakes_at: u64,
}

impl fmt::Debug for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Waiting")
            .field("wakes_at", &self.wakes_at)
            .finish_non_exhaustive()
    }
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
        self.predecessor = None;
        if acquire.is_shared() || !context.options.is_lined {
            // Threads of a client can have shares at the same time.
            self.start_call(client, context, acquire, limit);
            return self.advance(client, context);
        }
        self.token = CancelToken::new();
        self.is_dropped = Arc::default();
        // Half of the calls take no thread. The time decides, and no random number: all else in a
        // history is as without them.
        let is_started = context.queue.now() % 2 == 1;
        let started = StartedCaller {
            waker: Waker::noop(),
            is_dropped: &self.is_dropped,
        };
        let queues = Arc::clone(&client.wait_queues);
        let round = client.rules.node_timeout;
        let name = format!("{:?}", self.wanted).into_bytes().into();
        let caller = Caller {
            token: (!is_started).then_some(&self.token),
            thread: None,
            started: is_started.then_some(started),
        };
        let entered = queues.enter(&mut queues.lock(), &name, wait, round, caller);
        let call = Call {
            acquire,
            wait,
            limit,
        };
        match entered {
            ControlFlow::Break(joined) => self.joined(client, context, call, joined),
            ControlFlow::Continue(place) => {
                let who = client.name;
                context.trace(|| format!("client {who:?}.{} waits in the queue", self.index));
                let wakes_at = u64::MAX;
                self.state = State::InLine(Waiting {
                    call,
                    place,
                    joined: None,
                    wakes_at,
                });
                self.look(&queues, &client.clock, client.name, context);
            }
        }
    }

    /// Begins to ask the nodes.
    fn start_call(
        &mut self,
        client: &Client,
        context: &Context,
        machine: Acquire,
        limit: Option<Time>,
    ) {
        let head = self.head.as_ref().map(|head| head.handle().clone());
        let rules = Arc::clone(&client.rules);
        let call = redlock::acquire(machine, head, rules);
        self.start(client, context, Running::Acquire(call), limit);
        if client.is_cancelled || self.is_cancelled {
            self.note_cancelled();
        }
    }

    /// Looks what has become of it in the queue, in which something may have happened.
    pub(crate) fn look(
        &mut self,
        queues: &Arc<WaitQueues>,
        clock: &Clock,
        (client, life): (usize, u64),
        context: &mut Context,
    ) {
        let State::InLine(waiting) = &mut self.state else {
            return;
        };
        if waiting.joined.is_some() {
            return;
        }
        let at = match queues.look(&mut queues.lock(), &mut waiting.place) {
            ControlFlow::Break(joined) => {
                waiting.joined = Some(joined);
                context.queue.now() + context.network.scheduling_delay(&mut context.random)
            }
            ControlFlow::Continue(Some(time)) => clock.when(time),
            ControlFlow::Continue(None) => return,
        };
        if waiting.joined.is_some() || at < waiting.wakes_at {
            waiting.wakes_at = at;
            context.queue.at(
                at,
                Event::Work {
                    client,
                    life,
                    worker: self.index,
                },
            );
        }
    }

    /// Wakes up in the queue.
    pub(super) fn wake(&mut self, client: &mut Client, context: &mut Context, waiting: Waiting) {
        let Waiting {
            call,
            joined,
            place,
            wakes_at,
        } = waiting;
        if let Some(joined) = joined {
            return self.joined(client, context, call, joined);
        }
        // It may be woken for nothing. When its time has come, it looks with all others.
        let wakes_at = if wakes_at <= context.queue.now() {
            u64::MAX
        } else {
            wakes_at
        };
        self.state = State::InLine(Waiting {
            call,
            place,
            joined,
            wakes_at,
        });
    }

    fn joined(&mut self, client: &mut Client, context: &mut Context, call: Call, joined: Joined) {
        let Call {
            mut acquire,
            wait,
            mut limit,
        } = call;
        let now = client.now(context);
        let end = wait.deadline();
        match joined {
            Joined::Head(head, Some(held)) => {
                self.head = Some(head);
                let is_cancelled = client.is_cancelled || self.is_cancelled;
                if is_cancelled || end.is_some_and(|end| now >= end) {
                    // Called too late. Another waiter may have more time.
                    self.give_back(client, context, &held);
                    return self.rest(client, context);
                }
                self.predecessor = Some(name(held.token.as_bytes()));
                context.tally.handoffs += 1;
                if self.believes_handoff(client, context, &held) {
                    return;
                }
                acquire = acquire.taking_over(held);
            }
            Joined::Head(head, None) => {
                if head.is_after_limit() {
                    let pause = Duration::from_nanos(context.random.below(PAUSE));
                    let left = end.map_or(Duration::MAX, |end| end.since(now));
                    acquire = acquire.pausing(now.after(pause.min(left / 2)));
                }
                self.head = Some(head);
            }
            Joined::NotQueued => {}
            Joined::TimedOut | Joined::Cancelled | Joined::HeldByThisThread => {
                return self.rest(client, context);
            }
        }
        // A thread that begins with too little time left still gets one whole attempt.
        let whole = now.after(client.rules.node_timeout * ROUNDS_MAX);
        limit = limit.map(|limit| limit.max(whole));
        self.start_call(client, context, acquire, limit);
        self.advance(client, context);
    }

    /// The next waiter need not wait for longer than until the key has expired.
    pub(super) fn set_key_expiry(&self, client: &Client, held: &HeldLock) {
        if let Some(head) = &self.head {
            head.set_key_expiry(held.expires_at(&client.rules));
        }
    }

    /// Hands the lock to the next waiter, if there is one and that is allowed. Otherwise the caller
    /// must release it.
    pub(super) fn hand_off(&mut self, held: &HeldLock) -> bool {
        self.head
            .as_ref()
            .is_some_and(|head| head.hand_off(held.clone()).is_ok())
    }

    /// Gives up a lock that the call does not get: it goes to the next waiter, or is removed.
    pub(super) fn give_back(
        &mut self,
        client: &mut Client,
        context: &mut Context,
        held: &HeldLock,
    ) {
        context.checker.over(name(held.token.as_bytes()));
        self.set_key_expiry(client, held);
        if !self.hand_off(held) {
            self.note_released(context, held);
            client.post(context, held.undo(client.now(context), &client.rules));
        }
        self.head = None;
    }
}
