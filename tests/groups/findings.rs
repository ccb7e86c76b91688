//! What is said of a group: its reign, and what about its servers breaks the bound.

use std::time::Duration;

use redlatch::status::{GroupStatus, Role};
use redlatch::{LockClient, NodeStatus, NodeWarning};
use support::cluster::Cluster;
use support::eventually;
use support::locks::LIMIT;
use support::redis::Server;
use support::sentinel::{info, replicated};

use super::{builder, take};

const TTL: Duration = Duration::from_secs(5);

fn client(server: &Server, options: &str) -> LockClient {
    let url = format!("redis://127.0.0.1:{}?failover=true{options}", server.port());
    builder(&url).build().unwrap()
}

/// The status of the only node, and of its group.
fn status(client: &LockClient) -> (NodeStatus, GroupStatus) {
    let mut node = client.nodes().remove(0);
    let group = node.group.take().unwrap();
    (node, group)
}

#[test]
fn a_group_shows_its_reign_and_what_about_it_is_wrong() {
    let servers = replicated(2);
    let unbounded = client(&servers[0], "");
    drop(take(&unbounded, TTL));
    let (node, group) = status(&unbounded);
    assert_eq!(node.role, Some(Role::Master { replicas: 2 }));
    assert_eq!(group.reign, info(&servers[0], "master_replid"));
    assert_eq!((group.acknowledged, group.vouched_ago), (None, None));
    assert!(group.age.is_some_and(|age| age > super::MAX_TTL), "{group:?}");
    assert_eq!(node.warnings(), [NodeWarning::NoBound { replicas: 2 }]);
    for (name, value) in [("min-replicas-to-write", "1"), ("repl-backlog-ttl", "3600")] {
        servers[0].command(&["CONFIG", "SET", name, value]);
    }
    let (setting, needed) = ("min-replicas-max-lag", Duration::from_secs(12));
    let short = NodeWarning::BoundShort { setting, needed, bound: super::BOUND };
    let ends = || NodeWarning::BacklogEnds { after: Duration::from_secs(3600) };
    assert_eq!(status(&unbounded).0.warnings(), [short, ends()]);

    let vouched = client(&servers[0], "&replicas=2");
    assert!(eventually(3 * LIMIT, || vouched.try_lock("orders", TTL).is_ok_and(|it| it.is_some())));
    let (node, group) = status(&vouched);
    assert_eq!(node.warnings(), [ends()]);
    assert!(group.acknowledged.is_some_and(|count| count > 0), "{group:?}");
    assert!(group.vouched_ago.is_some_and(|ago| ago <= super::BOUND), "{group:?}");
    let uncounted = status(&client(&servers[0], "&replicas=3")).0;
    let differ = NodeWarning::ReplicasDiffer { named: 3, connected: 2 };
    assert_eq!(uncounted.warnings(), [differ, ends()]);
}

#[test]
fn a_cluster_is_no_warning_if_it_is_named_and_its_timeout_is_compared_with_the_bound() {
    let cluster = Cluster::start(3, 0);
    let client = builder(&cluster.url()).build().unwrap();
    let set = |server: &support::cluster_node::ClusterNode| {
        server.command(&["CONFIG", "SET", "repl-backlog-ttl", "0"]);
        server.command(&["CONFIG", "SET", "cluster-node-timeout", "1500"]);
    };
    assert!(eventually(LIMIT, || client.nodes().iter().all(|node| node.group.is_some())));
    cluster.servers.iter().for_each(set);
    let (setting, needed) = ("cluster-node-timeout", Duration::from_millis(1500));
    for node in client.nodes() {
        let host = |it: &NodeWarning| matches!(it, NodeWarning::SameHost { .. });
        let warnings: Vec<_> = node.warnings().iter().filter(|it| !host(it)).cloned().collect();
        assert_eq!(warnings, [NodeWarning::BoundShort { setting, needed, bound: super::BOUND }]);
    }
}
