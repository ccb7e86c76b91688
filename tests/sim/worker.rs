//! A thread of a client: one operation after another, and the guard of `src/guard.rs`. A call that
//! acquires a lock is the library's own, which leaves what it waits for in a mailbox.
//!
//! The thread stops wherever time would pass: before an attempt, between reading the clock and
//! writing, while it waits for votes, and after they came.

mod checks;
mod lock;
mod mistakes;
mod nodes_queue;
mod operation;
mod operator;
mod registers;
mod result;
mod wait_queue;
mod workload;

use crate::cancel_token::CancelToken;
use crate::checker::{Name, name};
use crate::client::Client;
use crate::context::Context;
use crate::queue::Event;
use crate::step::Step;
use crate::wait_queue::QueueHead;
use operation::{Asked, Outcome, Running};
use redlatch_protocol::engine::{Entropy, HeldLock, Input, NodeSet, QueueWait, Request, Share};
use redlatch_protocol::node::Ended;
use redlatch_protocol::time::Time;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use wait_queue::Waiting;

#[derive(Debug)]
pub(crate) struct Worker {
    index: usize,
    state: State,
    operation: Option<Running>,
    /// The lock that it holds, and the resources that it wants or holds.
    held: Option<HeldLock>,
    wanted: Vec<u64>,
    /// The share that it wants, if not all of the lock.
    share: Option<Share>,
    /// Its place, if it is the head of its client's wait queue for these resources.
    head: Option<QueueHead>,
    /// The request that it has sent.
    asked: Option<Asked>,
    /// Does it wait in the nodes' queue?
    is_queued: bool,
    /// Has it asked for the lock in its turn?
    is_turn: bool,
    /// Does it ask the nodes about the queue, and is its entry without a number yet?
    is_entering: Option<bool>,
    /// In whose queues it is entered: those of all resources that it wants, or of one of a set.
    queues: Vec<u64>,
    /// Its name in the nodes' queue.
    waiter: Option<Name>,
    /// The lock of another thread of its client with which it was called.
    predecessor: Option<Name>,
    /// Its call is cancelled, and not all of its client's.
    is_cancelled: bool,
    /// What ends its wait in the queue then.
    token: CancelToken,
    /// The same for a call that takes no thread.
    is_dropped: Arc<AtomicBool>,
    /// When its call began, in true time.
    called_at: u64,
    /// By its own clock: when the operation began, and its deadline.
    began: Time,
    limit: Option<Time>,
    /// For how long it could not run meanwhile, because of delays and pauses.
    scheduling_delays: u64,
    paused_before: u64,
    /// For mistakes only: the first token, and the votes for the former attempt.
    first_token: Option<[u8; Entropy::LEN]>,
    stale: NodeSet,
    /// The versions of registers that it has seen last.
    versions: BTreeMap<u64, Option<u64>>,
    /// Has it recovered the transactions of its side since it was started?
    has_recovered: bool,
}

#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "there are a handful of them in a simulation"
)]
enum State {
    /// Idle until it is woken.
    Idle,
    /// Sleeps until its next attempt.
    Resting,
    /// About to send a request to the nodes.
    Submitting(Request),
    /// About to wait in the nodes' queue.
    Queueing(QueueWait),
    /// Waits for the event loop.
    Waiting,
    /// The outcome was delivered: the votes, and the values on the nodes if the request was an
    /// inspection.
    Handed(Ended),
    /// A lock is held.
    Holding,
    /// Waits in the queue behind another thread of the client.
    InLine(Waiting),
}

impl Worker {
    pub(crate) fn new(index: usize) -> Self {
        Self {
            index,
            state: State::Idle,
            operation: None,
            held: None,
            wanted: Vec::new(),
            share: None,
            head: None,
            asked: None,
            is_queued: false,
            is_turn: false,
            is_entering: None,
            queues: Vec::new(),
            waiter: None,
            predecessor: None,
            is_cancelled: false,
            token: CancelToken::new(),
            is_dropped: Arc::default(),
            called_at: 0,
            began: Time::ZERO,
            limit: None,
            scheduling_delays: 0,
            paused_before: 0,
            first_token: None,
            stale: NodeSet::EMPTY,
            versions: BTreeMap::new(),
            has_recovered: false,
        }
    }

    /// Does it pause before an attempt, or for the wait queue of its client?
    pub(crate) fn is_pausing(&self) -> bool {
        matches!(self.state, State::Resting | State::InLine(_))
    }

    /// Is it still trying to acquire a lock?
    pub(crate) fn is_acquiring(&self) -> bool {
        matches!(self.operation, Some(Running::Acquire(_)))
            || matches!(self.state, State::InLine(_))
    }

    /// Does it hold a lock, without an operation in progress?
    pub(crate) fn is_holding(&self) -> bool {
        matches!(self.state, State::Holding)
    }

