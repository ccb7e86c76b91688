//! Failovers after which new locks count at once, because the servers prove that nothing is
//! missing.

use std::time::{Duration, Instant};

use redlatch::error::NodeAnswer;
use redlatch::status::GroupStatus;
use redlatch::{Error, LockClient, LockGuard, NodeError};
use support::cli::Value;
use support::cluster::Cluster;
use support::eventually;
use support::locks::{LIMIT, can_be_acquired};
use support::redis::Server;
use support::sentinel::{SentinelGroup, info, replicated};

use super::{MAX_TTL, adopt, adopt_for, builder, take};

pub(super) const TTL: Duration = MAX_TTL;

/// A quarantine takes the longest ttl, and by how much clocks may differ.
const QUARANTINE: Duration = Duration::from_secs(6);

pub(super) fn url(server: &Server) -> String {
    let port = server.client_port();
    format!("redis://127.0.0.1:{port}?failover=true&replicas=2")
}

pub(super) fn client(url: &str) -> LockClient {
    builder(url).build().unwrap()
}

pub(super) fn status(client: &LockClient) -> GroupStatus {
    let mut node = client.nodes().remove(0);
    node.group.take().unwrap()
}

/// Servers that were started a moment ago prove nothing: waits until they were not.
#[track_caller]
pub(super) fn run_for_long(servers: &[&Server]) {
    let uptime = |server: &Server| {
        let info = server.command(&["INFO", "server"]);
        info.field("uptime_in_seconds")
            .unwrap()
            .parse::<u64>()
            .unwrap()
    };
    let is_long = |server: &Server| uptime(server) > QUARANTINE.as_secs() + 1;
    assert!(eventually(LIMIT, || servers.iter().all(|it| is_long(it))));
}

pub(super) fn has_all(replica: &Server, master: &Server) -> bool {
    let offset = |server, name| info(server, name).parse::<u64>().unwrap_or(0);
    offset(replica, "slave_repl_offset") >= offset(master, "master_repl_offset")
}

pub(super) fn promote(server: &Server, follower: &Server) {
    server.command(&["REPLICAOF", "NO", "ONE"]);
    follow(follower, server);
}

fn follow(replica: &Server, master: &Server) {
    let port = master.client_port().to_string();
    replica.command(&["REPLICAOF", "127.0.0.1", &port]);
    let is_up = || info(replica, "master_link_status") == "up";
    assert!(eventually(LIMIT, is_up));
}

/// A group that has been in use for long, and a lock that is kept there.
fn used(servers: &[Server], url: &str) -> LockGuard {
    adopt_for(&servers[0], "replicas=2");
    run_for_long(&servers.iter().collect::<Vec<_>>());
    let holder = client(url);
    holder
        .request("kept")
        .ttl(TTL)
        .keep_alive()
        .try_lock_for(LIMIT)
        .unwrap()
        .expect("it is free")
}

/// A new lock is there while those that were acknowledged before are held still.
#[track_caller]
fn expect_proven(client: &LockClient, kept: &LockGuard, case: &str) {
    let since = Instant::now();
    drop(take(client, TTL));
    eprintln!("{case}: the next lock after {:?}", since.elapsed());
    let group = status(client);
    assert!(group.is_proven && group.age.is_none(), "{case}: {group:?}");
    let is_given = can_be_acquired(client, "kept");
    assert!(
        !is_given || kept.ensure_held().is_err(),
        "{case}: two holders"
    );
}

#[test]
fn a_master_that_dies_is_replaced_with_proof() {
    let mut servers = replicated(2);
    let kept = used(&servers, &url(&servers[0]));
    let all = || (1..3).all(|it| has_all(&servers[it], &servers[0]));
    assert!(eventually(LIMIT, all));
    servers[0].kill();
    promote(&servers[1], &servers[2]);
    expect_proven(&client(&url(&servers[1])), &kept, "killed");
    // Another client is told by the marker.
    let other = client(&url(&servers[1]));
    drop(other.try_lock("other", TTL).unwrap().expect("it is free"));
}

#[test]
fn a_master_that_is_restarted_with_all_its_data_is_proven() {
    let mut servers = replicated(2);
    let kept = used(&servers, &url(&servers[0]));
    // It saves only if it is told to.
    servers[0].command(&["CONFIG", "SET", "save", "3600 1"]);
    servers[0].stop();
    servers[0].restart();
    expect_proven(&client(&url(&servers[0])), &kept, "restarted");
    kept.ensure_held().unwrap();
}

