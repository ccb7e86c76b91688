//! What a failover costs, measured: how long it takes until a new lock is granted, how often the
//! servers prove that nothing is missing, and that nobody is granted a lock that is held.
//!
//! `REDLATCH_FAILOVERS` sets how many of each kind there are (10).

use std::env;
use std::thread;
use std::time::{Duration, Instant};

use redlatch::{LockClient, LockGuard};
use support::cli::{Client, Value, encode, parse};
use support::eventually;
use support::locks::{LIMIT, can_be_acquired};
use support::redis::Server;
use support::sentinel::{NAME, SentinelGroup};

use super::{adopt_for, builder, take};

/// As in the first example of the guide.
const TTL: Duration = Duration::from_secs(12);

/// A witness must have been up for longer: the longest ttl, by how much clocks may differ, and the
/// grain of the uptime.
const LONG: Duration = Duration::from_secs(15);

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    /// The master is killed.
    Kill,
    /// People have the Sentinels replace it.
    Forced,
    /// The same, and it hands its writes over first: from Valkey 9 on.
    Coordinated,
}

fn client(url: &str) -> LockClient {
    builder(url).max_ttl(TTL).build().unwrap()
}

/// A field of `INFO`; none from a server whose connections Sentinel is ending, as it does when it
/// tells a server whom to follow.
fn told(server: &Server, section: &str, name: &str) -> Option<String> {
    let mut client = Client::connect(server.port()).ok()?;
    let reply = client.try_raw(&encode(&["INFO", section])).ok()?;
    parse(&reply)?.0.field(name)
}

/// All servers follow the master, whoever that is by now, and have been up for long.
#[track_caller]
fn settle(group: &SentinelGroup) {
    let uptime = |server: &Server| {
        let seconds = told(server, "server", "uptime_in_seconds");
        Duration::from_secs(seconds.and_then(|it| it.parse().ok()).unwrap_or_default())
    };
    let mut left = None;
    let is_settled = eventually(4 * LIMIT, || {
        let master = group.master();
        let port = group.servers[master].client_port().to_string();
        let follows = |server: &Server| {
            let of_link = |name| told(server, "replication", name).unwrap_or_default();
            of_link("master_port") == port && of_link("master_link_status") == "up"
        };
        let mut servers = group.servers.iter().enumerate();
        left = servers.find_map(|(index, server)| {
            let is_in_place = index == master || follows(server);
            (!is_in_place || uptime(server) <= LONG).then_some((index, master))
        });
        left.is_none()
    });
    assert!(is_settled, "a server does not follow the master: {left:?}");
    // The next failover is refused until then: twice the Sentinels' `failover-timeout`.
    thread::sleep(Duration::from_secs(7));
}

/// Until the Sentinels name another master. `false` if the servers know no failover of that kind.
#[track_caller]
fn replace(group: &mut SentinelGroup, kind: Kind) -> bool {
    let before = group.master();
    match kind {
        Kind::Kill => group.servers[before].kill(),
        Kind::Forced => group.replace_master(),
        Kind::Coordinated => {
            let words = ["SENTINEL", "FAILOVER", NAME, "COORDINATED"];
            if group.sentinels[0].command(&words) != Value::ok() {
                return false;
            }
        }
    }
    assert!(eventually(4 * LIMIT, || group.master() != before));
    true
}

/// How long it took from the loss, and from the promotion, until there was a new lock, and whether
/// the servers had proven that nothing was missing.
struct Failover {
    took: Duration,
    paused: Duration,
    is_proven: bool,
    is_kept_lost: bool,
}

#[track_caller]
fn fail_over(
    group: &mut SentinelGroup,
    kind: Kind,
    kept: &LockGuard,
    other: &LockClient,
) -> Option<Failover> {
    settle(group);
    let before = group.master();
    drop(take(other, TTL));
    let since = Instant::now();
    if !replace(group, kind) {
        return None;
    }
    let promoted = Instant::now();
    drop(take(other, TTL));
    let (took, paused) = (since.elapsed(), promoted.elapsed());
    let group_status = other.nodes().remove(0).group.take();
    let is_given = can_be_acquired(other, "kept");
    assert!(!is_given || kept.ensure_held().is_err(), "two holders");
    if kind == Kind::Kill {
        group.servers[before].restart();
        let port = group.servers[group.master()].client_port().to_string();
        group.servers[before].command(&["REPLICAOF", "127.0.0.1", &port]);
    }
    Some(Failover {
        took,
        paused,
        is_proven: group_status.is_some_and(|it| it.is_proven),
        is_kept_lost: kept.ensure_held().is_err(),
    })
}

/// The median, the nineteenth of twenty, and the longest.
fn show(mut times: Vec<Duration>) -> String {
    times.sort_unstable();
    let at = |part: usize| times[(times.len() - 1) * part / 100].as_secs_f64();
    format!("{:.1} / {:.1} / {:.1} s", at(50), at(95), at(100))
}

#[test]
#[ignore = "a measurement of minutes"]
fn what_a_failover_costs() {
    let number = env::var("REDLATCH_FAILOVERS").map_or(10, |number| number.parse().unwrap());
    for (name, kind) in [
        ("killed", Kind::Kill),
        ("SENTINEL FAILOVER", Kind::Forced),
        ("SENTINEL FAILOVER COORDINATED", Kind::Coordinated),
    ] {
        let mut group = SentinelGroup::start(2);
        let url = format!("{}?replicas=2", group.url());
        adopt_for(&group.servers[0], "replicas=2");
        let holder = client(&url);
        let other = client(&url);
        let keep = || {
            let request = holder.request("kept").ttl(TTL).keep_alive();
            request
                .try_lock_for(3 * LIMIT)
                .unwrap()
                .expect("it is free")
        };
        let mut kept = keep();
        let mut failovers = Vec::new();
        for _ in 0..number {
            let Some(failover) = fail_over(&mut group, kind, &kept, &other) else {
                break;
            };
            if failover.is_kept_lost {
                kept = keep();
            }
            failovers.push(failover);
        }
        if failovers.is_empty() {
            println!("{name}: the servers know none");
            continue;
        }
        let proven = failovers.iter().filter(|it| it.is_proven).count();
        let lost = failovers.iter().filter(|it| it.is_kept_lost).count();
        let took = show(failovers.iter().map(|it| it.took).collect());
        let paused = show(failovers.iter().map(|it| it.paused).collect());
        println!(
            "{name}: {} failovers, {proven} proven, {lost} kept locks lost; the next lock {took} \
             after the loss, {paused} after the promotion",
            failovers.len()
        );
    }
}
