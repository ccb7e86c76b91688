//! Slots of a cluster that move to another server: by a failover on command, and by resharding.

use std::thread;
use std::time::{Duration, Instant};

use redlatch::error::NodeAnswer;
use redlatch::{Error, LockClient, LockGuard, NodeError};
use support::cli::Value;
use support::cluster::Cluster;
use support::eventually;
use support::locks::{LIMIT, can_be_acquired, connected};

use super::{BOUND, MAX_TTL, adopt, builder, info_of, take};

const TTL: Duration = MAX_TTL;

/// The slot of `?nodes=1`, and its tag.
const SLOT: &str = "8192";
const TAG: &str = "{fjl}";

fn client(cluster: &Cluster, query: &str) -> LockClient {
    builder(&format!("{}?{query}", cluster.url()))
        .build()
        .unwrap()
}

/// The error of each node that has failed.
fn problems(client: &LockClient) -> Vec<NodeError> {
    let Err(Error::NoQuorum(error)) = client.try_lock("other", TTL) else {
        return Vec::new();
    };
    let problem = |answer: &NodeAnswer| match answer {
        NodeAnswer::Failed(problem) => Some(problem.clone()),
        _ => None,
    };
    error
        .reports()
        .iter()
        .filter_map(|report| problem(&report.answer))
        .collect()
}

/// A lock that is kept alive.
fn keep(holder: &LockClient) -> LockGuard {
    let request = holder.request("orders").ttl(TTL).keep_alive();
    request.try_lock_for(LIMIT).unwrap().unwrap()
}

/// Nobody else gets the lock, for longer than it lives without being kept.
fn expect_kept(held: &LockGuard, other: &LockClient) {
    let start = Instant::now();
    while start.elapsed() < TTL + BOUND + Duration::from_secs(1) {
        held.ensure_held().unwrap();
        assert!(!can_be_acquired(other, "orders"));
        thread::sleep(Duration::from_millis(20));
    }
}

/// A failover of the only node's shard by this command, to its replica, while a lock is kept and
/// somebody else waits for it.
fn fail_over(command: &[&str]) {
    let cluster = Cluster::start(3, 1);
    adopt(&cluster.servers[1], TAG);
    let holder = client(&cluster, "nodes=1");
    let other = client(&cluster, "nodes=1");
    let held = keep(&holder);
    let waiter = client(&cluster, "nodes=1");
    let waiting = thread::spawn(move || take(&waiter, TTL).release());
    let replica = &cluster.servers[4];
    assert_eq!(replica.command(command), Value::ok());
    assert!(eventually(LIMIT, || info_of(replica, "role") == "master"));
    expect_kept(&held, &other);
    assert!(!waiting.is_finished(), "it is still held");
    held.release().unwrap();
    waiting.join().unwrap().unwrap();
}

#[test]
fn a_kept_lock_lives_through_a_failover_by_command() {
    fail_over(&["CLUSTER", "FAILOVER"]);
}

#[test]
fn a_kept_lock_lives_through_a_forced_failover() {
    fail_over(&["CLUSTER", "FAILOVER", "FORCE"]);
}

#[test]
fn a_kept_lock_lives_through_a_takeover() {
    fail_over(&["CLUSTER", "FAILOVER", "TAKEOVER"]);
}

/// Moves the slot of the only node with its keys, as `redis-cli --cluster reshard` does. What it
/// calls is called when some keys have moved.
fn reshard(cluster: &Cluster, from: usize, to: usize, meanwhile: impl FnOnce()) {
    let source = &cluster.servers[from];
    let target = &cluster.servers[to];
    let id = |index: usize| cluster.servers[index].command(&["CLUSTER", "MYID"]).text();
    let from = id(from);
    let to = id(to);
    let port = target.port().to_string();
    let set = ["CLUSTER", "SETSLOT", SLOT];
    assert_eq!(
        target.command(&[&set[..], &["IMPORTING", &from]].concat()),
        Value::ok()
    );
    assert_eq!(
        source.command(&[&set[..], &["MIGRATING", &to]].concat()),
        Value::ok()
    );
    let mut meanwhile = Some(meanwhile);
    let moved = eventually(LIMIT, || {
        let keys = source.command(&["CLUSTER", "GETKEYSINSLOT", SLOT, "1"]);
        let Value::Array(keys) = keys else {
            panic!("a list")
        };
        let Some(Value::Bulk(key)) = keys.first() else {
            return true;
        };
        let migrate: [&[u8]; 6] = [
            b"MIGRATE",
            b"127.0.0.1",
            port.as_bytes(),
            key,
            b"0",
            b"1000",
        ];
        let migrated = source.command(&migrate);
        assert!(!matches!(migrated, Value::Error(_)), "{migrated:?}");
        meanwhile.take().into_iter().for_each(|it| it());
        false
    });
    assert!(moved);
    for server in &cluster.servers {
        server.command(&[&set[..], &["NODE", &to]].concat());
    }
}

