//! What the interface means on ZooKeeper, as far as the programs for all backends do not ask.

use redlatch::error::TtlError;
use redlatch::{Error, LockGuard};
use std::thread;
use std::time::{Duration, Instant};
use support::zookeeper::{Ensemble, ask};
use support::{eventually, needs_zookeeper};

use crate::operator::Operator;
use crate::rig::{assert_held_for, client, keep};
use crate::{LIMIT, LONG};

#[test]
fn nobody_holds_a_lock_for_longer_than_a_dead_session_surely_lives() {
    let timeout = Duration::from_secs(4);
    let shared = needs_zookeeper!().shared();
    let client = client(&shared.url(), timeout);
    let hold = |least| {
        client
            .request("a")
            .ttl(LONG)
            .hold_at_least(least)
            .try_lock()
    };
    let least = timeout / 2 + Duration::from_millis(1);
    let expected = TtlError::HoldTooLong {
        hold_at_least: least,
        longest: timeout / 2,
    };
    assert_eq!(hold(least).err(), Some(Error::Ttl(expected)));
    assert!(hold(timeout / 2).unwrap().is_some());
}

/// A number of the server's own statistics.
#[track_caller]
fn statistic(ensemble: &Ensemble, name: &str) -> u64 {
    let text = ask(ensemble[0].port(), "mntr").expect("the server answers");
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    line.and_then(|value| value.trim().parse().ok())
        .expect("it has this statistic")
}

/// Counts the transactions in three times the timeout of the session: one for each beat.
#[track_caller]
fn assert_beats_alone(ensemble: &Ensemble, timeout: Duration) {
    let mut operator = Operator::new(ensemble[0].port());
    let began = Instant::now();
    let first = operator.last_transaction();
    let packets = statistic(ensemble, "zk_packets_received");
    thread::sleep(timeout * 3);
    let written = operator.last_transaction() - first;
    let packets = statistic(ensemble, "zk_packets_received") - packets;
    let beats = began.elapsed().as_secs_f64() / (timeout.as_secs_f64() / 7.0);
    assert!(
        written >= 18 && written as f64 <= beats + 2.0,
        "{written} writes of {beats}"
    );
    // With those of the operator, who has asked twice, and of this function.
    assert!(
        packets as f64 <= beats + 8.0,
        "{packets} packets in {beats} beats"
    );
}

#[test]
fn a_lock_that_is_kept_alive_costs_beats_alone() {
    let timeout = Duration::from_secs(2);
    let ensemble = needs_zookeeper!().start(1);
    let client = client(&ensemble.url("/locks"), timeout);
    let request = client.request("a").ttl(Duration::from_millis(500));
    let guard = request.keep_alive().lock().unwrap();
    thread::scope(|scope| {
        scope.spawn(|| assert_held_for(&guard, timeout * 3));
        assert_beats_alone(&ensemble, timeout);
    });
    assert_eq!(guard.release(), Ok(()));
}

/// kazoo #732, ZOOKEEPER-706: a client of many locks is no burden.
#[test]
fn a_thousand_locks_cost_the_beats_of_one_and_end_with_their_client() {
    let timeout = Duration::from_secs(3);
    let ensemble = needs_zookeeper!().start(1);
    let client = client(&ensemble.url("/locks"), timeout);
    let guards: Vec<LockGuard> = (0..1_000)
        .map(|number| keep(&client, &format!("lock {number}")))
        .collect();
    assert_eq!(statistic(&ensemble, "zk_ephemerals_count"), 1_000);
    assert_beats_alone(&ensemble, timeout);
    assert!(guards.iter().all(|guard| guard.ensure_held().is_ok()));
    let timed_out = || {
        ensemble[0]
            .log()
            .matches("timeout of 3000ms exceeded")
            .count()
    };
    let before = timed_out();
    // Their order decides nothing: the last one of both ends the session.
    drop((guards, client));
    assert!(eventually(LIMIT, || statistic(
        &ensemble,
        "zk_ephemerals_count"
    ) == 0));
    // Not because the session has timed out, for which a busy machine leaves it time.
    assert_eq!(timed_out(), before);
}

#[test]
fn threads_of_a_client_hand_over_without_writing() {
    const GRANTS: usize = 400;
    let shared = needs_zookeeper!().shared();
    let client = client(&shared.url(), Duration::from_secs(7));
    let directory = format!("{}/a", shared.root());
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                (0..GRANTS / 4).for_each(|_| client.lock("a", LONG).unwrap().release().unwrap());
            });
        }
    });
    // The number of the next znode: this many were created before it.
    let guard = client.lock("a", LONG).unwrap();
    let names = Operator::new(shared[0].port()).list(&directory);
    let (_, number) = names[0].rsplit_once('-').unwrap();
    let created = number.parse::<usize>().unwrap();
    assert!(created < GRANTS / 2, "{created} znodes for {GRANTS} grants");
    guard.release().unwrap();
}

#[test]
fn tokens_grow_over_locks_clients_and_elections() {
    let mut ensemble = needs_zookeeper!().ensemble(3).sync_limit(4).start();
    let clients = [(); 2].map(|()| client(&ensemble.url("/locks"), Duration::from_secs(10)));
    let mut last = None;
    for round in 0..20 {
        if round == 10 {
            let leader = ensemble.leader();
            ensemble[leader].restart();
        }
        let name = format!("lock {}", round % 3);
        let request = clients[round % 2].request(name).ttl(LONG).fenced();
        let lock = request.try_lock_for(LIMIT).unwrap().unwrap();
        assert!(
            lock.fencing_token() > last,
            "{:?} after {last:?}",
            lock.fencing_token()
        );
        last = lock.fencing_token();
        // One that is lost with the election has its token anyway.
        drop(lock);
    }
}
