//! A client: the library's own rounds, sessions and driver, over connections of the simulated
//! network.
//!
//! When the driver is called is as in `src/net/leader_followers.rs` and `socket_loop.rs`: if there
//! is not a leader, a request first catches up; then it is opened, and from there to the end of the
//! last open round the event loop writes, waits, reads, ticks and delivers. While no thread waits
//! for a round, nothing is read, and arrived bytes stay in the socket. A posted request is only
//! written, at once.
//!
//! Differences: names need no resolving; which thread leads is not simulated (tests/leader_model
//! checks that with loom); a write takes as many bytes as the network has room for, and is repeated
//! with each turn of the loop instead of at the next event.

mod lifecycle;
mod sockets;

use crate::cancel_token::CancelToken;
use crate::checker::Invariant;
use crate::clock::{self, Clock, MILLIS};
use crate::context::Context;
use crate::handoff_limit::HandoffLimit;
use crate::mistake::Mistake;
use crate::options::Options;
use crate::owner_process::OwnerProcess;
use crate::queue::Event;
use crate::random::Random;
use crate::register::{Shared, url};
use crate::wait_queue::WaitQueues;
use crate::worker::Worker;
use redlatch_protocol::engine::{Drift, Node, QueueWait, Request, Rules, Token};
use redlatch_protocol::node::{
    Conversation, Credentials, Driver, IN_FLIGHT_MAX, Message, Order, PENDING_MAX, Rounds, Session,
    SessionOptions,
};
use redlatch_protocol::time::Time;
use sockets::Sockets;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

pub(crate) struct Client {
    /// Its number, and how many clients had this number before it.
    pub(crate) name: (usize, u64),
    pub(crate) clock: Clock,
    pub(crate) rules: Arc<Rules>,
    pub(crate) workers: Vec<Worker>,
    pub(crate) is_alive: bool,
    /// Its waits are cancelled, and its threads begin nothing new.
    pub(crate) is_cancelled: bool,
    /// How many microseconds its wall clock is ahead.
    wall_offset: u64,
    /// Nothing of it runs before then.
    pub(crate) paused_until: u64,
    /// The total time of its pauses.
    pub(crate) paused: u64,
    pub(crate) registers: Rc<Shared>,
    pub(crate) wait_queues: Arc<WaitQueues>,
    /// What ends all waits in them.
    token: CancelToken,
    rounds: Rounds<usize>,
    links: Vec<Link>,
    /// When the event loop will wake up.
    wakes_at: u64,
}

/// The connection to one node, open or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Link {
    None,
    Connecting(usize),
    Connected(usize),
}

impl Client {
    pub(crate) fn new(name: (usize, u64), clock: Clock, context: &mut Context) -> Self {
        let Options {
            nodes,
            node_timeout,
            ..
        } = context.options;
        let factor = match context.options.mistake {
            Some(Mistake::DriftIgnored) => 0.0,
            _ => 0.01,
        };
        let mut rules = Rules::new(
            nodes,
            Drift::from_factor(factor).expect("within the limits"),
        );
        (rules.node_timeout, rules.connect_timeout) = (node_timeout, node_timeout * 10);
        let queues = !context
            .random
            .chance(context.options.queueing.unqueued_permille);
        rules.waiter_lease = context.options.queueing.waiter_lease.filter(|_| queues);
        let sessions = (0..nodes).map(|node| {
            let mut options = SessionOptions::new(&url(node), context.random.number());
            options.node_timeout = node_timeout;
            options.connect_timeout = rules.connect_timeout;
            options.silence_max = node_timeout * 10;
            let password = context.options.password.map(str::as_bytes);
            options.credentials = Credentials::new(None, password, 0, None);
            options.quarantine = context.options.quarantine();
            context.options.lead_to_group(&mut options);
            Session::new(options)
        });
        let sessions = sessions.collect();
        let limit = HandoffLimit {
            count: context.options.handoffs_max,
            ..HandoffLimit::DEFAULT
        };
        let token = CancelToken::new();
        let owner_process = Arc::new(OwnerProcess::here());
        let rules = Arc::new(rules);
        // Histories of locks draw as many numbers as they would without it.
        let uses_registers = context.options.registers.is_some();
        let random = Random::new(if uses_registers {
            context.random.number()
        } else {
            0
        });
        let walls_apart = context.options.walls_apart;
        Self {
            name,
            clock,
            wall_offset: context.random.below(walls_apart + 1),
            registers: Shared::new(
                Arc::clone(&rules),
                context.options.mistake,
                random,
                (name.0, &context.checker.transactions),
            ),
            wait_queues: Arc::new(WaitQueues::new(limit, token.clone(), owner_process)),
            token,
            rules,
            rounds: Rounds::new(sessions, context.options.wait_for_all),
            links: vec![Link::None; nodes],
            workers: (0..context.options.workers).map(Worker::new).collect(),
            is_alive: true,
            is_cancelled: false,
            paused_until: 0,
            paused: 0,
            wakes_at: u64::MAX,
        }
    }

