//! Programs that run for longer than the servers of their URL.

use std::time::Duration;

use redlatch::{LockClient, LockGuard};
use support::cluster::Cluster;
use support::eventually;
use support::locks::{LIMIT, can_be_acquired};
use support::sentinel::{NAME, SentinelGroup};
use support::transport::scheme;

use super::{adopt, adopt_for, builder, take};

const TTL: Duration = Duration::from_secs(15);

fn client(url: &str) -> LockClient {
    builder(url).max_ttl(TTL).build().unwrap()
}

fn keep(client: &LockClient) -> LockGuard {
    client
        .request("orders")
        .ttl(TTL)
        .keep_alive()
        .try_lock_for(LIMIT)
        .unwrap()
        .unwrap()
}

/// Is the lock held all the time until its client counts the votes of the next master?
#[track_caller]
fn goes_on(guard: LockGuard, client: &LockClient) {
    let is_again = || {
        guard.ensure_held().unwrap();
        assert!(!can_be_acquired(client, "orders"));
        client.try_lock("other", TTL).is_ok()
    };
    assert!(eventually(3 * LIMIT, is_again), "the master is not found");
    guard.release().unwrap();
    drop(take(client, TTL));
}

#[test]
fn a_cluster_goes_on_when_all_servers_of_the_url_are_gone() {
    let mut cluster = Cluster::start(3, 1);
    adopt(&cluster.servers[1], "{fjl}");
    let seed = cluster.servers[1].client_port();
    let client = client(&format!(
        "{}+cluster://127.0.0.1:{seed}?slots=8192",
        scheme()
    ));
    let guard = keep(&client);
    cluster.servers[1].kill();
    goes_on(guard, &client);
}

#[test]
fn a_group_goes_on_when_all_sentinels_of_the_url_are_gone() {
    let mut group = SentinelGroup::start(2);
    adopt_for(&group.servers[0], "replicas=2");
    let seed = group.sentinels[0].client_port();
    let client = client(&format!(
        "{}+sentinel://127.0.0.1:{seed}/{NAME}?replicas=2",
        scheme()
    ));
    let guard = keep(&client);
    drop(group.sentinels.remove(0));
    group.servers[0].kill();
    goes_on(guard, &client);
}
