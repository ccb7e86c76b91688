//! Lanes: libraries that are measured side by side. Slices alternate between the lanes, so other
//! load on the machine affects all of them alike. Ratios are those of slices that followed one
//! another.

use crate::peers::find;
use crate::scenarios::{Context, On, Plan, Row};
use crate::slice::{Durations, Slice};
use crate::traffic::{Commands, Monitor, Usage};
use crate::work::{Kind, Order, nanos, now};
use crate::worker::{Job, KAZOO, Worker, kazoo_is_installed};
use std::path::Path;
use std::time::Duration;

/// From an order to its start: workers have read it by then and have started their threads.
const LEAD: Duration = Duration::from_millis(20);

/// After a node was frozen, this passes until all is healthy again.
const RECOVERY: Duration = Duration::from_millis(300);

/// One row of a table: a peer in one or several processes, and its measurements.
pub struct Lane {
    pub name: String,
    pub bar: &'static str,
    pub plan: Plan,
    /// Whether it takes locks on Redis: they must be gone when they are released.
    takes_locks: bool,
    kind: Kind,
    /// How many servers of Redis there are.
    pub nodes: f64,
    /// What its keys begin with.
    pub prefix: String,
    workers: Vec<Worker>,
    pub slices: Vec<Slice>,
    /// The same with all servers running, where some are frozen.
    pub healthy: Vec<Slice>,
    /// What one node did for the locks of a slice that is not timed, and how many these were.
    pub watched: Option<(Commands, u64)>,
    /// All that was done, measured or not: locks or changes, and changes that may have been made.
    pub done: u64,
    pub unknown: u64,
}

/// Measures the lanes of a plan, as far as what they need is installed.
pub fn measure(context: &Context, plan: &Plan) -> Vec<Lane> {
    let mut lanes = Vec::new();
    let can_run = |row: &&Row| row.peer != KAZOO || kazoo_is_installed();
    for row in plan.rows.iter().filter(can_run) {
        lanes.extend(Lane::start(context, plan, row, None));
        if row.peer.starts_with("redlatch") {
            let build = context.options.other_build.as_deref();
            lanes.extend(build.and_then(|build| Lane::start(context, plan, row, Some(build))));
        }
    }
    for lane in &mut lanes {
        // Caches, and connections that are made with the first lock.
        lane.run(context, Duration::ZERO, RECOVERY / 3);
    }
    for turn in 0..plan.turns {
        if plan.frozen > 0 {
            before_frost(context, plan, &mut lanes);
        }
        // Not always in the same order: the order matters to caches.
        for index in 0..lanes.len() {
            let index = (turn + index) % lanes.len();
            if !plan.settling.is_zero() {
                // Right before: a client that rests looks for frozen servers again.
                lanes[index].run(context, Duration::ZERO, plan.settling);
            }
            let slice = lanes[index].run(context, plan.warm_up, plan.slice);
            lanes[index].slices.push(slice);
        }
        context.servers.resume_all();
    }
    for lane in lanes.iter_mut().filter(|_| plan.is_watched) {
        lane.watch(context);
    }
    lanes
}

/// Measures with all servers running, and freezes some of them.
fn before_frost(context: &Context, plan: &Plan, lanes: &mut [Lane]) {
    for lane in &mut *lanes {
        lane.run(context, Duration::ZERO, RECOVERY);
        let slice = lane.run(context, Duration::ZERO, plan.slice / 3);
        lane.healthy.push(slice);
    }
    context.servers.freeze_last(plan.frozen);
}

impl Lane {
    /// Starts a lane and lets it connect, if its servers are there.
    fn start(context: &Context, plan: &Plan, row: &Row, build: Option<&Path>) -> Option<Self> {
        let peer = find(row.peer);
        let job = Job {
            peer: peer.word,
            clients: plan.threads,
            urls: context.urls(row.on)?,
            authority: context.servers.authority(),
            build: build.map(Path::to_owned),
        };
        let (suffix, bar) = if build.is_some() {
            (", the other build", "")
        } else {
            ("", row.bar)
        };
        Some(Self {
            name: format!("{}{}{suffix}", row.name, row.on.suffix()),
            bar,
            plan: *plan,
            takes_locks: peer.is_lock && !matches!(row.on, On::Etcd | On::ZooKeeper),
            kind: row.kind.unwrap_or(plan.kind),
            nodes: context.servers.addresses().len() as f64,
            prefix: format!("versus-{}:{}x{}", peer.word, plan.threads, plan.processes),
            workers: Worker::start_all(plan.processes, &job),
            slices: Vec::new(),
            healthy: Vec::new(),
            watched: None,
            done: 0,
            unknown: 0,
        })
    }

