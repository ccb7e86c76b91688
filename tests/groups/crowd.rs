//! Clients compete for a lock on one group, whose master is killed and stopped again and again,
//! each time with replicas that are late. With the rule of groups there are never two holders.
//! Without it there are, by the same record, when the group is one server behind a relay that leads
//! to the present master: so do libraries that know Sentinels and no reigns.
//!
//! `REDLATCH_CROWD_SECONDS` sets for how long (20).

use std::env;
use std::thread;
use std::time::{Duration, Instant};

use redlatch::LockClient;
use support::claims::{Claims, Over, work};
use support::cli::Value;
use support::eventually;
use support::locks::LIMIT;
use support::proxy::Proxy;
use support::sentinel::{SentinelGroup, info};

use super::adopt;

/// Longer than it takes to promote another server: a lock that was lost is held then.
const TTL: Duration = Duration::from_secs(5);
const BOUND: Duration = Duration::from_millis(500);
const CLIENTS: usize = 6;

fn time() -> Duration {
    let seconds = env::var("REDLATCH_CROWD_SECONDS").ok();
    Duration::from_secs(seconds.map_or(20, |seconds| seconds.parse().expect("a number")))
}

/// Has another server promoted. In every second turn the old one is stopped, and continues
/// afterwards; in the others it is killed, and what it has granted last is lost.
fn fail_over(
    group: &mut SentinelGroup,
    turn: usize,
    relay: &Proxy,
    lost_within: Duration,
    all_claims: &Claims,
) {
    let before = group.master();
    let replicas: Vec<_> = (0..group.servers.len()).filter(|it| *it != before).collect();
    replicas.iter().for_each(|it| group.servers[*it].pause());
    // They are stopped and cannot connect again: the locks of this time are not replicated.
    group.servers[before].command(&["CLIENT", "KILL", "TYPE", "replica"]);
    let since = Instant::now();
    eventually(lost_within, || all_claims.is_held(since, TTL));
    let is_stopped = turn % 2 == 1;
    if is_stopped {
        group.servers[before].pause();
    } else {
        group.servers[before].kill();
    }
    replicas.iter().for_each(|it| group.servers[*it].resume());
    assert!(eventually(3 * LIMIT, || group.master() != before), "nobody is promoted");
    let port = group.servers[group.master()].port().to_string();
    relay.lead_to(port.parse().expect("a port"));
    if is_stopped {
        group.servers[before].resume();
        thread::sleep(BOUND);
    } else {
        group.servers[before].restart();
    }
    let old = &group.servers[before];
    // Sentinel says so too, some seconds later.
    assert_eq!(old.command(&["REPLICAOF", "127.0.0.1", &port]), Value::ok());
    assert!(eventually(LIMIT, || info(old, "master_link_status") == "up"));
}

/// Fails over, again and again, until this is enough of the record.
fn storm(has_rule: bool, mut is_enough: impl FnMut(&Claims) -> bool) -> Claims {
    let mut group = SentinelGroup::start(2);
    adopt(&group.servers[0], "");
    let relay = Proxy::start(group.servers[0].port());
    let client = |_| {
        let builder = LockClient::builder().node_timeout(Duration::from_millis(300)).max_ttl(TTL);
        let builder = if has_rule {
            builder.nodes(format!("{}?replicas=2", group.url())).failover_bound(BOUND)
        } else {
            builder.nodes(relay.url()).restart_guard(false)
        };
        builder.build().expect("good settings")
    };
    let clients: Vec<_> = (0..CLIENTS).map(client).collect();
    let all_claims = Claims::default();
    // With the rule, there is a lock without a replica for as long as the bound at most.
    let lost_within = if has_rule { BOUND * 4 / 5 } else { LIMIT };
    thread::scope(|scope| {
        let _over = Over(&all_claims.is_over);
        for (number, client) in clients.iter().enumerate() {
            let all_claims = &all_claims;
            scope.spawn(move || work(number, client, TTL, all_claims));
        }
        for turn in 0.. {
            let since = Instant::now();
            let is_held = eventually(3 * LIMIT, || all_claims.is_held(since, TTL));
            assert!(is_held, "turn {turn}: no client gets the lock any more");
            fail_over(&mut group, turn, &relay, lost_within, &all_claims);
            if is_enough(&all_claims) {
                eprintln!("{} failovers, {} grants", turn + 1, all_claims.claims().len());
                break;
            }
        }
    });
    all_claims
}

#[test]
fn failovers_under_load_never_give_a_lock_to_two() {
    let start = Instant::now();
    let all_claims = storm(true, |_| start.elapsed() > time());
    assert_eq!(all_claims.two_holders().map(|pair| format!("{pair:?}")), None);
}

#[test]
fn without_the_rule_they_do() {
    let start = Instant::now();
    let all_claims = storm(false, |all_claims| {
        let is_seen = eventually(TTL, || all_claims.two_holders().is_some());
        assert!(is_seen || start.elapsed() < LIMIT * 3, "no double holder was seen");
        is_seen
    });
    let (first, second) = all_claims.two_holders().expect("seen before");
    assert_ne!(first.client, second.client);
}
