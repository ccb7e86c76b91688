//! Slots of a cluster as nodes.

use std::time::Duration;

use redlatch::LockClient;
use support::cluster::Cluster;
use support::eventually;
use support::locks::{LIMIT, can_be_acquired, connected};

use super::{builder, take};

const TTL: Duration = Duration::from_secs(5);

fn client(cluster: &Cluster) -> LockClient {
    connected(builder(&cluster.url()).build().unwrap())
}

/// The keys of all masters.
fn keys(cluster: &Cluster) -> Vec<String> {
    let of = |server: &support::redis::Server| server.command(&["KEYS", "*"]);
    let mut keys: Vec<String> = Vec::new();
    for server in &cluster.servers[..3] {
        let support::cli::Value::Array(found) = of(server) else { panic!("a list") };
        keys.extend(found.iter().map(support::cli::Value::text));
    }
    keys.sort_unstable();
    keys
}

#[test]
fn three_slots_of_a_cluster_are_three_nodes() {
    let cluster = Cluster::start(3, 0);
    let client = client(&cluster);
    let guard = take(&client, TTL);
    assert!(eventually(LIMIT, || keys(&cluster)
        .iter()
        .filter(|key| key.ends_with("}orders"))
        .count()
        == 3));
    let markers = ["{1x3}redlatch:reign", "{54h}redlatch:reign", "{fjl}redlatch:reign"];
    assert!(markers.iter().all(|marker| keys(&cluster).iter().any(|key| key == marker)));
    let other = builder(&cluster.url()).build().unwrap();
    assert!(!can_be_acquired(&other, "orders"));
    guard.release().unwrap();
    let guard = take(&other, TTL);
    let names: Vec<_> =
        client.locks("*").map(|lock| lock.unwrap().resource().to_string()).collect();
    assert_eq!(names, ["orders"]);
    guard.release().unwrap();
}

#[test]
fn a_failover_of_one_shard_of_three_is_not_noticed() {
    let mut cluster = Cluster::start(3, 1);
    let client = client(&cluster);
    let guard = take(&client, TTL);
    cluster.servers[1].kill();
    guard.ensure_held().unwrap();
    guard.release().unwrap();
    // At once: two of three votes are left.
    for _ in 0..20 {
        drop(client.lock("orders", TTL).unwrap());
    }
    // The third one comes back when its replica is promoted.
    connected(client);
}