#[test]
fn a_kept_lock_and_its_queue_move_with_their_slot() {
    let cluster = Cluster::start(3, 0);
    adopt(&cluster.servers[1], TAG);
    let holder = client(&cluster, "nodes=1");
    let other = client(&cluster, "nodes=1");
    let held = keep(&holder);
    let waiter = client(&cluster, "nodes=1");
    let waiting = thread::spawn(move || take(&waiter, TTL).release());
    let key = format!("{TAG}orders:redlatch:queue");
    let source = &cluster.servers[1];
    assert!(eventually(LIMIT, || source.command(&["EXISTS", &key])
        == Value::Integer(1)));
    // `ASK`, `TRYAGAIN` and then `MOVED` are what the client gets.
    reshard(&cluster, 1, 2, || {
        for _ in 0..20 {
            held.ensure_held().unwrap();
            assert!(!can_be_acquired(&other, "orders"));
        }
        let problems = problems(&other);
        assert!(
            problems.iter().all(|problem| !problem.is_permanent()),
            "{problems:?}"
        );
    });
    expect_kept(&held, &other);
    assert_eq!(
        cluster.servers[2].command(&["EXISTS", &key]),
        Value::Integer(1)
    );
    // And back, on a connection that may be there still.
    reshard(&cluster, 2, 1, || held.ensure_held().unwrap());
    expect_kept(&held, &other);
    held.release().unwrap();
    waiting.join().unwrap().unwrap();
}

#[test]
fn two_slots_on_one_server_have_one_vote_until_one_of_them_moves() {
    let cluster = Cluster::start(3, 0);
    adopt(&cluster.servers[1], TAG);
    adopt(&cluster.servers[2], "{1x3}");
    adopt(&cluster.servers[0], "{54h}");
    let two = client(&cluster, "slots=8192,13653");
    let three = client(&cluster, "nodes=3");
    drop(take(&two, TTL));
    drop(take(&three, TTL));
    reshard(&cluster, 1, 2, || {});
    assert!(eventually(LIMIT, || {
        problems(&two)
            .iter()
            .any(|it| matches!(it, NodeError::SameServer { .. }))
    }));
    // Two servers of three have a vote each, when the quarantine of the slot is over.
    drop(take(&three, TTL));
    reshard(&cluster, 2, 1, || {});
    drop(take(&two, TTL));
    drop(take(&connected(three), TTL));
}

#[test]
fn seeds_are_needed_to_find_a_master_only() {
    let mut cluster = Cluster::start(6, 0);
    for server in &cluster.servers {
        server.command(&["CONFIG", "SET", "cluster-require-full-coverage", "no"]);
    }
    for (index, tag) in [(1, "{54h}"), (3, TAG), (5, "{1x3}")] {
        adopt(&cluster.servers[index], tag);
    }
    let seeds = [0, 2].map(|it: usize| format!("127.0.0.1:{}", cluster.servers[it].port()));
    let url = format!("redis+cluster://{}", seeds.join(","));
    let client = connected(builder(&url).build().unwrap());
    drop(take(&client, TTL));
    cluster.servers[0].kill();
    cluster.servers[2].kill();
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(3) {
        drop(client.try_lock("orders", TTL).unwrap().unwrap());
        thread::sleep(Duration::from_millis(5));
    }
    let late = builder(&url).build().unwrap();
    let problems = problems(&late);
    let is_it = |problem: &NodeError| matches!(problem, NodeError::NoMaster(_));
    assert!(
        !problems.is_empty() && problems.iter().all(is_it),
        "{problems:?}"
    );
}
