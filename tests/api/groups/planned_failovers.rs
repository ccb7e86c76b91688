//! Failovers after which the former master is up, and clients still reach it: it does not end their
//! connections, or not for long. A lock that is kept alive lives through each of them.

use std::thread;
use std::time::{Duration, Instant};

use redlatch::{LockClient, LockGuard};
use support::cli::Value;
use support::eventually;
use support::locks::{LIMIT, can_be_acquired};
use support::proxy::Proxy;
use support::redis::Server;
use support::sentinel::{SentinelGroup, info, replicated};

use super::{adopt_for, builder};

/// Two thirds of it are longer than any failover here takes, with the bound.
const TTL: Duration = Duration::from_secs(15);

fn client(url: &str, bound: Duration) -> LockClient {
    builder(url)
        .max_ttl(TTL)
        .failover_bound(bound)
        .build()
        .unwrap()
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

/// Is the lock held until it would have ended had it not been extended after the failover?
#[track_caller]
fn goes_on(guard: &LockGuard, other: &LockClient) {
    let start = Instant::now();
    while start.elapsed() < TTL + Duration::from_secs(2) {
        guard.ensure_held().unwrap();
        assert!(!can_be_acquired(other, "orders"));
        thread::sleep(Duration::from_millis(100));
    }
}

/// A lock that is kept alive goes on when this replaces the master.
#[track_caller]
fn lives_through(group: &SentinelGroup, query: &str, bound: Duration, replace: impl FnOnce()) {
    let before = group.master();
    adopt_for(&group.servers[before], query);
    let build = || client(&format!("{}{query}", group.url()), bound);
    let [holder, other] = [build(), build()];
    let guard = keep(&holder);
    replace();
    assert!(eventually(LIMIT, || group.master() != before));
    goes_on(&guard, &other);
}

fn deny(server: &Server, rights: &[&str]) {
    let answer = server.command(&[&["ACL", "SETUSER", "default"], rights].concat());
    assert_eq!(answer, Value::ok());
}

/// Sentinels tell the old master ten seconds later that it is a replica, which ends its
/// connections. Here they cannot.
#[test]
fn a_lock_goes_on_when_people_have_the_sentinels_replace_the_master() {
    let group = SentinelGroup::start(2);
    deny(&group.servers[0], &["-slaveof", "-replicaof"]);
    lives_through(&group, "?replicas=2", Duration::from_secs(1), || {
        group.replace_master();
    });
}

/// For its replicas and for Sentinels, and not for clients, which do neither of these.
fn cut_off(master: &Server) {
    deny(master, &["-ping", "-psync", "-sync", "-replconf"]);
    master.command(&["CLIENT", "KILL", "TYPE", "replica"]);
}

#[test]
fn a_lock_goes_on_when_the_master_is_cut_off_from_all_but_the_clients() {
    let group = SentinelGroup::start(2);
    let cut = || cut_off(&group.servers[0]);
    lives_through(&group, "?replicas=2", Duration::from_secs(1), cut);
}

#[test]
fn a_lock_goes_on_when_the_master_refuses_to_write_without_its_replicas() {
    let group = SentinelGroup::start(2);
    for server in &group.servers {
        for (setting, value) in [
            ("min-replicas-to-write", "1"),
            ("min-replicas-max-lag", "1"),
        ] {
            assert_eq!(
                server.command(&["CONFIG", "SET", setting, value]),
                Value::ok()
            );
        }
    }
    lives_through(&group, "", Duration::from_secs(3), || {
        cut_off(&group.servers[0]);
    });
}

/// The old master is told nothing, and the connections to it stay.
#[test]
fn a_lock_goes_on_when_a_name_leads_to_another_master() {
    let servers = replicated(2);
    adopt_for(&servers[0], "replicas=2");
    let door = Proxy::start(servers[0].port());
    let url = format!("redis://127.0.0.1:{}?failover=true&replicas=2", door.port());
    let build = || client(&url, Duration::from_secs(1));
    let [holder, other] = [build(), build()];
    let guard = keep(&holder);
    assert_eq!(servers[1].command(&["REPLICAOF", "NO", "ONE"]), Value::ok());
    let port = servers[1].client_port().to_string();
    assert_eq!(
        servers[2].command(&["REPLICAOF", "127.0.0.1", &port]),
        Value::ok()
    );
    door.lead_new_to(servers[1].port());
    goes_on(&guard, &other);
    assert_eq!(info(&servers[0], "role"), "master");
}
