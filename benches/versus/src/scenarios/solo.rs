//! One thread acquires a free lock and releases it, again and again.

use super::Context;
use crate::figures::{Group, Unit};
use crate::lane::{Setup, fastest, take_turns};
use crate::peers::Peer;
use crate::report::{Figure, Findings, Table, Wanted};
use crate::work::{Kind, Slice};

const PEERS: [Peer; 7] = [
    Peer::Redlatch,
    Peer::RedlatchDrop,
    Peer::RslockThreads,
    Peer::Rslock,
    Peer::RslockSingle,
    Peer::Redlock,
    Peer::Floor,
];

pub fn run(context: &Context) -> Vec<Findings> {
    let servers = &context.servers;
    let urls = servers.urls();
    let setup = Setup { servers, urls: &urls, kind: Kind::Free, threads: 1, processes: 1 };
    let mut lanes: Vec<_> = PEERS.map(|peer| setup.lane(peer, "solo")).into();
    take_turns(&mut lanes, 2 * context.turns, context.slice, servers);

    let [release, dropped, threads, multi, single, redlock, floor] = &lanes[..] else {
        unreachable!("there is a lane for each peer")
    };
    // Compared with the fastest way to use rslock.
    let rslock = fastest(&[threads, multi, single]);
    let figure = |what: &str, measured, wanted| Figure {
        what: format!("solo, {what}"),
        measured,
        wanted: Wanted::AtLeast(wanted),
    };
    let figures = vec![
        figure("release(): times rslock's pairs/s", release.times(rslock, Slice::rate), 1.7),
        figure("drop: times rslock's pairs/s", dropped.times(rslock, Slice::rate), 2.3),
        figure("release(): times redlock's pairs/s", release.times(redlock, Slice::rate), 8.0),
    ];
    let shown = [
        ("redlatch", release),
        ("rslock 0.10", rslock),
        ("redlock 2.0", redlock),
        ("bare sockets", floor),
    ];
    let rates = shown.map(|(name, lane)| (name, lane.median(Slice::rate)));
    let times = shown.map(|(name, lane)| (name, lane.quantile(0.5).as_secs_f64()));
    let title = "one thread, a free lock";
    let groups = vec![
        Group::new(title, Unit::Pairs, rates),
        Group::new(&format!("{title}: median time to acquire it"), Unit::Time, times),
    ];
    vec![Findings {
        title: context.title("solo"),
        about:
            "One thread acquires a free lock and releases it, again and again. The floor waits for \
                all servers' answers; the others, too, except redlatch, which goes on when a \
                majority has answered."
                .to_owned(),
        table: Table::of_lanes(&lanes),
        figures,
        groups,
    }]
}