    /// Runs one of its threads, which is taken out of the client meanwhile, because it uses it.
    pub(crate) fn run_worker(&mut self, context: &mut Context, worker: usize) {
        self.registers.lend_random();
        let idle = Worker::new(worker);
        let mut running = std::mem::replace(&mut self.workers[worker], idle);
        clock::set_now(self.now(context));
        clock::set_wall(self.wall(context));
        running.work(self, context);
        // Its round may have been decided at once.
        let mut handed = std::mem::replace(&mut self.workers[worker], running);
        self.workers[worker].take_handed(&mut handed);
        self.look(context);
    }

    /// The threads in the wait queues look what has become of them.
    fn look(&mut self, context: &mut Context) {
        clock::set_now(self.now(context));
        let Self {
            workers,
            wait_queues,
            clock,
            name,
            ..
        } = self;
        workers
            .iter_mut()
            .for_each(|worker| worker.look(wait_queues, clock, *name, context));
    }

    pub(crate) fn now(&self, context: &Context) -> Time {
        self.clock.read(context.queue.now())
    }

    fn is_driven(&self) -> bool {
        self.rounds.waiters().next().is_some()
    }

    /// Has the library's driver of event loops do something over the client's sockets.
    fn drive_over<T>(
        &mut self,
        context: &mut Context,
        work: impl FnOnce(&mut Driver<'_, Rounds<usize>, Sockets<'_>>) -> T,
    ) -> T {
        let Self {
            name,
            clock,
            links,
            rounds,
            ..
        } = self;
        let mut sockets = Sockets {
            name: *name,
            clock: *clock,
            links,
            context,
        };
        work(&mut Driver::new(rounds, &mut sockets))
    }

    /// A thread sends a request to all nodes and waits for the outcome.
    pub(crate) fn submit(&mut self, context: &mut Context, worker: usize, request: Request) {
        self.lead(context, Order::Round(request), worker);
    }

    /// A thread waits in the nodes' queue.
    pub(crate) fn wait(&mut self, context: &mut Context, worker: usize, wait: QueueWait) {
        self.lead(context, Order::Wait(wait), worker);
    }

    fn lead(&mut self, context: &mut Context, order: Order, worker: usize) {
        let has_leader = self.is_driven();
        self.drive_over(context, |driver| {
            if !has_leader {
                driver.catch_up();
            }
            driver.open(order, worker);
        });
        self.deliver(context);
        self.go_on(context);
    }

    /// The waits of one waiter, or all, end.
    fn end_waits(&mut self, context: &mut Context, waiter: Option<Token>) {
        self.drive_over(context, |driver| driver.post(Message::EndWaits(waiter)));
        self.deliver(context);
        self.go_on(context);
    }

    /// A thread sends a request without an outcome.
    pub(crate) fn post(&mut self, context: &mut Context, request: Request) {
        self.drive_over(context, |driver| driver.post(Message::Post(request)));
        self.deliver(context);
        self.go_on(context);
    }

    /// Something may have happened to a socket, or a time may have come.
    pub(crate) fn drive(&mut self, context: &mut Context) {
        if self.wakes_at <= context.queue.now() {
            self.wakes_at = u64::MAX;
        }
        if self.is_driven() {
            self.take_in(context);
            self.deliver(context);
            self.go_on(context);
        }
    }

    /// Reads the bytes that have arrived, and processes deadlines.
    fn take_in(&mut self, context: &mut Context) {
        let ticks = !context.options.has(Mistake::TimeoutIgnored);
        self.drive_over(context, |driver| {
            driver.read_all(Some(Duration::ZERO));
            if ticks {
                driver.tick();
            }
        });
    }

    /// Writes all pending output. If a round is open, schedules a wake-up at the next deadline.
    fn go_on(&mut self, context: &mut Context) {
        self.flush(context);
        if !self.is_driven() {
            return;
        }
        let Some(deadline) = self.rounds.next_deadline() else {
            return;
        };
        let now = context.queue.now();
        // After a tick no deadline has passed, unless the client is one that forgets to tick.
        let due = self.clock.when(deadline);
        let wakes_at = if due > now { due } else { now + MILLIS };
        if wakes_at < self.wakes_at {
            self.wakes_at = wakes_at;
            let (client, life) = self.name;
            context.queue.at(wakes_at, Event::Drive { client, life });
        }
    }

    fn flush(&mut self, context: &mut Context) {
        self.drive_over(context, |driver| {
            driver.flush();
        });
        for node in (0..self.links.len()).map(Node::new) {
            let (in_flight, pending) = self.rounds.session(node).load();
            if in_flight > IN_FLIGHT_MAX || pending > PENDING_MAX {
                let text = format!("client {:?}: {in_flight} {pending} at {node:?}", self.name);
                context.checker.report_violation(Invariant::Resources, text);
            }
        }
        self.deliver(context);
    }

    /// Delivers the outcomes of decided rounds. Their threads wake up a little later.
    fn deliver(&mut self, context: &mut Context) {
        while let Some((worker, result)) = self.rounds.poll() {
            let delay = context.network.scheduling_delay(&mut context.random);
            self.workers[worker].hand(result, delay);
            let (client, life) = self.name;
            context.queue.after(
                delay,
                Event::Work {
                    client,
                    life,
                    worker,
                },
            );
        }
    }
}
