//! The thread that goes on with started calls.

use super::dropped_calls::DroppedCalls;
use super::job_queue::JobQueue;
use super::mailbox::Wish;
use super::{Job, Line, MakeRequest, Room, StartedCall, UNDER_WAY_MAX};
use crate::clock::{self, Time};
use crate::engine::Request;
use crate::net::{Order, Orders};
use crate::owner_process::OwnerProcess;
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::mem;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Context;
use std::time::Duration;

/// For how long the connections are told to wake this thread at most. An alarm that nobody needs
/// any more, because its call was cancelled, keeps the thread among those that may lead until then.
const ALARM_MAX: Duration = Duration::from_secs(1);

/// For how long the thread waits for its orders at most while it is given calls. Not at all would
/// be too short for the event loop to write and read.
const TURN: Duration = Duration::from_micros(100);

/// What an order of the batch is for.
enum Purpose {
    /// Counts towards [`UNDER_WAY_MAX`].
    Round(u64),
    /// Does not.
    Other(u64),
    Alarm,
    /// See [`TURN`].
    Turn,
}

/// What has no room yet.
enum InLine {
    /// A call, for an attempt.
    Attempt,
    /// A round for which no room was waited for before: it renews a place, or extends a lock.
    Request(Request),
    Unmade(MakeRequest),
}

pub(super) struct DriverLoop {
    jobs: Arc<JobQueue<Job>>,
    /// Empty but while jobs are taken.
    taken: Vec<Job>,
    /// If calls have orders.
    orders: Option<Orders>,
    owner_process: Arc<OwnerProcess>,
    dropped: Arc<DroppedCalls>,
    calls: HashMap<u64, StartedCall>,
    /// The calls to poll, in this order.
    ready: VecDeque<u64>,
    /// By the numbers of their orders.
    under_way: HashMap<usize, Purpose>,
    rounds: Line<(u64, InLine)>,
    /// The calls with an alarm.
    alarms: BTreeSet<(Time, u64)>,
    /// When the first order for an alarm ends.
    alarm_ordered: Option<Time>,
    /// Have calls left messages to whoever leads next?
    has_message: bool,
    is_over: bool,
}

impl DriverLoop {
    pub(super) fn new(
        jobs: Arc<JobQueue<Job>>,
        orders: Option<Orders>,
        owner_process: &Arc<OwnerProcess>,
        dropped: &Arc<DroppedCalls>,
    ) -> Self {
        Self {
            jobs,
            taken: Vec::new(),
            orders,
            owner_process: Arc::clone(owner_process),
            dropped: Arc::clone(dropped),
            calls: HashMap::new(),
            ready: VecDeque::new(),
            under_way: HashMap::new(),
            rounds: Line::new(UNDER_WAY_MAX),
            alarms: BTreeSet::new(),
            alarm_ordered: None,
            has_message: false,
            is_over: false,
        }
    }

    /// Runs until the client has ended.
    pub(super) fn run(mut self) {
        loop {
            // A call catches its own panics: this is one of the event loop, which only a bug of
            // this crate can cause, and after which no request can be sent any more.
            match catch_unwind(AssertUnwindSafe(|| self.run_once())) {
                Ok(ControlFlow::Continue(())) => {}
                Ok(ControlFlow::Break(End::Client)) => return,
                // In a forked child, nothing that belongs to the parent is dropped.
                Ok(ControlFlow::Break(End::Forked)) => return mem::forget(self),
                Err(_) => return self.fail(),
            }
        }
    }

    fn run_once(&mut self) -> ControlFlow<End> {
        self.handle_jobs();
        self.wake_due();
        while let Some(number) = self.ready.pop_front() {
            self.poll(number)?;
        }
        self.begin_rounds();
        if !self.ready.is_empty() {
            return ControlFlow::Continue(());
        }
        let has_message = mem::take(&mut self.has_message);
        if !self.under_way.is_empty() {
            // A thread that waits for orders has what was left to the leader written.
            self.order_alarm();
            self.collect();
            return ControlFlow::Continue(());
        }
        if let Some(orders) = self.orders.as_ref().filter(|_| has_message) {
            orders.flush();
        }
        self.sleep()
    }

