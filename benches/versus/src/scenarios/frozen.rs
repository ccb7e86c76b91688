//! One server is frozen (SIGSTOP) after all clients have connected to it: its connections stay
//! open, and it answers nothing. The cost is measured against the same client just before, with all
//! servers healthy.

use super::Context;
use crate::figures::{Group, Unit};
use crate::lane::{Lane, Setup, fastest};
use crate::peers::Peer;
use crate::report::{Figure, Findings, Table, Wanted, rate, seconds, time};
use crate::work::{Kind, Slice};
use std::time::Duration;

/// Long enough for a library that waits half a second for each lock.
const SICK_SLICE: Duration = Duration::from_millis(1500);

const PEERS: [Peer; 4] = [Peer::Redlatch, Peer::RedlatchDrop, Peer::Rslock, Peer::RslockSingle];

pub fn run(context: &Context) -> Vec<Findings> {
    if context.nodes < 3 {
        // Without one of one or two there is no majority.
        return Vec::new();
    }
    let servers = &context.servers;
    let urls = servers.urls();
    let setup = Setup { servers, urls: &urls, kind: Kind::Free, threads: 1, processes: 1 };
    let mut lanes: Vec<_> = PEERS.map(|peer| setup.lane(peer, "frozen")).into();
    // Without that node at all: no library can be faster than that.
    let others = Setup { urls: &urls[..context.nodes - 1], ..setup };
    let control = others.lane(Peer::Redlatch, "frozen-fewer");
    lanes.push(control.named("redlatch, release(), without that node"));
    let mut healthy: Vec<Vec<Slice>> = vec![Vec::new(); lanes.len()];
    let frozen = context.nodes - 1;
    for _ in 0..context.turns.div_ceil(2) {
        // After a node was stopped, a few rounds pass until all is healthy again.
        for lane in &mut lanes {
            lane.run(Duration::from_millis(300), servers);
            lane.slices.pop();
        }
        for (lane, healthy) in lanes.iter_mut().zip(&mut healthy) {
            lane.run(context.slice, servers);
            healthy.extend(lane.slices.pop());
        }
        servers.pause(frozen);
        for lane in &mut lanes {
            lane.run(SICK_SLICE, servers);
            lane.expect_gone(servers, frozen);
        }
        servers.resume(frozen);
    }
    // With more traffic, pending releases reach the server that was frozen.
    for lane in &mut lanes[..2] {
        lane.run(Duration::from_millis(200), servers);
        lane.slices.pop();
        lane.expect_gone(servers, context.nodes);
    }
    vec![findings(context, lanes, healthy)]
}

fn findings(context: &Context, lanes: Vec<Lane>, healthy: Vec<Vec<Slice>>) -> Findings {
    let shown = [("redlatch", &lanes[0]), ("rslock 0.10", fastest(&[&lanes[2], &lanes[3]]))];
    let times = shown.map(|(name, lane)| (name, lane.quantile(0.5).as_secs_f64()));
    let title =
        format!("1 of {} servers frozen (SIGSTOP): median time to acquire a lock", context.nodes);
    let group = Group::new(&title, Unit::Time, times);
    let mut table = Table::new(&[
        "library", "pairs/s", "healthy", "p50", "healthy", "ratio", "p99", "healthy", "ratio",
        "CPU/pair",
    ]);
    let mut figures = Vec::new();
    for (index, (mut lane, healthy)) in lanes.into_iter().zip(healthy).enumerate() {
        let cpu = seconds(lane.median(Slice::cpu_per_pair));
        let (rate_sick, p50_sick, p99_sick) =
            (lane.median(Slice::rate), lane.quantile(0.5), lane.quantile(0.99));
        let sick = std::mem::replace(&mut lane.slices, healthy);
        let ratio = |figure: fn(&Slice) -> f64| {
            let both = sick.iter().zip(&lane.slices);
            crate::lane::median(both.map(|(sick, well)| figure(sick) / figure(well)).collect())
        };
        let (times_p50, times_p99) = (ratio(Slice::p50), ratio(Slice::p99));
        table.row([
            lane.name.clone(),
            rate(rate_sick),
            rate(lane.median(Slice::rate)),
            time(p50_sick),
            time(lane.quantile(0.5)),
            format!("{times_p50:.2}"),
            time(p99_sick),
            time(lane.quantile(0.99)),
            format!("{times_p99:.2}"),
            cpu,
        ]);
        if index < 2 {
            for (what, measured, wanted) in [("p50", times_p50, 1.2), ("p99", times_p99, 2.0)] {
                let what = format!("one frozen, {}: {what} times its own when healthy", lane.name);
                figures.push(Figure { what, measured, wanted: Wanted::AtMost(wanted) });
            }
        }
    }
    Findings {
        title: context.title("frozen"),
        about: "One server is frozen (SIGSTOP) after all clients have connected to it; one thread \
                acquires free locks. `healthy` is the same with all servers running, just before; \
                a frozen server takes no processor time, which on a small machine makes the \
                others faster. redlock and redsync are not in the table: they read without a \
                time-out and do not come back."
            .to_owned(),
        table,
        figures,
        groups: vec![group],
    }
}