    pub fn clients(&self) -> usize {
        self.plan.processes * self.plan.threads
    }

    /// Runs for this long, after so long a time that does not count, and checks that the servers
    /// have forgotten the locks.
    fn run(&mut self, context: &Context, warm_up: Duration, length: Duration) -> Slice {
        let servers = &context.servers;
        // A frozen server does not say what it does.
        let usage = || {
            if servers.are_frozen() {
                Usage::default()
            } else {
                Usage::of(servers)
            }
        };
        let before = usage();
        let servers_cpu = servers.cpu_time();
        let slice = self.work(warm_up, length);
        let servers_cpu = servers.cpu_time() - servers_cpu;
        let usage = usage().since(before);
        assert!(slice.pairs > 0, "{} took no lock at all", self.name);
        // Where servers are frozen in turns, a client that has given up one has keys there.
        if self.takes_locks && (self.plan.frozen == 0 || servers.are_frozen()) {
            servers.expect_gone(&self.prefix);
        }
        Slice {
            servers_cpu,
            usage,
            ..slice
        }
    }

    fn work(&mut self, warm_up: Duration, length: Duration) -> Slice {
        let start = now() + nanos(LEAD);
        let opened = start + nanos(warm_up);
        let end = start + nanos(warm_up + length);
        for (index, worker) in self.workers.iter_mut().enumerate() {
            let prefix = match self.kind {
                Kind::Free => format!("{}:{index}", self.prefix),
                Kind::Contended | Kind::Together => self.prefix.clone(),
            };
            let kind = self.kind;
            let hold = nanos(self.plan.hold);
            let every = 0;
            let locks_max = usize::MAX;
            worker.begin(&Order {
                kind,
                prefix,
                start,
                end,
                hold,
                every,
                locks_max,
            });
        }
        let answers: Vec<_> = self.workers.iter_mut().map(Worker::finish).collect();
        let cpu = Duration::from_nanos(answers.iter().map(|answer| answer.cpu).sum());
        let instructions = answers.iter().map(|answer| answer.instructions).sum();
        let clients: Vec<_> = answers
            .into_iter()
            .flat_map(|answer| answer.clients)
            .collect();
        let records = clients.iter().flatten();
        self.done += records.clone().count() as u64;
        // Without a warm-up, the last lock of each client counts whole: a slice beside frozen
        // servers may have room for two or three only.
        let last = records.map(|record| record.released).max().unwrap_or(end);
        let closed = if warm_up.is_zero() { last + 1 } else { end };
        let slice = Slice::new(&clients, self.kind, opened..closed);
        self.unknown += slice.unknown;
        Slice {
            cpu,
            instructions,
            ..slice
        }
    }

    /// Has one of the servers say what it does, which makes it slower.
    fn watch(&mut self, context: &Context) {
        if self.takes_locks {
            let before = self.done;
            let monitor = Monitor::start(context.servers.last_address());
            self.work(Duration::ZERO, self.plan.slice / 4);
            self.watched = Some((monitor.stop(), self.done - before));
        }
    }

    /// The median over all slices.
    pub fn median(&self, figure: impl Fn(&Slice) -> f64) -> f64 {
        median(self.slices.iter().map(figure).collect())
    }

    /// The share of all waits in all slices that were at most so long.
    pub fn wait(&self, share: f64) -> Duration {
        quantile(&self.slices, |slice| &slice.waits, share)
    }

    /// The same for the time that the lock is free between two holders.
    pub fn free(&self, share: f64) -> Duration {
        quantile(&self.slices, |slice| &slice.free, share)
    }

    /// The median of how many times `other`'s figure this one's is, slice by slice.
    pub fn times(&self, other: &Self, figure: impl Fn(&Slice) -> f64) -> f64 {
        times(&self.slices, &other.slices, figure)
    }
}

pub fn quantile(slices: &[Slice], of: fn(&Slice) -> &Durations, share: f64) -> Duration {
    Durations::together(slices.iter().map(of)).quantile(share)
}

pub fn times(slices: &[Slice], others: &[Slice], figure: impl Fn(&Slice) -> f64) -> f64 {
    median(
        slices
            .iter()
            .zip(others)
            .map(|(own, other)| figure(own) / figure(other))
            .collect(),
    )
}

pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => f64::NAN,
        count if count % 2 == 1 => values[count / 2],
        count => f64::midpoint(values[count / 2 - 1], values[count / 2]),
    }
}
