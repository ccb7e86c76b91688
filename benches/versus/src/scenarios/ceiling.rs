//! What the servers take.

use super::Context;
use crate::lane::{Setup, take_turns};
use crate::peers::Peer;
use crate::report::{Findings, Table, rate, seconds};
use crate::work::{Kind, Slice};

pub fn run(context: &Context) -> Vec<Findings> {
    let servers = &context.servers;
    let urls = servers.urls();
    let setup = Setup { servers, urls: &urls, kind: Kind::Free, threads: 1, processes: 1 };
    let mut lanes = [setup.lane(Peer::Ceiling, "ceiling")];
    take_turns(&mut lanes, context.turns, context.slice, servers);
    let mut table = Table::new(&["who", "pairs/s", "CPU/pair", "servers' CPU/pair"]);
    for lane in &lanes {
        let cpu = seconds(lane.median(Slice::cpu_per_pair));
        let servers = seconds(lane.median(Slice::servers_cpu_per_pair));
        table.row([lane.name.clone(), rate(lane.median(Slice::rate)), cpu, servers]);
    }
    vec![Findings {
        title: context.title("ceiling"),
        about: "The same SET and EVALSHA on every server, through pipelines that keep the servers \
                busy all the time."
            .to_owned(),
        table,
        figures: Vec::new(),
        groups: Vec::new(),
    }]
}
