//! Registers beside locks on the same three servers, and beside values of etcd and ZooKeeper.

mod contended;
mod frozen;
mod memory;

use super::Context;
use crate::ensemble::Ensemble;
use crate::lane::{Lane, Setup};
use crate::peers::{Peer, etcd, registers};
use crate::report::{Figure, Findings, Table, Wanted, rate, seconds, time};
use crate::servers::{Servers, eventually_until};
use crate::services::Service;
use crate::traffic::Usage;
use crate::work::{Kind, Slice};
use redlatch::LockClient;
use std::time::Duration;

/// How many servers there are, of each kind.
const NODES: usize = 3;

/// A group may take a moment to elect a leader.
const ELECTION_LIMIT: Duration = Duration::from_secs(30);

/// Those that are compared with the first one.
const PEERS: [Peer; 6] = [
    Peer::Redlatch,
    Peer::RegisterRead,
    Peer::RegisterChange,
    Peer::RegisterFirst,
    Peer::RegisterAlternate,
    Peer::Floor,
];

/// Where a scenario's servers keep what they answer.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Storage {
    /// Redis with `appendfsync always`; the other systems as they are.
    Disk,
    Memory,
}

/// The servers of other systems, as far as they are installed.
struct Others {
    etcd: Vec<Service>,
    ensemble: Option<Ensemble>,
}

/// A lane, and what the servers did for it while it was measured.
struct Measured {
    lane: Lane,
    usage: Option<Usage>,
}

pub fn run(context: &Context) -> Vec<Findings> {
    let disk = Servers::start_durable(NODES).expect("servers can be started");
    form(&disk, false);
    let others = Others::start(&disk);
    let mut findings = vec![alone(context, &disk, Storage::Disk, &others)];
    findings.push(contended::run(context, &disk, Storage::Disk, &others));
    findings.push(frozen::run(context, &disk, Storage::Disk));
    drop((disk, others));
    let memory = Servers::start(NODES).expect("servers can be started");
    form(&memory, true);
    let none = Others { etcd: Vec::new(), ensemble: None };
    findings.push(alone(context, &memory, Storage::Memory, &none));
    findings.push(contended::run(context, &memory, Storage::Memory, &none));
    findings.push(frozen::run(context, &memory, Storage::Memory));
    findings.push(memory::run(context, &memory));
    findings
}

/// Makes the servers a group, and returns a client of them.
fn form(servers: &Servers, in_memory: bool) -> LockClient {
    let client = registers::client(&servers.urls());
    client.registers().form(in_memory).expect("the servers become a group");
    client
}

impl Storage {
    fn title(self, what: &str) -> String {
        match self {
            Self::Disk => format!("registers, {what}, {NODES} nodes, each change on disk"),
            Self::Memory => format!("registers, {what}, {NODES} nodes in memory"),
        }
    }
}

impl Others {
    fn start(servers: &Servers) -> Self {
        let directory = servers.directory();
        let etcd = Service::etcd_cluster(directory, NODES).unwrap_or_else(|why| {
            println!("etcd is not measured: {why}\n");
            Vec::new()
        });
        let ensemble = Ensemble::start(directory, NODES);
        let ensemble = ensemble.inspect_err(|why| println!("ZooKeeper is not measured: {why}\n"));
        Self { etcd, ensemble: ensemble.ok() }
    }

    /// The leader of each, and who asks it for what.
    fn peers(&self, etcd_peers: &[Peer]) -> Vec<(Peer, String)> {
        let mut peers = Vec::new();
        if !self.etcd.is_empty() {
            let leader = || self.etcd.iter().find(|member| etcd::leads(&member.url));
            let has_leader = eventually_until(ELECTION_LIMIT, || leader().is_some());
            assert!(has_leader, "the cluster elects a leader");
            let url = leader().expect("it was found just now").url.clone();
            peers.extend(etcd_peers.iter().map(|&peer| (peer, url.clone())));
        }
        if let Some(ensemble) = &self.ensemble {
            peers.push((Peer::ZookeeperSet, ensemble.leader_url()));
        }
        peers
    }
}

