//! Servers whose clocks differ: on a group, keys live longer than their locks by `clock_skew`.

use std::time::Duration;

use redlatch::{LockClient, LockState, NodeWarning};
use support::cli::Value;
use support::eventually;
use support::locks::{LIMIT, gone, pttl, value};
use support::redis::Server;
use support::sentinel::info;
use support::shim::{Shim, set_clock};

use super::{adopt, builder, take};

const TTL: Duration = Duration::from_secs(5);
/// So long that no key with it ends in a test.
const SKEW: Duration = Duration::from_secs(60);

fn client(server: &Server, skew: Duration) -> LockClient {
    let url = format!("redis://127.0.0.1:{}?failover=true", server.port());
    builder(&url).clock_skew(skew).build().unwrap()
}

/// How long the lock lasts as an inspection says, of whatever kind it is.
fn inspected(client: &LockClient, name: &str) -> Duration {
    match client.inspect(name).unwrap().state {
        LockState::Held(holder) => holder.remaining.unwrap(),
        LockState::Shared(holders) => holders[0].remaining.unwrap(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn keys_of_a_group_live_longer_than_their_locks_and_go_with_a_release() {
    let servers = [Server::start(&[])];
    let server = &servers[0];
    adopt(server, "");
    let client = client(server, SKEW);
    let skew = i64::try_from(SKEW.as_millis()).unwrap();
    let lives_longer = |name: &str| {
        let left = pttl(server, name);
        assert!(left > skew, "{name}: {left} ms");
        assert!(inspected(&client, name) <= TTL);
    };
    let mut plain = take(&client, TTL);
    assert!(plain.remaining() <= TTL);
    lives_longer("orders");
    plain.extend(TTL).unwrap();
    lives_longer("orders");
    plain.release().unwrap();
    let reader = client.request("reports").shared().ttl(TTL).try_lock();
    let mut reader = reader.unwrap().expect("nobody else has it");
    lives_longer("reports");
    reader.extend(TTL).unwrap();
    lives_longer("reports");
    reader.release().unwrap();
    let fenced = client.request("invoices").fenced().ttl(TTL).try_lock();
    lives_longer("invoices");
    fenced
        .unwrap()
        .expect("nobody else has it")
        .release()
        .unwrap();
    let released = ["orders", "reports", "invoices"];
    assert!(released.iter().all(|name| gone(&servers, name)));
    let nightly = client
        .request("nightly")
        .ttl(TTL)
        .hold_at_least(TTL)
        .try_lock();
    nightly
        .unwrap()
        .expect("nobody else has it")
        .release()
        .unwrap();
    assert!(
        pttl(server, "nightly") > skew,
        "it stays taken for that long"
    );
}

#[test]
fn a_key_of_a_single_server_lives_as_long_as_its_lock() {
    let server = Server::start(&[]);
    let url = format!("redis://127.0.0.1:{}", server.port());
    let client = builder(&url)
        .clock_skew(SKEW)
        .restart_guard(false)
        .build()
        .unwrap();
    let _plain = take(&client, TTL);
    let left = u64::try_from(pttl(&server, "orders")).unwrap();
    assert!(Duration::from_millis(left) <= TTL);
}

#[test]
fn a_promoted_server_whose_clock_is_ahead_keeps_a_lock_for_as_long_as_it_is_held() {
    let master = Server::start(&[]);
    adopt(&master, "");
    let shim = Shim::clock();
    set_clock(&shim.orders(), 3_000_000_000);
    let port = master.port().to_string();
    let of = [
        "--replicaof",
        "127.0.0.1",
        &port,
        "--repl-diskless-load",
        "disabled",
    ];
    let ahead = Server::start_in(&shim.environment("REDLATCH_CLOCK"), &of);
    let lock = take(&client(&master, Duration::from_secs(4)), TTL);
    assert!(eventually(LIMIT, || value(&ahead, "orders").is_some()));
    assert_eq!(ahead.command(&["REPLICAOF", "NO", "ONE"]), Value::ok());
    let kept = u64::try_from(pttl(&ahead, "orders")).unwrap();
    let held = lock.remaining();
    assert!(Duration::from_millis(kept) >= held, "{kept} ms, {held:?}");
}

/// The warning about clocks, of the client's only node: who is ahead of whom.
fn clocks_apart(client: &LockClient) -> Option<(String, String)> {
    let status = client.nodes().remove(0);
    status.warnings().iter().find_map(|warning| match warning {
        NodeWarning::ClocksApart { ahead, behind, .. } => Some((ahead.clone(), behind.clone())),
        _ => None,
    })
}

#[test]
fn servers_of_a_group_whose_clocks_differ_are_warned_of() {
    let master = Server::start(&[]);
    let port = master.port().to_string();
    let of = ["--replicaof", "127.0.0.1", &port];
    let shim = Shim::clock();
    let other = Server::start_in(&shim.environment("REDLATCH_CLOCK"), &of);
    assert!(eventually(LIMIT, || info(&other, "master_link_status") == "up"));
    let client = client(&master, SKEW);
    assert_eq!(clocks_apart(&client), None);
    let place = |server: &Server| format!("127.0.0.1:{}", server.port());
    set_clock(&shim.orders(), 200_000_000_000);
    let found = || clocks_apart(&client) == Some((place(&other), place(&master)));
    assert!(eventually(LIMIT, found));
    set_clock(&shim.orders(), -200_000_000_000);
    let found = || clocks_apart(&client) == Some((place(&master), place(&other)));
    assert!(eventually(LIMIT, found));
    // Who cannot be asked is not compared, and delays the others only for a while.
    other.pause();
    assert_eq!(clocks_apart(&client), None);
    other.resume();
}

#[test]
fn the_clocks_are_asked_for_with_the_login_of_the_servers() {
    let with_password = ["--requirepass", "hush", "--masterauth", "hush"];
    let master = Server::start(&with_password);
    let port = master.port().to_string();
    let follows = ["--replicaof", "127.0.0.1", &port];
    let shim = Shim::clock();
    set_clock(&shim.orders(), 200_000_000_000);
    let ahead = shim.environment("REDLATCH_CLOCK");
    let same = Server::start_in(&ahead, &[&with_password[..], &follows].concat());
    let url = format!("redis://:hush@127.0.0.1:{port}?failover=true");
    let client = builder(&url)
        .clock_skew(Duration::from_secs(9))
        .build()
        .unwrap();
    let place = |server: &Server| format!("127.0.0.1:{}", server.port());
    let found = || clocks_apart(&client) == Some((place(&same), place(&master)));
    assert!(eventually(LIMIT, found));
    assert_eq!(
        same.command(&["CONFIG", "SET", "requirepass", "another"]),
        Value::ok()
    );
    assert!(eventually(LIMIT, || clocks_apart(&client).is_none()));
}
