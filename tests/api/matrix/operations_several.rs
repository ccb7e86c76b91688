//! Operations on several locks, with several holders, among clients that wait, and with servers
//! that forget.

use std::thread;
use std::time::Duration;

use redlatch::error::NodeAnswer;
use redlatch::{Error, LockClient, NodeError, QueueSupport};

use super::operations::{Rig, serve_in_order};
use support::cli::Value;
use support::eventually;
use support::locks::{
    LIMIT, LONG, all_nodes_client, connected, gone, holders, take, with_long_timeout,
    without_restart_guard,
};
use support::redis::Server;
use support::servers::Servers;

pub(crate) fn request_all(rig: &mut Rig) {
    let client = rig.client();
    let other = rig.client();
    let both = client
        .request_all(["a", "b"])
        .ttl(LONG)
        .lock()
        .expect("they are free");
    assert!(
        other
            .try_lock("b", LONG)
            .expect("a majority answers")
            .is_none()
    );
    drop(both);
    assert!(gone(&rig.servers, "a") && gone(&rig.servers, "b"));
}

/// Scripts of Redis before 5 may not write after they have read the clock: a request for a share
/// fails with the server's own words.
fn refuses_shares(rig: &Rig, got: Result<bool, Error>) -> bool {
    if rig.has_shares() {
        return false;
    }
    let error = got.expect_err("this server grants no shares").to_string();
    assert!(error.contains("Write commands not allowed"), "{error}");
    true
}

pub(crate) fn readers(rig: &mut Rig) {
    let client = rig.client();
    let other = rig.client();
    let read = |client: &LockClient| client.request("read").ttl(LONG).shared().try_lock();
    if refuses_shares(rig, read(&client).map(|guard| guard.is_some())) {
        return;
    }
    let first = read(&client)
        .expect("a majority answers")
        .expect("it is free");
    let second = read(&other)
        .expect("a majority answers")
        .expect("readers share it");
    assert!(
        matches!(other.try_lock("read", LONG), Ok(None)),
        "no writer"
    );
    let writer = thread::spawn(move || other.request("read").ttl(LONG).try_lock_for(LIMIT));
    drop((first, second));
    assert!(matches!(writer.join(), Ok(Ok(Some(_)))));
}

pub(crate) fn permits(rig: &mut Rig) {
    let client = rig.client();
    let other = rig.client();
    let request = |client| LockClient::request(client, "permits").ttl(LONG).one_of(2);
    if refuses_shares(
        rig,
        request(&client).try_lock().map(|guard| guard.is_some()),
    ) {
        return;
    }
    assert!(gone(&rig.servers, "permits"));
    let take = |client| {
        request(client)
            .try_lock_for(LIMIT)
            .expect("a majority")
            .expect("free")
    };
    let [first, second] = [&client, &other].map(take);
    assert_ne!(first.slot(), second.slot());
    let third = request(&client).try_lock_for(Duration::from_millis(300));
    assert!(
        third.expect("a majority answers").is_none(),
        "there are two"
    );
    drop(first);
    let third = client
        .request("permits")
        .ttl(LONG)
        .one_of(2)
        .try_lock_for(LIMIT);
    assert!(matches!(third, Ok(Some(_))), "{third:?}");
}

pub(crate) fn queue_in_order(rig: &mut Rig) {
    serve_in_order(&rig.servers, &rig.servers.urls(), "line");
    let expected = match rig.has_tracking() {
        true => QueueSupport::Full,
        false => QueueSupport::WithoutPushes,
    };
    assert_eq!(rig.queue_support(), Some(expected));
}

/// Waiters are served in order where nobody tells them, too.
pub(crate) fn queue_without_pushes(rig: &mut Rig) {
    let renamed: &[&str] = &["--rename-command", "HELLO", ""];
    let servers = Servers::of(&rig.program, 3, if rig.has_resp3() { renamed } else { &[] });
    serve_in_order(&servers, &servers.urls(), "line");
}

pub(crate) fn queue_off(rig: &mut Rig) {
    let settings = with_long_timeout(rig.servers.urls()).queue(false);
    let client = rig.client();
    let other = settings.build().expect("the settings are good");
    let held = take(&client, "off", LONG);
    let waiting = thread::spawn(move || other.request("off").ttl(LONG).try_lock_for(LIMIT));
    thread::sleep(Duration::from_millis(100));
    drop(held);
    assert!(matches!(waiting.join(), Ok(Ok(Some(_)))));
}

