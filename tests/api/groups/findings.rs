//! What is said of a group: its reign, and what about its servers breaks the bound.

use std::time::Duration;

use redlatch::status::{GroupStatus, Role};
use redlatch::{LockClient, NodeStatus, NodeWarning};
use support::cluster::Cluster;
use support::eventually;
use support::locks::LIMIT;
use support::redis::Server;
use support::sentinel::{NAME, SentinelGroup, info, replicated};

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
    assert_eq!((group.acknowledged, group.is_proven), (None, false));
    assert!(
        group.age.is_some_and(|age| age > super::MAX_TTL),
        "{group:?}"
    );
    assert_eq!(node.warnings(), [NodeWarning::NoBound { replicas: 2 }]);
    for (name, value) in [("min-replicas-to-write", "1"), ("repl-backlog-ttl", "3600")] {
        servers[0].command(&["CONFIG", "SET", name, value]);
    }
    let setting = "min-replicas-max-lag";
    let needed = Duration::from_secs(12);
    let short = NodeWarning::BoundShort {
        setting,
        needed,
        bound: super::BOUND,
    };
    let ends = || NodeWarning::BacklogEnds {
        after: Duration::from_secs(3600),
    };
    assert_eq!(status(&unbounded).0.warnings(), [short, ends()]);

    // Another mode is another group.
    servers[0].command(&["DEL", "redlatch:reign"]);
    super::adopt_acknowledged(&servers[0], 2);
    let acknowledged = client(&servers[0], "&replicas=2");
    assert!(eventually(3 * LIMIT, || acknowledged
        .try_lock("orders", TTL)
        .is_ok_and(|it| it.is_some())));
    let (node, group) = status(&acknowledged);
    assert_eq!(node.warnings(), [ends()]);
    assert!(
        group.acknowledged.is_some_and(|count| count > 0),
        "{group:?}"
    );
    servers[0].command(&["DEL", "redlatch:reign"]);
    let uncounted = status(&client(&servers[0], "&replicas=3")).0;
    let differ = NodeWarning::ReplicasDiffer {
        named: 3,
        connected: 2,
    };
    assert_eq!(uncounted.warnings(), [differ, ends()]);
}

#[test]
fn a_master_without_its_former_one_has_no_bound_and_a_user_without_wait_is_warned_of() {
    let mut servers = replicated(2);
    let user = "ACL SETUSER app on >pw ~* &* +@all -wait";
    servers[0].command(&user.split(' ').collect::<Vec<_>>());
    let refused = |user: &str, options: &str| {
        servers[0].command(&["DEL", "redlatch:reign"]);
        let url = format!(
            "redis://{user}127.0.0.1:{}?failover=true{options}",
            servers[0].port()
        );
        let node = builder(&url).build().unwrap().nodes().remove(0);
        assert!(node.is_connected, "{node:?}");
        node.warnings().contains(&NodeWarning::WaitRefused)
    };
    assert!(refused("app:pw@", "&replicas=2"));
    assert!(!refused("", "&replicas=2") && !refused("app:pw@", ""));
    assert!(NodeWarning::WaitRefused.to_string().contains("+wait"));

    servers[1].command(&["REPLICAOF", "NO", "ONE"]);
    servers[0].kill();
    let (node, group) = status(&client(&servers[1], ""));
    assert_eq!(node.role, Some(Role::Master { replicas: 0 }));
    assert!(
        node.warnings()
            .contains(&NodeWarning::NoBound { replicas: 1 }),
        "{node:?}"
    );
    assert!(group.former.is_some(), "{group:?}");
}

