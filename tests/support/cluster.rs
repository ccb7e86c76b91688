//! A Redis Cluster: shards of a master and its replicas.

use std::ops::Range;
use std::time::Duration;

use super::cluster_node::ClusterNode;
use super::eventually;
use super::redis::Server;
use super::transport::{between_servers, scheme};

const START_LIMIT: Duration = Duration::from_secs(60);
const SLOTS: usize = 16_384;

pub struct Cluster {
    /// The masters in the order of their slots, and then their replicas in the same order.
    pub servers: Vec<ClusterNode>,
    shards: usize,
}

impl Cluster {
    /// Shards that each have as many replicas, and take a server for dead that was silent for a
    /// second.
    #[track_caller]
    pub fn start(shards: usize, replicas: usize) -> Self {
        let settings = [
            "--cluster-node-timeout",
            "1000",
            "--repl-diskless-sync-delay",
            "0",
        ];
        let settings = [&settings, between_servers()].concat();
        let count = shards * (1 + replicas);
        let servers: Vec<_> = (0..count)
            .map(|_| ClusterNode::start_with(&settings))
            .collect();
        let cluster = Self { servers, shards };
        for shard in 0..shards {
            let Range { start, end } = cluster.slots(shard);
            let start = start.to_string();
            let end = (end - 1).to_string();
            cluster.servers[shard].command(&["CLUSTER", "ADDSLOTSRANGE", &start, &end]);
        }
        for server in &cluster.servers[1..] {
            let port = server.client_port().to_string();
            let bus = server.bus().to_string();
            cluster.servers[0].command(&["CLUSTER", "MEET", "127.0.0.1", &port, &bus]);
        }
        let knows_all =
            |server: &ClusterNode| info(server, "cluster_known_nodes") == count.to_string();
        assert!(eventually(START_LIMIT, || cluster
            .servers
            .iter()
            .all(knows_all)));
        for (index, replica) in cluster.servers[shards..].iter().enumerate() {
            let id = cluster.servers[index % shards]
                .command(&["CLUSTER", "MYID"])
                .text();
            let follows = || replica.command(&["CLUSTER", "REPLICATE", &id]).text() == "OK";
            assert!(eventually(START_LIMIT, follows));
        }
        let is_up = |server: &ClusterNode| {
            let is_linked = || super::sentinel::info(server, "master_link_status") == "up";
            let is_replica = super::sentinel::info(server, "role") == "slave";
            info(server, "cluster_state") == "ok" && (!is_replica || is_linked())
        };
        assert!(eventually(START_LIMIT, || cluster
            .servers
            .iter()
            .all(is_up)));
        cluster
    }

    /// The slots of this shard.
    pub fn slots(&self, shard: usize) -> Range<usize> {
        SLOTS * shard / self.shards..SLOTS * (shard + 1) / self.shards
    }

    /// The URL of all nodes, by three of the servers.
    pub fn url(&self) -> String {
        let hosts = self
            .servers
            .iter()
            .rev()
            .step_by(self.shards.max(2) - 1)
            .take(3);
        let hosts: Vec<_> = hosts
            .map(|it| format!("127.0.0.1:{}", it.client_port()))
            .collect();
        format!("{}+cluster://{}", scheme(), hosts.join(","))
    }
}

/// A field of `CLUSTER INFO`.
fn info(server: &Server, name: &str) -> String {
    let text = server.command(&["CLUSTER", "INFO"]).text();
    let field = text
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    field.unwrap_or_default().trim_end().to_owned()
}
