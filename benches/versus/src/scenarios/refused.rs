//! One of the nodes is a port on which nobody listens.

use super::Context;
use crate::lane::{Setup, take_turns};
use crate::peers::Peer;
use crate::report::{Figure, Findings, Table, Wanted};
use crate::servers::ClosedPort;
use crate::work::{Kind, Slice};

const PEERS: [Peer; 5] =
    [Peer::Redlatch, Peer::RedlatchDrop, Peer::Rslock, Peer::RslockSingle, Peer::Redsync];

pub fn run(context: &Context) -> Vec<Findings> {
    if context.nodes < 3 {
        return Vec::new();
    }
    let servers = &context.servers;
    let closed = ClosedPort::new().expect("there is a free port");
    let well = servers.urls();
    let mut sick = well.clone();
    sick[context.nodes - 1] = format!("redis://127.0.0.1:{}", closed.port);
    // As many servers at work in both: what the fifth takes of the machine is not what is measured.
    let fewer = &well[..context.nodes - 1];

    let setup = |urls| Setup { servers, urls, kind: Kind::Free, threads: 1, processes: 1 };
    let mut lanes: Vec<_> = PEERS.map(|peer| setup(&sick).lane(peer, "refused")).into();
    let control = setup(fewer).lane(Peer::Redlatch, "fewer");
    lanes.push(control.named("redlatch, release(), without that node"));
    let control = setup(fewer).lane(Peer::RedlatchDrop, "fewer");
    lanes.push(control.named("redlatch, drop, without that node"));
    take_turns(&mut lanes, 2 * context.turns, context.slice, servers);

    let controls = [(&lanes[0], &lanes[5]), (&lanes[1], &lanes[6])];
    let mut figures = Vec::new();
    for (lane, control) in controls {
        let name = &lane.name;
        let what = format!("one refused, {name}: share of the pairs/s without that node");
        let measured = lane.times(control, Slice::rate);
        figures.push(Figure { what, measured, wanted: Wanted::AtLeast(0.95) });
        let what = format!("one refused, {name}: times the p50 without that node");
        let measured = lane.times(control, Slice::p50);
        figures.push(Figure { what, measured, wanted: Wanted::AtMost(1.05) });
    }
    vec![Findings {
        title: context.title("refused"),
        about: "One of the nodes is a port on which nobody listens; one thread takes free locks. \
                For comparison, a client that was never told of that node: both talk to the same \
                servers, and wait for as many answers. redlock is not in the table: it takes no \
                lock then."
            .to_owned(),
        table: Table::of_lanes(&lanes),
        figures,
        groups: Vec::new(),
    }]
}
