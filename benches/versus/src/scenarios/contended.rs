//! All threads or processes compete for one lock and hold it for a millisecond. A file lock of the
//! kernel shows that no two of them hold it at once.

use super::Context;
use crate::figures::{Group, Unit};
use crate::lane::{Lane, Setup, fastest, take_turns};
use crate::peers::Peer;
use crate::report::{Figure, Findings, Table, Wanted, memory, rate, seconds, time};
use crate::work::{Kind, Slice};
use std::time::Duration;

const MANY: usize = 8;

/// Long enough to show fairness: at a millisecond each, every thread acquires the lock some hundred
/// times.
const SLICE: Duration = Duration::from_millis(1500);

pub fn run(context: &Context) -> Vec<Findings> {
    let mut findings = vec![threads(context), processes(context)];
    if context.nodes >= 3 {
        findings.push(beside_frozen(context));
    }
    findings
}

fn threads(context: &Context) -> Findings {
    let peers =
        [Peer::Redlatch, Peer::RedlatchDrop, Peer::RslockThreads, Peer::Rslock, Peer::Local];
    let lanes = measure(context, &peers, MANY, 1);
    let [release, dropped, threads, multi, local] = &lanes[..] else {
        unreachable!("there is a lane for each peer")
    };
    let share = release.times(local, Slice::rate).min(dropped.times(local, Slice::rate));
    let fairness = release.median(Slice::fairness).min(dropped.median(Slice::fairness));
    let figure = |what: &str, measured, wanted| Figure {
        what: format!("contended by 8 threads, {what}"),
        measured,
        wanted: Wanted::AtLeast(wanted),
    };
    let rslock = fastest(&[threads, multi]);
    let shown = [("redlatch", release), ("rslock 0.10", rslock), ("a local mutex", local)];
    let rates = shown.map(|(name, lane)| (name, lane.median(Slice::rate)));
    let shares = shown.map(|(name, lane)| (name, lane.median(Slice::fairness)));
    let title = "8 threads, one lock held for 1 ms";
    let fair = format!("{title}: slowest thread's share of the fastest's");
    Findings {
        title: context.title("contended, 8 threads of one client"),
        about:
            "Eight threads (tasks, for rslock) of one client want the same lock and hold it for \
                1 ms each. No overlap was seen, or this would have ended here."
                .to_owned(),
        table: table(&lanes),
        figures: vec![
            figure("share of the local mutex's pairs/s", share, 0.9),
            figure("slowest thread's share of the fastest's", fairness, 0.9),
        ],
        groups: vec![Group::new(title, Unit::Pairs, rates), Group::new(&fair, Unit::Share, shares)],
    }
}

fn processes(context: &Context) -> Findings {
    let peers = [Peer::Redlatch, Peer::RedlatchDrop, Peer::RslockSingle];
    let lanes = measure(context, &peers, 1, MANY);
    let [release, _, tuned] = &lanes[..] else { unreachable!("there is a lane for each peer") };
    let title = format!("{MANY} processes, one lock held for 1 ms");
    let shown = [("redlatch", release), ("rslock 0.10", tuned)];
    let rates = shown.map(|(name, lane)| (name, lane.median(Slice::rate)));
    Findings {
        title: context.title("contended, 8 processes"),
        about:
            "Eight processes with one thread each want the same lock and hold it for 1 ms each. \
                CPU, connections and memory are those of all eight together."
                .to_owned(),
        table: table(&lanes),
        figures: Vec::new(),
        groups: vec![Group::new(&title, Unit::Pairs, rates)],
    }
}

/// Only a bare majority of the servers is running: a client that some of them granted the lock can
/// wait for the frozen servers, and so block the other clients, or try again.
fn beside_frozen(context: &Context) -> Findings {
    let servers = &context.servers;
    let peers = [Peer::Redlatch, Peer::RedlatchDrop, Peer::RslockSingle];
    let mut lanes = measure(context, &peers, 1, MANY);
    let well: Vec<f64> = lanes.iter().map(|lane| lane.median(Slice::rate)).collect();
    lanes.iter_mut().for_each(|lane| lane.slices.clear());

    let majority = context.nodes / 2 + 1;
    (majority..context.nodes).for_each(|index| servers.pause(index));
    for _ in 0..=turns(context) {
        for lane in &mut lanes {
            lane.run(slice(context), servers);
            lane.expect_gone(servers, majority);
        }
    }
    // Each client first has to find out that they are frozen, which takes one round.
    lanes.iter_mut().for_each(|lane| drop(lane.slices.remove(0)));
    (majority..context.nodes).for_each(|index| servers.resume(index));

    let shown = [("redlatch", &lanes[0]), ("rslock 0.10", &lanes[2])];
    let rates = shown.map(|(name, lane)| (name, lane.median(Slice::rate)));
    let frozen =
        format!("{} of {} servers frozen (SIGSTOP)", context.nodes - majority, context.nodes);
    let title = format!("{frozen}: {MANY} processes, one lock held for 1 ms");
    let group = Group::new(&title, Unit::Pairs, rates);
    let figure = |(lane, well): (&Lane, &f64)| Figure {
        what: format!("contended beside frozen servers, {}: of its own pairs/s", lane.name),
        measured: lane.median(Slice::rate) / well,
        wanted: Wanted::AtLeast(0.9),
    };
    Findings {
        title: context.title("contended, 8 processes, a minority frozen"),
        about: "The same eight processes, with as many servers frozen (SIGSTOP) as can be."
            .to_owned(),
        table: table(&lanes),
        figures: lanes.iter().zip(&well).take(2).map(figure).collect(),
        groups: vec![group],
    }
}

fn measure(context: &Context, peers: &[Peer], threads: usize, processes: usize) -> Vec<Lane> {
    let servers = &context.servers;
    let urls = servers.urls();
    let setup = Setup { servers, urls: &urls, kind: Kind::Contended, threads, processes };
    let label = format!("contended{processes}");
    let mut lanes: Vec<_> = peers.iter().map(|&peer| setup.lane(peer, &label)).collect();
    take_turns(&mut lanes, turns(context), slice(context), servers);
    lanes
}

fn turns(context: &Context) -> usize {
    context.turns.div_ceil(2)
}

fn slice(context: &Context) -> Duration {
    if context.is_quick { context.slice } else { SLICE }
}

fn table(lanes: &[Lane]) -> Table {
    let mut table = Table::new(&[
        "library",
        "pairs/s",
        "of redlatch's",
        "waited p50",
        "p99",
        "slowest/fastest",
        "CPU/pair",
        "connections",
        "peak memory",
    ]);
    for lane in lanes {
        table.row([
            lane.name.clone(),
            rate(lane.median(Slice::rate)),
            format!("{:.2}", lane.times(&lanes[0], Slice::rate)),
            time(lane.quantile(0.5)),
            time(lane.quantile(0.99)),
            format!("{:.2}", lane.median(Slice::fairness)),
            seconds(lane.median(Slice::cpu_per_pair)),
            lane.connections.to_string(),
            memory(lane.peak_memory()),
        ]);
    }
    table
}