/// The cluster stops the writes before that, so the others need not copy anything.
#[test]
fn a_failover_of_a_cluster_by_command_is_proven() {
    let cluster = Cluster::start(1, 2);
    let servers: Vec<&Server> = cluster.servers.iter().map(|it| &**it).collect();
    let client = client(&format!("{}?nodes=1&replicas=2", cluster.url()));
    let is_adopted = || {
        let reports = client.adopt_groups().unwrap();
        reports[0].answer == NodeAnswer::Answered
    };
    assert!(eventually(LIMIT, is_adopted));
    run_for_long(&servers);
    let kept = client.request("kept").ttl(TTL).keep_alive();
    let kept = kept.try_lock_for(LIMIT).unwrap().expect("it is free");
    let all = || servers[1..].iter().all(|it| has_all(it, servers[0]));
    assert!(eventually(LIMIT, all));
    assert_eq!(servers[1].command(&["CLUSTER", "FAILOVER"]), Value::ok());
    assert!(eventually(LIMIT, || info(servers[1], "role") == "master"));
    expect_proven(&client, &kept, "cluster");
    kept.ensure_held().unwrap();
}

/// Whether there is a proof depends on which one they choose, and on what it had got.
#[test]
fn sentinels_replace_a_master_and_nobody_gets_a_lock_that_is_held() {
    for case in ["killed", "people"] {
        let mut group = SentinelGroup::start(2);
        let url = format!("{}?replicas=2", group.url());
        let kept = used(&group.servers, &url);
        let other = client(&url);
        drop(take(&other, TTL));
        let before = group.master();
        if case == "killed" {
            group.servers[before].kill();
        } else {
            group.replace_master();
        }
        let since = Instant::now();
        assert!(eventually(3 * LIMIT, || group.master() != before));
        let promoted = since.elapsed();
        drop(take(&other, TTL));
        let is_proven = status(&other).is_proven;
        eprintln!(
            "{case}: promoted after {promoted:?}, the next lock after {:?}, proven: {is_proven}",
            since.elapsed()
        );
        let is_given = can_be_acquired(&other, "kept");
        assert!(
            !is_given || kept.ensure_held().is_err(),
            "{case}: two holders"
        );
    }
}

/// The only node has no vote, by and by for this reason.
#[track_caller]
fn expect_problem(client: &LockClient, expected: &NodeError) {
    let mut answer = None;
    let is_it = eventually(LIMIT, || {
        let Err(Error::NoQuorum(error)) = client.try_lock("orders", TTL) else {
            return false;
        };
        answer = Some(error.reports()[0].answer.clone());
        answer == Some(NodeAnswer::Failed(expected.clone()))
    });
    assert!(is_it, "{answer:?}");
}

#[test]
fn clients_that_count_in_another_way_are_refused_until_a_person_renews() {
    let servers = replicated(2);
    adopt_for(&servers[0], "replicas=2");
    let port = servers[0].client_port();
    let plain = client(&format!("redis://127.0.0.1:{port}?failover=true"));
    let three = client(&format!(
        "redis://127.0.0.1:{port}?failover=true&replicas=3"
    ));
    let differs = |client: &LockClient, named, found| {
        let expected = NodeError::ModeDiffers { named, found };
        expect_problem(client, &expected);
    };
    differs(&plain, None, None);
    differs(&three, Some(3), Some(2));
    servers[0].command(&["DEL", "redlatch:reign"]);
    adopt(&servers[0], "");
    let two = client(&url(&servers[0]));
    differs(&two, Some(2), None);
    let renewed = two.renew_groups().unwrap();
    assert_eq!(renewed[0].answer, NodeAnswer::Answered);
    drop(take(&two, TTL));
    differs(&plain, None, None);
}

#[test]
fn a_master_with_more_replicas_than_are_named_has_no_vote() {
    let servers = replicated(3);
    adopt_for(&servers[0], "replicas=2");
    let expected = NodeError::TooManyReplicas {
        named: 2,
        listed: 3,
        is_permanent: false,
    };
    expect_problem(&client(&url(&servers[0])), &expected);
}
