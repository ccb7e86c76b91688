//! Readers of one lock: threads of one client and processes, beside as many threads and processes
//! that take a plain lock each. A reader that has to wait ends the program: no writer is there.
//! Then a writer comes, among readers in processes.

mod writer;

use super::Context;
use crate::lane::{Lane, Setup, take_turns};
use crate::peers::Peer;
use crate::report::{Figure, Findings, Table, Wanted, seconds};
use crate::traffic::{Commands, Monitor, Usage};
use crate::work::{Kind, Slice};

const THREADS: usize = 32;
const PROCESSES: usize = 8;

/// What readers should reach of the pairs/s of plain locks.
const WANTED: f64 = 0.8;

/// What servers did per pair and node.
struct Costs {
    name: String,
    sent: f64,
    inner: f64,
    /// In all.
    joins: u64,
    received: f64,
    evalsha: f64,
    eval: f64,
}

pub fn run(context: &Context) -> Vec<Findings> {
    let lanes = |threads, processes| {
        let urls = context.servers.urls();
        let who = if threads > 1 {
            format!("{threads} threads")
        } else {
            format!("{processes} processes")
        };
        [
            (Peer::RedlatchReader, Kind::Readers, "readers of one lock"),
            (Peer::Redlatch, Kind::Free, "a plain lock each"),
        ]
        .map(|(peer, kind, what)| {
            let servers = &context.servers;
            let setup = Setup { servers, urls: &urls, kind, threads, processes };
            let label = format!("readers{threads}x{processes}");
            setup.lane(peer, &label).named(&format!("{who}, {what}"))
        })
    };
    let mut lanes: Vec<_> = lanes(THREADS, 1).into_iter().chain(lanes(1, PROCESSES)).collect();
    take_turns(&mut lanes, context.turns, context.slice, &context.servers);
    let ratio = |readers: &Lane, plain: &Lane, what: &str| Figure {
        what: format!("readers, {what}: of the pairs/s of plain locks"),
        measured: readers.times(plain, Slice::rate),
        wanted: Wanted::AtLeast(WANTED),
    };
    let mut findings = vec![Findings {
        title: context.title("readers"),
        about: format!(
            "Each acquires and releases as fast as it can: {THREADS} threads of one client or \
             {PROCESSES} processes, as readers of one lock or with a plain lock each. No reader \
             waited, or this would have ended here."
        ),
        table: Table::of_lanes(&lanes),
        figures: vec![
            ratio(&lanes[0], &lanes[1], "32 threads"),
            ratio(&lanes[2], &lanes[3], "8 processes"),
        ],
        groups: Vec::new(),
    }];
    let costs: Vec<_> = lanes.iter_mut().map(|lane| costs(context, lane)).collect();
    drop(lanes);
    findings.push(costs_findings(context, &costs));
    findings.push(writer::run(context));
    findings
}

/// Measures a slice with the servers' counters, and another one with MONITOR.
fn costs(context: &Context, lane: &mut Lane) -> Costs {
    let servers = &context.servers;
    let pairs = |lane: &mut Lane| {
        lane.run(context.slice, servers);
        lane.slices.pop().map_or(0.0, |slice| slice.pairs as f64)
    };
    let before = Usage::of(servers);
    let counted = pairs(lane);
    let usage = Usage::since(servers, &before);
    let monitor = Monitor::start(servers.addresses()[context.nodes - 1]);
    let watched = pairs(lane);
    let Commands { sent, inner, joins } = monitor.stop();
    Costs {
        name: lane.name.clone(),
        sent: sent as f64 / watched,
        inner: inner as f64 / watched,
        joins,
        received: usage.received / counted / context.nodes as f64,
        evalsha: usage.evalsha.mean(),
        eval: usage.eval.mean(),
    }
}

fn costs_findings(context: &Context, all: &[Costs]) -> Findings {
    let mut table = Table::new(&[
        "library",
        "sent",
        "from scripts",
        "entries of the queue",
        "bytes",
        "EVALSHA",
        "EVAL",
    ]);
    for costs in all {
        table.row([
            costs.name.clone(),
            format!("{:.2}", costs.sent),
            format!("{:.2}", costs.inner),
            costs.joins.to_string(),
            format!("{:.0}", costs.received),
            seconds(costs.evalsha),
            seconds(costs.eval),
        ]);
    }
    let readers = all.iter().step_by(2);
    Findings {
        title: context.title("readers: commands"),
        about: "Per pair and node: `sent`, commands that clients sent, `from scripts`, calls that \
                scripts made (both counted with MONITOR on one node), and `bytes` that the node \
                received. `entries of the queue`: in all. `EVALSHA` and `EVAL`: the servers' own \
                time for a script named by its digest, which takes the lock of a reader, and for \
                one sent by its source, which releases it."
            .to_owned(),
        table,
        figures: vec![Figure {
            what: "readers that entered the queue while no writer did".to_owned(),
            measured: readers.map(|costs| costs.joins as f64).sum(),
            wanted: Wanted::AtMost(0.0),
        }],
        groups: Vec::new(),
    }
}