#[test]
fn a_cluster_is_no_warning_if_it_is_named_and_its_timeout_is_compared_with_the_bound() {
    let cluster = Cluster::start(3, 0);
    let client = builder(&cluster.url()).build().unwrap();
    let set = |server: &support::cluster_node::ClusterNode| {
        server.command(&["CONFIG", "SET", "repl-backlog-ttl", "0"]);
        server.command(&["CONFIG", "SET", "cluster-node-timeout", "1500"]);
    };
    assert!(eventually(LIMIT, || client
        .nodes()
        .iter()
        .all(|node| node.group.is_some())));
    cluster.servers.iter().for_each(set);
    let setting = "cluster-node-timeout";
    let needed = Duration::from_millis(1500);
    for node in client.nodes() {
        let host = |it: &NodeWarning| matches!(it, NodeWarning::SameHost { .. });
        // Masters on one machine.
        assert_eq!(
            node.warnings().iter().any(host),
            !node.url.ends_with("=2730")
        );
        let warnings: Vec<_> = node
            .warnings()
            .iter()
            .filter(|it| !host(it))
            .cloned()
            .collect();
        assert_eq!(
            warnings,
            [NodeWarning::BoundShort {
                setting,
                needed,
                bound: super::BOUND
            }]
        );
    }
}

/// The warnings about the only node, without the one about the bound, once there are so many.
#[track_caller]
fn warnings(url: &str, count: usize) -> Vec<NodeWarning> {
    let client = builder(url).build().unwrap();
    let mut found = Vec::new();
    let is_there = eventually(LIMIT, || {
        let node = client.nodes().remove(0);
        let is_bound = |it: &NodeWarning| matches!(it, NodeWarning::NoBound { .. });
        found = node
            .warnings()
            .iter()
            .filter(|it| !is_bound(it))
            .cloned()
            .collect();
        node.is_connected && found.len() == count
    });
    assert!(is_there, "{found:?}");
    found
}

#[test]
fn sentinels_that_are_too_few_slow_or_silent_are_warned_of() {
    let mut group = SentinelGroup::start(1);
    let url = group.url();
    assert_eq!(warnings(&url, 0), []);
    let set = |sentinel: usize, name: &str, value: &str| {
        let set = ["SENTINEL", "SET", NAME, name, value];
        assert_eq!(group.sentinels[sentinel].command(&set).text(), "OK");
    };
    set(0, "quorum", "1");
    assert_eq!(
        warnings(&url, 1),
        [NodeWarning::Sentinels {
            known: 3,
            quorum: 1
        }]
    );
    set(0, "quorum", "2");
    set(1, "down-after-milliseconds", "30000");
    let down_after = Duration::from_secs(30);
    let bound = super::BOUND;
    let slow = NodeWarning::KeptLocksEnd {
        down_after,
        bound,
        max_ttl: super::MAX_TTL,
    };
    assert_eq!(warnings(&url, 1), [slow]);
    set(1, "down-after-milliseconds", "1000");
    group.sentinels[2].pause();
    assert_eq!(
        warnings(&url, 1),
        [NodeWarning::SentinelsSilent {
            silent: 1,
            named: 3
        }]
    );
    group.sentinels.pop();
    assert_eq!(
        warnings(&url, 1),
        [NodeWarning::SentinelsSilent {
            silent: 1,
            named: 3
        }]
    );
}

#[test]
fn a_replica_that_is_down_and_not_counted_is_warned_of() {
    let mut group = SentinelGroup::start(3);
    group.servers[3].kill();
    let url = format!("{}?replicas=2", group.url());
    let listed = NodeWarning::ReplicasListed {
        named: 2,
        listed: 3,
    };
    assert!(eventually(LIMIT, || info(
        &group.servers[0],
        "connected_slaves"
    ) == "2"));
    assert_eq!(warnings(&url, 1), [listed]);
}

#[test]
fn a_cluster_that_moves_replicas_is_warned_of_if_they_are_counted() {
    let cluster = Cluster::start(1, 2);
    for server in &cluster.servers {
        server.command(&["CONFIG", "SET", "repl-backlog-ttl", "0"]);
    }
    let url = |options: &str| format!("{}?nodes=1{options}", cluster.url());
    assert_eq!(
        warnings(&url("&replicas=2"), 1),
        [NodeWarning::ReplicasMove]
    );
    // Another mode is another group.
    cluster.servers[0].command(&["FLUSHALL"]);
    assert_eq!(warnings(&url(""), 0), []);
    cluster.servers[0].command(&["FLUSHALL"]);
    for server in &cluster.servers {
        server.command(&["CONFIG", "SET", "cluster-allow-replica-migration", "no"]);
    }
    assert_eq!(warnings(&url("&replicas=2"), 0), []);
}