    fn handle_jobs(&mut self) {
        let mut taken = mem::take(&mut self.taken);
        self.jobs.take(&mut taken);
        for job in taken.drain(..) {
            self.handle(job);
        }
        self.taken = taken;
    }

    fn handle(&mut self, job: Job) {
        match job {
            Job::Begin(call) => {
                // It may have been woken before it came here.
                self.ready.push_back(call.number);
                self.calls.insert(call.number, call);
            }
            Job::Poll(number) => self.ready.push_back(number),
            Job::Cancel(number) => {
                let Some(call) = self.calls.get(&number) else {
                    // It had ended.
                    return self.dropped.remove();
                };
                call.mailbox.is_dropped.store(true, Ordering::SeqCst);
                self.ready.push_back(number);
            }
            Job::End => self.is_over = true,
        }
    }

    /// Calls whose alarm has come are polled.
    fn wake_due(&mut self) {
        let Some((first, _)) = self.alarms.first() else {
            return;
        };
        let now = clock::now();
        if now < *first {
            return;
        }
        let later = self
            .alarms
            .split_off(&(now.after(Duration::from_nanos(1)), 0));
        let due = mem::replace(&mut self.alarms, later);
        self.ready.extend(due.into_iter().map(|(_, number)| number));
    }

    /// Polls a call, and begins what it waits for. Breaks if its callback has forked, in the child.
    fn poll(&mut self, number: u64) -> ControlFlow<End> {
        let Some(mut call) = self.calls.remove(&number) else {
            return ControlFlow::Continue(());
        };
        if let Some(alarm) = call.alarm.take() {
            self.alarms.remove(&(alarm, number));
        }
        let waker = call.waker.clone();
        let polled = call.task.as_mut().poll(&mut Context::from_waker(&waker));
        self.has_message |= call.mailbox.take_message();
        // A callback of the listener may have forked, or, at the end of the call, a waker.
        let is_forked = if polled.is_ready() {
            self.owner_process.is_forked()
        } else {
            self.owner_process.is_known_forked()
        };
        if is_forked {
            mem::forget(call);
            return ControlFlow::Break(End::Forked);
        }
        if polled.is_ready() {
            self.set_room(&mut call, Room::None);
            let is_dropped = call.mailbox.is_dropped.load(Ordering::SeqCst);
            // It keeps the client: that is left to whoever waits for its end.
            drop(call);
            if is_dropped {
                self.dropped.remove();
            }
            return ControlFlow::Continue(());
        }
        match call.mailbox.take_wish() {
            // It waits for what is under way, or in line.
            None => {}
            Some(Wish::Room { until, is_awaited }) => {
                self.await_room(&mut call, is_awaited);
                self.set_alarm(&mut call, until);
            }
            // A removal has room of its own at the nodes, and ends what others wait for.
            Some(Wish::Order(Order::Round(request)))
                if call.room == Room::None && !request.is_removal() =>
            {
                self.rounds.push_awaited((number, InLine::Request(request)));
            }
            Some(Wish::Request(make)) => self.rounds.push((number, InLine::Unmade(make))),
            Some(Wish::Order(order)) => {
                if matches!(order, Order::Wait(_)) {
                    self.set_room(&mut call, Room::None);
                }
                self.begin(order, Purpose::Other(number));
            }
            Some(Wish::Sleep(until)) => {
                self.set_room(&mut call, Room::None);
                self.set_alarm(&mut call, until);
            }
        }
        self.calls.insert(number, call);
        ControlFlow::Continue(())
    }

    fn set_alarm(&mut self, call: &mut StartedCall, until: Option<Time>) {
        call.alarm = until;
        self.alarms.extend(until.map(|until| (until, call.number)));
    }

    fn set_room(&mut self, call: &mut StartedCall, room: Room) {
        let before = mem::replace(&mut call.room, room);
        if before == Room::Given {
            self.rounds.end();
        }
    }

