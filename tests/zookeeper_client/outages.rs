//! Servers that are killed, stopped, restarted, cut off from the others, or behind them.

use redlatch::error::NodeAnswer;
use redlatch::{Error, LossReason};
use std::thread;
use std::time::{Duration, Instant};
use support::zookeeper::{Ensemble, EnsembleBuilder, Installed, Link};
use support::{eventually, needs_zookeeper};

use crate::operator::{MOMENT, Operator};
use crate::rig::{assert_held_for, client, keep, loss, wait_for};
use crate::{LIMIT, LONG};

const ROOT: &str = "/locks";
const DIRECTORY: &str = "/locks/a";

/// What a busy machine may add to a limit.
const SLACK: Duration = Duration::from_secs(1);

fn three(zookeeper: &'static Installed) -> EnsembleBuilder {
    zookeeper.ensemble(3).sync_limit(4)
}

#[test]
fn a_rolling_restart_costs_neither_the_lock_nor_the_place() {
    let zookeeper = needs_zookeeper!();
    let mut ensemble = three(zookeeper).start();
    let clients = [(); 2].map(|()| client(&ensemble.url(ROOT), Duration::from_secs(10)));
    thread::scope(|scope| {
        let guard = keep(&clients[0], "a");
        let waiting = wait_for(scope, &clients[1], "a");
        let mut operator = Operator::new(ensemble[0].port());
        operator.await_count(DIRECTORY, 2);
        let before = operator.list(DIRECTORY);
        for server in 0..3 {
            thread::scope(|scope| {
                // From here on until the server has come back.
                let (done, is_done) = std::sync::mpsc::channel::<()>();
                let guard = &guard;
                scope.spawn(move || {
                    while is_done.try_recv().is_err() {
                        assert_eq!(guard.ensure_held(), Ok(()));
                        thread::sleep(Duration::from_millis(10));
                    }
                });
                ensemble[server].restart();
                ensemble.await_serving();
                done.send(()).unwrap();
            });
        }
        assert_eq!(Operator::new(ensemble[0].port()).list(DIRECTORY), before);
        assert!(!waiting.is_finished());
        assert_eq!(guard.release(), Ok(()));
        waiting.join().unwrap().1.release().unwrap();
    });
}

#[test]
fn servers_that_are_stopped_are_left_in_time() {
    let zookeeper = needs_zookeeper!();
    let timeout = Duration::from_secs(7);
    let mut ensemble = three(zookeeper).start();
    let client = client(&ensemble.url(ROOT), timeout);
    let guard = keep(&client, "a");
    for follower in ensemble.followers() {
        ensemble[follower].pause();
        assert_held_for(&guard, timeout * 4 / 7);
        ensemble[follower].resume();
        ensemble.await_serving();
    }
    assert_eq!(guard.release(), Ok(()));
}

/// A server loses the others while its client holds the lock: that one stops believing before
/// another client has it, at a server of the majority.
fn part(ensemble: &Ensemble, server: usize) {
    let timeout = Duration::from_secs(4);
    let others = (0..3)
        .filter(|other| *other != server)
        .map(|other| ensemble[other].port());
    let others: Vec<String> = others.map(|port| format!("127.0.0.1:{port}")).collect();
    let holder = client(&format!("{}{ROOT}", ensemble[server].url()), timeout);
    let waiter = client(&format!("zk://{}{ROOT}", others.join(",")), timeout);
    thread::scope(|scope| {
        let guard = keep(&holder, "a");
        let waiting = wait_for(scope, &waiter, "a");
        Operator::new(ensemble[server].port()).await_count(DIRECTORY, 2);
        // Connecting proves the session for a whole timeout. From then on, a beat proves it from
        // two sevenths before.
        assert_held_for(&guard, timeout * 3 / 7);
        let cut_at = Instant::now();
        ensemble.links().stall_from(server);
        ensemble.links().stall_to(server);
        let lost = guard.wait_lost(LIMIT).expect("it is lost");
        let lost_at = Instant::now();
        assert_eq!(lost.reason(), LossReason::Expired);
        assert!(
            lost_at - cut_at <= timeout * 5 / 7 + SLACK,
            "{:?}",
            lost_at - cut_at
        );
        let (granted_at, next) = waiting.join().unwrap();
        assert!(
            lost_at < granted_at,
            "two holders for {:?}",
            lost_at - granted_at
        );
        ensemble.links().heal();
        // A lock that was lost does not come back, and its late release frees nothing.
        assert!(guard.release().is_err());
        assert_held_for(&next, MOMENT);
        assert!(
            holder
                .request("b")
                .ttl(LONG)
                .try_lock_for(LIMIT)
                .unwrap()
                .is_some(),
            "the client goes on"
        );
        assert_eq!(next.ensure_held(), Ok(()));
    });
}

#[test]
fn a_holder_at_a_follower_without_its_leader_stops_before_another_begins() {
    let zookeeper = needs_zookeeper!();
    let ensemble = three(zookeeper).with_links().start();
    part(&ensemble, ensemble.followers()[0]);
}

