//! What a fencing token costs, and a second resource: one thread, free locks.

use super::Context;
use crate::lane::{Setup, take_turns};
use crate::peers::Peer;
use crate::report::{Figure, Findings, Table, Wanted};
use crate::work::{Kind, Slice};

const PEERS: [Peer; 3] = [Peer::Redlatch, Peer::RedlatchFenced, Peer::RedlatchTwo];

pub fn run(context: &Context) -> Vec<Findings> {
    let servers = &context.servers;
    let urls = servers.urls();
    let setup = Setup { servers, urls: &urls, kind: Kind::Free, threads: 1, processes: 1 };
    let mut lanes: Vec<_> = PEERS.map(|peer| setup.lane(peer, "fenced")).into();
    take_turns(&mut lanes, 2 * context.turns, context.slice, servers);

    let [plain, fenced, two] = &lanes[..] else { unreachable!("there is a lane for each peer") };
    let figure = |what: &str, measured| Figure {
        what: format!("{what}: times plain locks' pairs/s"),
        measured,
        wanted: Wanted::AtLeast(0.8),
    };
    let figures = vec![
        figure("fenced", fenced.times(plain, Slice::rate)),
        figure("two resources", two.times(plain, Slice::rate)),
    ];
    vec![Findings {
        title: context.title("fenced"),
        about: "One thread takes a free lock and gives it back with release(): a plain one, one \
                with a fencing token, and two resources at once, which count as one pair."
            .to_owned(),
        table: Table::of_lanes(&lanes),
        figures,
        groups: Vec::new(),
    }]
}