    fn await_room(&mut self, call: &mut StartedCall, is_awaited: bool) {
        if call.room == Room::Awaited {
            return;
        }
        self.set_room(call, Room::Awaited);
        let attempt = (call.number, InLine::Attempt);
        if is_awaited {
            self.rounds.push_awaited(attempt);
        } else {
            self.rounds.push(attempt);
        }
    }

    /// Begins what stands in line, as much as there is room for.
    fn begin_rounds(&mut self) {
        while let Some((call, round)) = self.rounds.begin() {
            match round {
                InLine::Attempt => self.give_room(call),
                InLine::Request(request) => self.begin_round(call, request),
                InLine::Unmade(make) => {
                    let mut is_made = false;
                    make(&mut |request| {
                        is_made = true;
                        self.begin_round(call, request);
                    });
                    if !is_made {
                        self.rounds.end();
                        self.ready.push_back(call);
                    }
                }
            }
        }
    }

    /// Gives a call the room that was taken for it, unless it has left the line.
    fn give_room(&mut self, number: u64) {
        let call = self.calls.get_mut(&number);
        match call.filter(|call| call.room == Room::Awaited) {
            Some(call) => {
                call.room = Room::Given;
                call.mailbox.give_room();
                self.ready.push_back(number);
            }
            None => self.rounds.end(),
        }
    }

    fn begin_round(&mut self, call: u64, request: Request) {
        self.begin(Order::Round(request), Purpose::Round(call));
    }

    fn begin(&mut self, order: Order, purpose: Purpose) {
        let orders = self
            .orders
            .as_mut()
            .expect("calls have orders only where they are kept here");
        let order_number = orders.begin(order);
        self.under_way.insert(order_number, purpose);
    }

    /// Has the connections wake this thread for the next alarm.
    fn order_alarm(&mut self) {
        let Some((first, _)) = self.alarms.first() else {
            return;
        };
        let at = (*first).min(clock::now().after(ALARM_MAX));
        if self.alarm_ordered.is_some_and(|ordered| ordered <= at) {
            return;
        }
        self.begin(Order::Until(at), Purpose::Alarm);
        self.alarm_ordered = Some(at);
    }

    /// Waits until something has ended, or until there is a job.
    fn collect(&mut self) {
        if self.jobs.begin_collecting() {
            // However many calls begin, the event loop writes and reads for those that have begun.
            let end = clock::now().after(TURN);
            self.begin(Order::Until(end), Purpose::Turn);
        }
        let mut answered = Vec::new();
        if let Some(orders) = &mut self.orders {
            orders.collect(|order, ended| answered.push((order, ended)));
        }
        for (order, ended) in answered {
            let call = match self.under_way.remove(&order) {
                Some(Purpose::Round(call)) => {
                    self.rounds.end();
                    call
                }
                Some(Purpose::Other(call)) => call,
                Some(Purpose::Alarm) => {
                    self.alarm_ordered = None;
                    continue;
                }
                Some(Purpose::Turn) | None => continue,
            };
            if let Some(started) = self.calls.get_mut(&call) {
                started.mailbox.put(ended);
                self.ready.push_back(call);
            }
        }
    }

    /// Sleeps until there is a job, or an alarm. Nothing is under way.
    fn sleep(&mut self) -> ControlFlow<End> {
        if self.is_over && self.calls.is_empty() {
            return ControlFlow::Break(End::Client);
        }
        let now = clock::now();
        let alarm = self.alarms.first().map(|(at, _)| at.since(now));
        self.jobs.sleep(alarm);
        ControlFlow::Continue(())
    }

    /// Drops all calls, now and from now on: each says that to whoever waits for it.
    fn fail(mut self) {
        self.calls.clear();
        while !self.is_over {
            self.jobs.sleep(None);
            self.jobs.take(&mut self.taken);
            self.is_over = self.taken.iter().any(|job| matches!(job, Job::End));
            self.taken.clear();
        }
    }
}

/// Why the thread ends.
enum End {
    Client,
    /// This is a forked child.
    Forked,
}
