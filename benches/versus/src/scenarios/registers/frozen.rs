//! One of three servers is frozen (SIGSTOP) after the clients have connected to it.

use super::super::Context;
use super::{NODES, Storage};
use crate::lane::{Lane, Setup, median};
use crate::peers::Peer;
use crate::report::{Findings, Table, time};
use crate::servers::Servers;
use crate::work::{Kind, Slice};
use std::time::Duration;

const PEERS: [Peer; 4] =
    [Peer::Redlatch, Peer::RegisterRead, Peer::RegisterChange, Peer::RegisterAlternate];

/// Long enough that a client which waits for the frozen server once has many operations left: the
/// peers' `node_timeout` is a second.
const SICK_SLICE: Duration = Duration::from_secs(3);

/// A lane, and what it measured while all servers ran.
struct Pair {
    lane: Lane,
    healthy: Vec<Slice>,
}

pub fn run(context: &Context, servers: &Servers, storage: Storage) -> Findings {
    let urls = servers.urls();
    let setup = Setup { servers, urls: &urls, kind: Kind::Free, threads: 1, processes: 1 };
    let mut pairs: Vec<_> =
        PEERS.map(|peer| Pair { lane: setup.lane(peer, "stopped"), healthy: Vec::new() }).into();
    for _ in 0..context.turns.div_ceil(2) {
        for pair in &mut pairs {
            // After a server was frozen, a few rounds pass until all is healthy again.
            pair.lane.run(Duration::from_millis(300), servers);
            pair.lane.slices.pop();
            pair.lane.run(context.slice, servers);
            pair.healthy.extend(pair.lane.slices.pop());
        }
        servers.pause(NODES - 1);
        for pair in &mut pairs {
            pair.lane.run(SICK_SLICE, servers);
        }
        servers.resume(NODES - 1);
    }
    Findings {
        title: storage.title("one frozen"),
        about: "One server is frozen (SIGSTOP) after all clients have connected to it. `healthy` \
                is the same with all servers running, just before. The longest is over all parts: \
                a frozen server should cause no pause, at the first operation neither. The \
                clients' `node_timeout` is 1 s."
            .to_owned(),
        table: table(pairs),
        figures: Vec::new(),
        groups: Vec::new(),
    }
}

fn table(pairs: Vec<Pair>) -> Table {
    let mut table = Table::new(&[
        "operation",
        "p50",
        "healthy",
        "ratio",
        "p99",
        "healthy",
        "longest",
        "healthy",
    ]);
    for Pair { mut lane, healthy } in pairs {
        let [p50, p99, longest] = [0.5, 0.99, 1.0].map(|share| lane.quantile(share));
        let sick = std::mem::replace(&mut lane.slices, healthy);
        let both = sick.iter().zip(&lane.slices);
        let ratio = median(both.map(|(sick, well)| sick.p50() / well.p50()).collect());
        table.row([
            lane.name.clone(),
            time(p50),
            time(lane.quantile(0.5)),
            format!("{ratio:.2}"),
            time(p99),
            time(lane.quantile(0.99)),
            time(longest),
            time(lane.quantile(1.0)),
        ]);
    }
    table
}
