//! Slots of a cluster as nodes.

use std::thread;
use std::time::Duration;

use redlatch::{LockClient, NodeStatus, QueueSupport};
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
        let support::cli::Value::Array(found) = of(server) else {
            panic!("a list")
        };
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
    let markers = [
        "{1x3}redlatch:reign",
        "{54h}redlatch:reign",
        "{fjl}redlatch:reign",
    ];
    assert!(
        markers
            .iter()
            .all(|marker| keys(&cluster).iter().any(|key| key == marker))
    );
    let other = builder(&cluster.url()).build().unwrap();
    assert!(!can_be_acquired(&other, "orders"));
    guard.release().unwrap();
    let guard = take(&other, TTL);
    let names: Vec<_> = client
        .locks("*")
        .map(|lock| lock.unwrap().resource().to_string())
        .collect();
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

/// A message on any other channel goes to all nodes of a cluster.
#[test]
fn a_waiter_is_told_on_a_channel_of_its_shard_or_on_a_common_one_if_it_may_not() {
    let cluster = Cluster::start(3, 0);
    let masters = || cluster.servers.iter();
    for (rights, told_by) in [("+ssubscribe", "spublish"), ("-ssubscribe", "publish")] {
        masters().for_each(|it| _ = it.command(&["ACL", "SETUSER", "default", rights]));
        masters().for_each(|it| _ = it.command(&["CONFIG", "RESETSTAT"]));
        let [holder, other] = [client(&cluster), client(&cluster)];
        let held = holder
            .request("orders")
            .ttl(TTL)
            .keep_alive()
            .try_lock_for(3 * LIMIT);
        let waiter = other.clone();
        let waiting = thread::spawn(move || take(&waiter, TTL).release());
        let hears = |it: &NodeStatus| it.queue == Some(QueueSupport::Full);
        assert!(
            eventually(LIMIT, || other.nodes().iter().all(hears)),
            "{rights}"
        );
        held.unwrap().expect("it becomes free").release().unwrap();
        waiting.join().unwrap().unwrap();
        for publish in ["publish", "spublish"] {
            let field = format!("cmdstat_{publish}");
            let has_told = masters().any(|it| {
                it.command(&["INFO", "commandstats"])
                    .field(&field)
                    .is_some()
            });
            assert_eq!(has_told, publish == told_by, "{rights}: {publish}");
        }
    }
}