/// One client after another, each alone.
fn alone(context: &Context, servers: &Servers, storage: Storage, others: &Others) -> Findings {
    let urls = servers.urls();
    let setup = Setup { servers, urls: &urls, kind: Kind::Free, threads: 1, processes: 1 };
    let mut all: Vec<_> = PEERS
        .map(|peer| Measured { lane: setup.lane(peer, "registers"), usage: Some(Usage::default()) })
        .into();
    for (peer, url) in others.peers(&[Peer::EtcdLocalRead, Peer::EtcdRead, Peer::EtcdChange]) {
        let lane = Setup { urls: &[url], ..setup }.lane(peer, "registers");
        all.push(Measured { lane, usage: None });
    }
    for turn in 0..2 * context.turns {
        for index in 0..all.len() {
            // Not always in the same order.
            let index = (turn + index) % all.len();
            all[index].run(context.slice, servers);
        }
    }
    let [lock, read, change, first, ..] = &all[..] else { unreachable!("these are there") };
    let figure = |what: &str, measured: &Measured, wanted| Figure {
        what: format!("{what}: times a lock's acquire (p50)"),
        measured: measured.lane.times(&lock.lane, Slice::p50),
        wanted: Wanted::AtMost(wanted),
    };
    let figures = vec![
        figure("read", read, 1.2),
        figure("change in one round", change, 1.5),
        figure("first change by a client", first, 2.2),
    ];
    Findings {
        title: storage.title("alone"),
        about: "One client at a time. A lock is acquired (which is timed) and released; a value \
                of 100 bytes is read or changed. `first change by a client`: it has no memory of \
                the register. `two in turns`: two clients change one register alternately, so \
                that what each remembers is out of date. Clients of etcd and ZooKeeper talk to \
                the leader; those of etcd by the JSON gateway, whose price is about that of the \
                read of one member. CPU is per operation, the servers' that of all nodes of Redis \
                together (a lock's with its release); scripts and bytes are those of one node."
            .to_owned(),
        table: table(&all),
        figures,
        groups: Vec::new(),
    }
}

impl Measured {
    fn run(&mut self, duration: Duration, servers: &Servers) {
        let before = self.usage.map(|_| Usage::of(servers));
        self.lane.run(duration, servers);
        if let (Some(all), Some(before)) = (&mut self.usage, before) {
            all.add(&Usage::since(servers, &before));
        }
    }
}

fn table(all: &[Measured]) -> Table {
    let mut table = Table::new(&[
        "operation",
        "ops/s",
        "p50",
        "p99",
        "of a lock's p50",
        "client's CPU",
        "servers' CPU",
        "scripts",
        "a script",
        "bytes sent",
        "bytes back",
    ]);
    for Measured { lane, usage } in all {
        let operations: u64 = lane.slices.iter().map(|slice| slice.pairs).sum();
        let per = |sum: f64| sum / (operations.max(1) as f64 * NODES as f64);
        let cell = |text: fn(&Usage, &dyn Fn(f64) -> f64) -> String| {
            usage.as_ref().map_or_else(|| "–".to_owned(), |usage| text(usage, &per))
        };
        let servers_cpu = usage.map(|_| seconds(lane.median(Slice::servers_cpu_per_pair)));
        table.row([
            lane.name.clone(),
            rate(lane.median(Slice::rate)),
            time(lane.quantile(0.5)),
            time(lane.quantile(0.99)),
            format!("{:.2}", lane.times(&all[0].lane, Slice::p50)),
            seconds(lane.median(Slice::cpu_per_pair)),
            servers_cpu.unwrap_or_else(|| "–".to_owned()),
            cell(|usage, per| format!("{:.2}", per(usage.scripts().count))),
            cell(|usage, _| seconds(usage.scripts().mean())),
            cell(|usage, per| format!("{:.0}", per(usage.received))),
            cell(|usage, per| format!("{:.0}", per(usage.replied))),
        ]);
    }
    table
}
