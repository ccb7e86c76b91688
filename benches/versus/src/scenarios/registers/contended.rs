//! Eight processes change one register as fast as they can, beside those of etcd and ZooKeeper.

use super::super::Context;
use super::{Others, Storage};
use crate::lane::{Lane, Setup, median};
use crate::peers::{Peer, registers};
use crate::report::{Figure, Findings, Table, Wanted, rate, time};
use crate::servers::Servers;
use crate::work::{Kind, Slice};
use redlatch::register::Register;
use std::time::Duration;

const CLIENTS: usize = 8;

/// Longer than those of one client, so that each client has its turn often: how many changes it
/// makes in one is left to chance, which differs by less the more turns there are.
const SLICE: Duration = Duration::from_secs(10);
const SLICE_QUICK: Duration = Duration::from_secs(1);

pub fn run(context: &Context, servers: &Servers, storage: Storage, others: &Others) -> Findings {
    let urls = servers.urls();
    let setup = Setup { servers, urls: &urls, kind: Kind::Readers, threads: 1, processes: CLIENTS };
    let mut lanes = vec![setup.lane(Peer::RegisterChange, "contended").named("register, change")];
    for (peer, url) in others.peers(&[Peer::EtcdChange]) {
        lanes.push(Setup { urls: &[url], ..setup }.lane(peer, "contended"));
    }
    let counter = Counter::of(&urls, &lanes[0]);
    for _ in 0..context.turns {
        for (index, lane) in lanes.iter_mut().enumerate() {
            let before = counter.read();
            lane.run(if context.is_quick { SLICE_QUICK } else { SLICE }, servers);
            if index == 0 {
                let slice = lane.slices.last().expect("it has just run");
                let made = slice.pairs..=slice.pairs + slice.unknown;
                assert!(made.contains(&(counter.read() - before)), "each change is made once");
            }
        }
    }
    let fairness = lanes[0].median(Slice::fairness);
    Findings {
        title: storage.title(&format!("{CLIENTS} processes on one value")),
        about: "Each process, with a client of its own, changes the same value again and again, \
                without a pause. etcd and ZooKeeper compare and set until that succeeds. \
                `fairness` is the slowest process's changes as a share of the fastest one's. \
                `unknown` are calls that ended with an error which leaves open whether the change \
                was made; another change follows. After each part the register's own count must \
                be that of the changes that were made, and of none or some of the unknown ones."
            .to_owned(),
        table: table(&lanes),
        figures: vec![Figure {
            what: format!("{CLIENTS} processes: the slowest one's changes of the fastest one's"),
            measured: fairness,
            wanted: Wanted::AtLeast(0.9),
        }],
        groups: Vec::new(),
    }
}

/// How often the value of a lane was changed.
struct Counter(Register);

impl Counter {
    fn of(urls: &[String], lane: &Lane) -> Self {
        let client = registers::client(urls);
        Self(client.register(format!("{}:same", lane.prefix)).expect("the name can be used"))
    }

    fn read(&self) -> u64 {
        let value = self.0.read().expect("a majority of the servers answers");
        value.as_ref().map_or(0, registers::changes)
    }
}

fn table(lanes: &[Lane]) -> Table {
    let mut table = Table::new(&[
        "operation",
        "changes/s",
        "of the register's",
        "p50",
        "p99",
        "longest",
        "fairness",
        "fairness, worst part",
        "unknown of 1000",
    ]);
    for lane in lanes {
        let fairness: Vec<_> = lane.slices.iter().map(Slice::fairness).collect();
        let sum = |count: fn(&Slice) -> u64| lane.slices.iter().map(count).sum::<u64>();
        let (unknown, changes) = (sum(|slice| slice.unknown), sum(|slice| slice.pairs));
        let worst = fairness.iter().copied().fold(f64::INFINITY, f64::min);
        table.row([
            lane.name.clone(),
            rate(lane.median(Slice::rate)),
            format!("{:.2}", lane.times(&lanes[0], Slice::rate)),
            time(lane.quantile(0.5)),
            time(lane.quantile(0.99)),
            time(lane.quantile(1.0)),
            format!("{:.2}", median(fairness)),
            format!("{worst:.2}"),
            format!("{:.1}", 1e3 * unknown as f64 / changes.max(1) as f64),
        ]);
    }
    table
}