    /// Does it hold this lock?
    pub(crate) fn holds(&self, token: Name) -> bool {
        self.held
            .as_ref()
            .is_some_and(|held| name(held.token.as_bytes()) == token)
    }

    /// Is it idle, without a lock?
    pub(crate) fn is_done(&self) -> bool {
        let is_idle = matches!(self.operation, None | Some(Running::Ping(_)));
        self.held.is_none() && is_idle && !matches!(self.state, State::InLine(_))
    }

    /// The event loop delivers how a round or a wait has ended.
    pub(crate) fn hand(&mut self, result: Ended, scheduling_delay: u64) {
        self.scheduling_delays += scheduling_delay;
        self.state = State::Handed(result);
    }

    /// Takes over the outcome that was delivered to its placeholder.
    pub(crate) fn take_handed(&mut self, other: &mut Self) {
        if matches!(other.state, State::Handed(..)) {
            self.scheduling_delays += other.scheduling_delays;
            self.state = std::mem::replace(&mut other.state, State::Idle);
        }
    }

    /// Runs until it has to wait.
    pub(crate) fn work(&mut self, client: &mut Client, context: &mut Context) {
        let now = client.now(context);
        let is_cancelled = client.is_cancelled || self.is_cancelled;
        match std::mem::replace(&mut self.state, State::Idle) {
            State::Idle => self.begin(client, context),
            State::Resting if self.is_acquiring() => {
                self.end_pause(client, context, is_cancelled);
            }
            State::Resting if self.uses_register() => self.advance(client, context),
            State::Resting => {
                let entropy = self.draw(client, context);
                self.handle(now, Input::Attempt(entropy));
                self.advance(client, context);
            }
            State::Queueing(wait) => {
                self.state = State::Waiting;
                (self.is_queued, self.is_turn, self.is_entering) = (true, false, None);
                self.asked = None;
                client.wait(context, self.index, wait);
            }
            State::Submitting(request) => {
                self.note_asked(context, &request);
                self.state = State::Waiting;
                self.asked = Asked::of(&request, context.queue.now());
                client.submit(context, self.index, request);
            }
            State::Waiting => self.state = State::Waiting,
            State::Handed(result) => {
                self.take_result(client, context, result);
                self.advance(client, context);
            }
            State::Holding => self.go_on(client, context),
            State::InLine(waiting) => self.wake(client, context, waiting),
        }
    }

    fn handle(&mut self, now: Time, input: Input) {
        if let Some(operation) = &mut self.operation {
            operation.handle(now, input);
        }
    }

    fn start(
        &mut self,
        client: &Client,
        context: &Context,
        operation: Running,
        limit: Option<Time>,
    ) {
        self.operation = Some(operation);
        self.began = client.now(context);
        self.limit = limit;
        self.scheduling_delays = 0;
        self.paused_before = client.paused;
    }

    fn sleep(&self, client: &Client, context: &mut Context, until: u64) {
        let ((client, life), worker) = (client.name, self.index);
        context.queue.at(
            until,
            Event::Work {
                client,
                life,
                worker,
            },
        );
    }

    /// Goes on with its operation until that has to wait.
    fn advance(&mut self, client: &mut Client, context: &mut Context) {
        while let Some(operation) = &mut self.operation {
            let step = operation.poll();
            if matches!(step, Step::Receive) && self.let_others_change(client) {
                continue;
            }
            self.after_step(client, context);
            match step {
                Step::Send(request) if request.is_answered() => {
                    self.note_place(context, &request);
                    self.state = State::Submitting(request);
                    let scheduling_delay = context.network.scheduling_delay(&mut context.random);
                    self.scheduling_delays += scheduling_delay;
                    return self.sleep(client, context, context.queue.now() + scheduling_delay);
                }
                Step::Send(request) => self.undo(client, context, request),
                Step::Wait(wait) => {
                    self.state = State::Queueing(wait);
                    let scheduling_delay = context.network.scheduling_delay(&mut context.random);
                    self.scheduling_delays += scheduling_delay;
                    return self.sleep(client, context, context.queue.now() + scheduling_delay);
                }
                Step::Pause(_) | Step::Receive => {
                    let until = match step {
                        Step::Pause(until) => until,
                        _ => Time::MAX,
                    };
                    self.state = State::Resting;
                    if self.gives_up(context, until) {
                        return;
                    }
                    let scheduling_delay = context.network.scheduling_delay(&mut context.random);
                    self.scheduling_delays += scheduling_delay;
                    return self.sleep(
                        client,
                        context,
                        client.clock.when(until).max(context.queue.now()) + scheduling_delay,
                    );
                }
                Step::Done(outcome) => {
                    self.check_deadline(client, context);
                    self.operation = None;
                    self.finish(client, context, outcome);
                }
            }
        }
    }
}