#[test]
fn a_holder_at_a_leader_without_its_followers_stops_before_another_begins() {
    let zookeeper = needs_zookeeper!();
    let ensemble = three(zookeeper).with_links().start();
    part(&ensemble, ensemble.leader());
}

#[test]
fn without_a_majority_the_holder_stops_and_waiters_go_on_when_it_is_back() {
    let zookeeper = needs_zookeeper!();
    let timeout = Duration::from_secs(4);
    let mut ensemble = three(zookeeper).start();
    let url = ensemble.url(ROOT);
    let [holder, waiter, other] = [(); 3].map(|()| client(&url, timeout));
    thread::scope(|scope| {
        let guard = keep(&holder, "a");
        let waiting = wait_for(scope, &waiter, "a");
        Operator::new(ensemble[0].port()).await_count(DIRECTORY, 2);
        let cut_at = Instant::now();
        for follower in ensemble.followers() {
            ensemble[follower].kill();
        }
        let lost = guard.wait_lost(LIMIT).expect("it is lost");
        assert_eq!(lost.reason(), LossReason::Expired);
        // Well before the session can end.
        let most = timeout;
        assert!(cut_at.elapsed() <= most, "{:?}", cut_at.elapsed());
        let Err(Error::NoQuorum(error)) = other.request("a").ttl(LONG).try_lock_for(SLACK * 2)
        else {
            panic!("no server has a majority")
        };
        assert_eq!(error.reports().len(), 3);
        let text = error.to_string();
        for port in ensemble.ports() {
            assert!(text.contains(&port.to_string()), "{text}");
        }
        assert!(
            error
                .reports()
                .iter()
                .any(|it| matches!(it.answer, NodeAnswer::Failed(_)))
        );
        assert!(!waiting.is_finished());
        (0..3).for_each(|server| ensemble[server].restart());
        assert!(guard.release().is_err());
        assert_eq!(waiting.join().unwrap().1.release(), Ok(()));
    });
}

#[test]
fn a_waiter_whose_deadline_comes_without_a_majority_is_told_so() {
    let zookeeper = needs_zookeeper!();
    let mut ensemble = three(zookeeper).start();
    let [holder, waiter] = [(); 2].map(|()| client(&ensemble.url(ROOT), Duration::from_secs(4)));
    let _guard = keep(&holder, "a");
    let wait = Duration::from_secs(5);
    thread::scope(|scope| {
        let waiting = scope.spawn(|| {
            waiter
                .request("a")
                .ttl(LONG)
                .try_lock_for(wait)
                .map(|it| it.is_some())
        });
        Operator::new(ensemble[0].port()).await_count(DIRECTORY, 2);
        for follower in ensemble.followers() {
            ensemble[follower].kill();
        }
        let ended = waiting.join().unwrap();
        assert!(matches!(ended, Err(Error::NoQuorum(_))), "{ended:?}");
    });
}

#[test]
fn a_server_that_is_behind_is_not_used() {
    let zookeeper = needs_zookeeper!();
    // Long enough for the test, in which the follower does not notice that it is cut off.
    let ensemble = zookeeper.ensemble(3).with_links().sync_limit(40).start();
    let leader = ensemble.leader();
    let follower = ensemble.followers()[0];
    let links = [leader, follower].map(|server| Link::to(ensemble[server].port()));
    let url = format!(
        "zk://127.0.0.1:{},127.0.0.1:{}{ROOT}",
        links[0].port(),
        links[1].port()
    );
    links[1].refuse(true);
    let client = client(&url, Duration::from_secs(10));
    let guard = keep(&client, "a");
    ensemble.links().stall_to(follower);
    client.lock("b", LONG).unwrap().release().unwrap();
    links[1].refuse(false);
    links[0].cut();
    let refuses = || {
        ensemble[follower]
            .log()
            .contains("client must try another server")
    };
    assert!(eventually(LIMIT, refuses), "it is tried next");
    assert_held_for(&guard, Duration::from_secs(5));
    assert_eq!(client.lock("b", LONG).unwrap().release(), Ok(()));
    ensemble.links().heal();
    assert_eq!((loss(&guard), guard.release()), (None, Ok(())));
}

#[test]
fn a_server_that_can_only_be_read_is_not_used() {
    let zookeeper = needs_zookeeper!();
    let mut ensemble = three(zookeeper)
        .property("readonlymode.enabled=true")
        .start();
    let followers = ensemble.followers();
    let left = ensemble.leader();
    let client = client(&ensemble.url(ROOT), Duration::from_secs(4));
    for follower in &followers {
        ensemble[*follower].kill();
    }
    let port = ensemble[left].port();
    let is_read_only =
        || support::zookeeper::ask(port, "isro").is_ok_and(|answer| answer.trim() == "ro");
    assert!(eventually(LIMIT, is_read_only));
    let refused = client
        .request("a")
        .ttl(LONG)
        .try_lock_for(Duration::from_secs(2));
    assert!(matches!(refused, Err(Error::NoQuorum(_))), "{refused:?}");
    for follower in &followers {
        ensemble[*follower].restart();
    }
    ensemble.await_serving();
    assert!(
        client
            .request("a")
            .ttl(LONG)
            .try_lock_for(LIMIT)
            .unwrap()
            .is_some()
    );
}