/// Three candidates: each leads once, and the next one when the leader resigns.
pub(crate) fn leader_election(rig: &mut Rig) {
    let urls = rig.servers.urls();
    let terms: Vec<_> = (0..3)
        .map(|_| {
            let client = without_restart_guard(urls.clone()).node_timeout(Duration::from_secs(2));
            let client = client.build().expect("the settings are good");
            thread::spawn(move || {
                let ttl = Duration::from_secs(10);
                let leader = client
                    .request("leader")
                    .ttl(ttl)
                    .keep_alive()
                    .fenced()
                    .lock();
                let leader = leader.expect("each leads in the end");
                let token = leader.fencing_token().expect("it is fenced");
                leader.ensure_held().expect("it leads");
                leader.release().expect("a majority answers");
                token
            })
        })
        .collect();
    let mut tokens: Vec<_> = terms
        .into_iter()
        .map(|it| it.join().expect("no panic"))
        .collect();
    tokens.sort_unstable();
    tokens.dedup();
    assert_eq!(tokens.len(), 3);
}

pub(crate) fn nodes(rig: &mut Rig) {
    let client = connected(rig.client());
    for status in client.nodes() {
        assert_eq!(status.server.as_deref(), Some(rig.program.name()));
        assert_eq!(status.version.as_deref(), Some(rig.program.version()));
        assert!(
            status.is_connected && status.last_error.is_none(),
            "{status:?}"
        );
        assert!(
            status.uptime.is_some() && status.round_trip.is_some(),
            "{status:?}"
        );
    }
}

/// A server that was just started does not count, until it has been up for long enough.
pub(crate) fn restart_guard(rig: &mut Rig) {
    let servers = Servers::of(&rig.program, 3, &[]);
    let guarded = with_long_timeout(servers.urls())
        .restart_guard(true)
        .wait_for_all(true);
    let client = guarded
        .max_ttl(Duration::from_secs(3))
        .build()
        .expect("the settings are good");
    let ttl = Duration::from_secs(2);
    match client.try_lock("fresh", ttl) {
        Err(Error::NoQuorum(error)) => {
            let is_quarantine = |answer: &NodeAnswer| {
                matches!(answer, NodeAnswer::Failed(NodeError::Quarantined { .. }))
            };
            assert!(
                error
                    .reports()
                    .iter()
                    .all(|report| is_quarantine(&report.answer)),
                "{error}"
            );
        }
        other => panic!("{other:?}"),
    }
    assert!(
        all_nodes_client(servers.urls())
            .try_lock("fresh", ttl)
            .is_ok(),
        "without the guard"
    );
    let waited = client.request("fresh").ttl(ttl).try_lock_for(LIMIT);
    assert!(matches!(waited, Ok(Some(_))), "{waited:?}");
}

pub(crate) fn scripts_forgotten(rig: &mut Rig) {
    let client = rig.client();
    let mut guard = take(&client, "forgotten", LONG / 2);
    let forget = || {
        let forget = |server: &Server| server.command(&["SCRIPT", "FLUSH"]);
        assert!(
            rig.servers
                .iter()
                .map(forget)
                .all(|reply| reply == Value::ok())
        );
    };
    forget();
    guard.extend(LONG).expect("it is held");
    forget();
    drop(guard);
    assert!(gone(&rig.servers, "forgotten"));
}

pub(crate) fn one_node_down(rig: &mut Rig) {
    let client = with_long_timeout(rig.servers.urls())
        .build()
        .expect("the settings are good");
    let client = connected(client);
    rig.servers[0].pause();
    let guard = take(&client, "minority", LONG);
    assert_eq!(holders(&rig.servers[1..], "minority"), 2);
    drop(guard);
    assert!(gone(&rig.servers[1..], "minority"));
    rig.servers[0].resume();
    assert!(gone(&rig.servers, "minority"));
}

pub(crate) fn a_node_restarts(rig: &mut Rig) {
    let client = connected(rig.client());
    rig.servers[0].restart();
    assert!(eventually(LIMIT, || client
        .nodes()
        .iter()
        .all(|node| node.is_connected)));
    let guard = take(&client, "restarted", LONG);
    assert_eq!(holders(&rig.servers, "restarted"), 3);
    drop(guard);
    assert!(gone(&rig.servers, "restarted"));
}
