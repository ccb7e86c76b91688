//! One thread takes a lock that is free, gives it back, and takes it again.

use super::Context;
use crate::lane::{Lane, Setup, take_turns};
use crate::peers::Peer;
use crate::report::{Bars, Figure, Findings, Table, Wanted};
use crate::work::{Kind, Slice};

const PEERS: [Peer; 8] = [
    Peer::Redlatch,
    Peer::RedlatchDrop,
    Peer::RslockThreads,
    Peer::Rslock,
    Peer::RslockSingle,
    Peer::Redlock,
    Peer::Redsync,
    Peer::Floor,
];

pub fn run(context: &Context) -> Vec<Findings> {
    let servers = &context.servers;
    let urls = servers.urls();
    let setup = Setup { servers, urls: &urls, kind: Kind::Free, threads: 1, processes: 1 };
    let mut lanes: Vec<_> = PEERS.map(|peer| setup.lane(peer, "solo")).into();
    take_turns(&mut lanes, 2 * context.turns, context.slice, servers);

    let [release, dropped, threads, multi, single, redlock, ..] = &lanes[..] else {
        unreachable!("there is a lane for each peer")
    };
    // Beside whichever of rslock's ways is the fastest one.
    let by_rate =
        |one: &&Lane, other: &&Lane| one.median(Slice::rate).total_cmp(&other.median(Slice::rate));
    let rslock = [threads, multi, single].into_iter().max_by(by_rate).unwrap_or(single);
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
    let bars = lanes.iter().map(|lane| (lane.name.clone(), lane.median(Slice::rate))).collect();
    vec![Findings {
        title: context.title("solo"),
        about:
            "One thread takes a free lock and gives it back, again and again. The floor waits for \
                all servers' answers; the others, too, except redlatch, which goes on when a \
                majority has answered."
                .to_owned(),
        table: Table::of_lanes(&lanes),
        figures,
        bars: Some(Bars { title: "one thread, a free lock".to_owned(), unit: "pairs/s", bars }),
    }]
}
