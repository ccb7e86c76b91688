//! Servers that are a millisecond away.

use super::Context;
use crate::figures::{Group, Unit};
use crate::lane::{Setup, fastest, take_turns};
use crate::peers::Peer;
use crate::proxy;
use crate::report::{Figure, Findings, Table, Wanted};
use crate::work::{Kind, Slice};
use std::time::Duration;

/// In each direction.
const DELAY: Duration = Duration::from_micros(500);

const PEERS: [Peer; 6] = [
    Peer::Redlatch,
    Peer::RedlatchDrop,
    Peer::Rslock,
    Peer::RslockSingle,
    Peer::Redlock,
    Peer::Floor,
];

pub fn run(context: &Context) -> Vec<Findings> {
    let servers = &context.servers;
    let proxies = proxy::start(&servers.addresses(), DELAY).expect("proxies can be started");
    let urls: Vec<_> = proxies.iter().map(|address| format!("redis://{address}")).collect();
    let setup = Setup { servers, urls: &urls, kind: Kind::Free, threads: 1, processes: 1 };
    let mut lanes: Vec<_> = PEERS.map(|peer| setup.lane(peer, "rtt")).into();
    take_turns(&mut lanes, context.turns, context.slice, servers);

    let [release, dropped, multi, single, redlock, floor] = &lanes[..] else {
        unreachable!("there is a lane for each peer")
    };
    let figure = |name: &str, measured| Figure {
        what: format!("rtt 1 ms, {name}: times the floor's acquire p50"),
        measured,
        wanted: Wanted::AtMost(1.0),
    };
    let figures = vec![
        figure("release()", release.times(floor, Slice::p50)),
        figure("drop", dropped.times(floor, Slice::p50)),
    ];
    let shown = [
        ("redlatch", release),
        ("rslock 0.10", fastest(&[multi, single])),
        ("redlock 2.0", redlock),
        ("bare sockets", floor),
    ];
    let times = shown.map(|(name, lane)| (name, lane.quantile(0.5).as_secs_f64()));
    let title = "servers 1 ms away: median time to acquire a lock";
    vec![Findings {
        title: context.title("rtt"),
        about: "Proxies add 0.5 ms in each direction; one thread acquires free locks.".to_owned(),
        table: Table::of_lanes(&lanes),
        figures,
        groups: vec![Group::new(title, Unit::Time, times)],
    }]
}
