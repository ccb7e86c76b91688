//! Lanes: libraries that are measured side by side. Slices alternate between the lanes, so other
//! load on the machine affects all of them alike. Ratios are those of slices that followed one
//! another.

use crate::histogram::Histogram;
use crate::peers::Peer;
use crate::servers::Servers;
use crate::work::{Kind, Slice};
use crate::worker::{Job, Worker};
use std::path::Path;
use std::thread;
use std::time::Duration;

/// One row of a table: a peer in one or several processes, and its measurements.
pub struct Lane {
    pub name: String,
    /// What its keys begin with.
    pub prefix: String,
    workers: Vec<Worker>,
    pub slices: Vec<Slice>,
    /// Connections held to all servers together, after the first use.
    pub connections: i64,
}

/// The settings of a lane.
#[derive(Clone, Copy)]
pub struct Setup<'a> {
    pub servers: &'a Servers,
    pub urls: &'a [String],
    pub kind: Kind,
    pub threads: usize,
    pub processes: usize,
}

impl Setup<'_> {
    /// Starts a lane and lets it connect.
    pub fn lane(&self, peer: Peer, label: &str) -> Lane {
        self.lane_of_build(None, peer, label)
    }

    /// The same with another build of this program.
    pub fn lane_of_build(&self, program: Option<&Path>, peer: Peer, label: &str) -> Lane {
        let before = self.servers.connections();
        let prefix = format!("versus-{}:{label}", peer.word());
        let marker = format!("{}-{label}.marker", peer.word());
        let job = Job {
            peer,
            kind: self.kind,
            threads: self.threads,
            prefix: prefix.clone(),
            marker: self.servers.directory().join(marker),
            urls: self.urls.to_vec(),
            program: program.map(Path::to_owned),
        };
        let start = |index| {
            // Processes whose locks are always free use locks of their own.
            let is_shared = self.kind != Kind::Free || self.processes == 1;
            let prefix = if is_shared { prefix.clone() } else { format!("{prefix}:{index}") };
            Worker::start(&Job { prefix, ..job.clone() })
        };
        let workers = (0..self.processes).map(start).collect();
        let name = peer.name().to_owned();
        let mut lane = Lane { name, prefix, workers, slices: Vec::new(), connections: 0 };
        lane.run(Duration::from_millis(100), self.servers);
        // Connections for a single command are closed in a moment.
        thread::sleep(Duration::from_millis(30));
        lane.slices.clear();
        lane.connections = self.servers.connections() - before;
        lane
    }
}

impl Lane {
    /// Measures for this long.
    pub fn run(&mut self, duration: Duration, servers: &Servers) {
        let servers_cpu = servers.cpu_time();
        self.workers.iter_mut().for_each(|worker| worker.begin(duration));
        let slices: Vec<_> = self.workers.iter_mut().map(Worker::finish).collect();
        let mut slice = Slice::together(&slices);
        slice.servers_cpu = servers.cpu_time() - servers_cpu;
        assert!(slice.pairs > 0, "{} took no lock at all", self.name);
        self.slices.push(slice);
    }

    /// Panics unless the released locks are gone from the first `nodes` servers.
    pub fn expect_gone(&self, servers: &Servers, nodes: usize) {
        servers.expect_gone(&self.prefix, nodes);
    }

    pub fn named(mut self, name: &str) -> Self {
        name.clone_into(&mut self.name);
        self
    }

    pub fn peak_memory(&self) -> u64 {
        self.workers.iter().map(Worker::peak_memory).sum()
    }

    /// The median over all slices.
    pub fn median(&self, figure: impl Fn(&Slice) -> f64) -> f64 {
        median(self.slices.iter().map(figure).collect())
    }

    pub fn quantile(&self, share: f64) -> Duration {
        let mut all = Histogram::new();
        self.slices.iter().for_each(|slice| all.add(&slice.acquire));
        all.quantile(share)
    }

    /// The figure as a multiple of `other`'s, slice by slice.
    pub fn ratios(&self, other: &Self, figure: impl Fn(&Slice) -> f64) -> Vec<f64> {
        let both = self.slices.iter().zip(&other.slices);
        both.map(|(own, others)| figure(own) / figure(others)).collect()
    }

    /// The median of how many times `other`'s figure this one's is, slice by slice.
    pub fn times(&self, other: &Self, figure: impl Fn(&Slice) -> f64) -> f64 {
        median(self.ratios(other, figure))
    }
}

/// The lane with the most pairs per second.
pub fn fastest<'a>(lanes: &[&'a Lane]) -> &'a Lane {
    let by_rate = |one: &&&Lane, other: &&&Lane| {
        one.median(Slice::rate).total_cmp(&other.median(Slice::rate))
    };
    lanes.iter().max_by(by_rate).expect("there is a lane to choose")
}

/// Lets the lanes take turns until each has had `turns`.
pub fn take_turns(lanes: &mut [Lane], turns: usize, duration: Duration, servers: &Servers) {
    let nodes = servers.addresses().len();
    for turn in 0..turns {
        // Not always in the same order: the order matters to caches.
        let first = turn % lanes.len();
        for index in 0..lanes.len() {
            let index = (first + index) % lanes.len();
            let lane = &mut lanes[index];
            lane.run(duration, servers);
            lane.expect_gone(servers, nodes);
        }
    }
}

pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => f64::NAN,
        count if count % 2 == 1 => values[count / 2],
        count => f64::midpoint(values[count / 2 - 1], values[count / 2]),
    }
}
