//! Threads that share one client, each with a lock of its own.

use super::Context;
use crate::figures::{Group, Unit};
use crate::lane::{Lane, Setup, fastest, take_turns};
use crate::peers::Peer;
use crate::report::{Figure, Findings, Table, Wanted};
use crate::work::{Kind, Slice};

const PEERS: [Peer; 6] = [
    Peer::Redlatch,
    Peer::RedlatchDrop,
    Peer::RslockThreads,
    Peer::Rslock,
    Peer::RslockSingle,
    Peer::Ceiling,
];

pub fn run(context: &Context) -> Vec<Findings> {
    vec![run_with(context, 32)]
}

fn run_with(context: &Context, threads: usize) -> Findings {
    let servers = &context.servers;
    let urls = servers.urls();
    let setup = Setup { servers, urls: &urls, kind: Kind::Free, threads, processes: 1 };
    let label = format!("shared{threads}");
    let mut lanes: Vec<_> = PEERS.iter().map(|&peer| setup.lane(peer, &label)).collect();
    take_turns(&mut lanes, context.turns, context.slice, servers);

    Findings {
        title: context.title(&format!("shared, threads: {threads}")),
        about: format!(
            "Threads: {threads}. They share one client; each acquires and releases a free lock of \
             its own. rslock is shown with as many threads in `block_on`, which is how a program \
             of blocking threads can use it, and with as many tasks, which is how an async program \
             does. The ceiling is one thread that only feeds the servers."
        ),
        table: Table::of_lanes(&lanes),
        figures: figures(threads, context.nodes, &lanes),
        groups: if threads == 32 { vec![group(threads, &lanes)] } else { Vec::new() },
    }
}

fn group(threads: usize, lanes: &[Lane]) -> Group {
    let [release, dropped, blocking, multi, single, ..] = lanes else {
        unreachable!("there is a lane for each peer")
    };
    let shown = [
        ("redlatch, release()", release),
        ("redlatch, drop", dropped),
        ("rslock 0.10, tasks", fastest(&[multi, single])),
        ("rslock 0.10, threads", blocking),
    ];
    let rates = shown.map(|(name, lane)| (name, lane.median(Slice::rate)));
    Group::new(&format!("{threads} threads, a free lock each"), Unit::Pairs, rates)
}

fn figures(threads: usize, nodes: usize, lanes: &[Lane]) -> Vec<Figure> {
    let [release, dropped, blocking, multi, single, ceiling, ..] = lanes else {
        unreachable!("there is a lane for each peer")
    };
    let tasks = fastest(&[multi, single]);
    let figure = |what: &str, measured, wanted| Figure {
        what: format!("shared by {threads}, {what}"),
        measured,
        wanted,
    };
    let at_least = Wanted::AtLeast;
    let mut figures = vec![figure(
        "connections held",
        release.connections.max(dropped.connections) as f64,
        Wanted::AtMost(nodes as f64),
    )];
    if threads == 32 {
        for (rslock, how) in [(blocking, "in threads"), (tasks, "in tasks")] {
            let releases = release.times(rslock, Slice::rate);
            let drops = dropped.times(rslock, Slice::rate);
            let cpu = release
                .times(rslock, Slice::cpu_per_pair)
                .max(dropped.times(rslock, Slice::cpu_per_pair));
            let times = format!("times the pairs/s of rslock {how}");
            figures.push(figure(&format!("release(): {times}"), releases, at_least(3.5)));
            figures.push(figure(&format!("drop: {times}"), drops, at_least(5.0)));
            let share = format!("share of the CPU per pair of rslock {how}");
            figures.push(figure(&share, cpu, Wanted::AtMost(0.2)));
        }
    }
    if threads == 64 {
        let share = dropped.times(ceiling, Slice::rate);
        figures.push(figure("drop: share of the ceiling", share, at_least(0.6)));
    }
    figures
}
