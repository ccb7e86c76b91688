//! Sessions that end before their clients do, and znodes that an operator removes.

use redlatch::{Error, LossReason};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};
use support::{eventually, needs_zookeeper};

use crate::operator::{MOMENT, Operator};
use crate::rig::{assert_held_for, builder, client, keep, loss, told, wait_for};
use crate::{LIMIT, LONG};

/// What a busy machine may add to a limit.
const SLACK: Duration = Duration::from_secs(2);

#[test]
fn a_holder_whose_session_has_expired_is_told_at_once_and_the_waiter_has_the_lock() {
    let shared = needs_zookeeper!().shared();
    let directory = format!("{}/a", shared.root());
    let clients = [(); 2].map(|()| client(&shared.url(), Duration::from_secs(10)));
    let mut operator = Operator::new(shared[0].port());
    thread::scope(|scope| {
        let guards = ["a", "b"].map(|name| keep(&clients[0], name));
        let told = guards.each_ref().map(told);
        let waiting = wait_for(scope, &clients[1], "a");
        operator.await_count(&directory, 2);
        let began = Instant::now();
        operator.expire_in(&directory, 0);
        for told in told {
            assert_eq!(told.recv_timeout(LIMIT), Ok(LossReason::Gone));
        }
        assert!(
            began.elapsed() < SLACK,
            "long before a beat: {:?}",
            began.elapsed()
        );
        assert_eq!(
            guards.each_ref().map(loss),
            [Some(LossReason::Gone); 2],
            "all of its locks"
        );
        let (granted_at, next) = waiting.join().unwrap();
        assert!(granted_at - began < SLACK);
        // The late release of the first frees nothing.
        for guard in guards {
            let Err(Error::Lost(lost)) = guard.release() else {
                panic!("it was lost")
            };
            assert_eq!(lost.reason(), LossReason::Gone);
        }
        assert_held_for(&next, MOMENT);
        // The client goes on in another session.
        assert_eq!(clients[0].lock("b", LONG).unwrap().release(), Ok(()));
    });
}

#[test]
fn a_waiter_whose_session_has_expired_waits_on_at_the_end_of_the_queue() {
    let shared = needs_zookeeper!().shared();
    let directory = format!("{}/a", shared.root());
    let clients = [(); 3].map(|()| client(&shared.url(), Duration::from_secs(10)));
    let mut operator = Operator::new(shared[0].port());
    thread::scope(|scope| {
        let guard = keep(&clients[0], "a");
        let first = wait_for(scope, &clients[1], "a");
        operator.await_count(&directory, 2);
        let second = wait_for(scope, &clients[2], "a");
        operator.await_count(&directory, 3);
        let before = operator.list(&directory);
        operator.expire_in(&directory, 1);
        let joined = || {
            let now = operator.list(&directory);
            now.len() == 3 && now[..2] == [before[0].clone(), before[2].clone()]
        };
        assert!(
            eventually(LIMIT, joined),
            "it joins again, behind the others"
        );
        guard.release().unwrap();
        let (_, second) = second.join().unwrap();
        assert!(!first.is_finished());
        second.release().unwrap();
        assert_eq!(first.join().unwrap().1.release(), Ok(()));
    });
}

#[test]
fn a_holder_whose_znode_was_removed_is_told_within_a_beat() {
    let timeout = Duration::from_secs(7);
    let shared = needs_zookeeper!().shared();
    let directory = format!("{}/a", shared.root());
    let clients = [(); 2].map(|()| client(&shared.url(), timeout));
    let mut operator = Operator::new(shared[0].port());
    thread::scope(|scope| {
        let guard = keep(&clients[0], "a");
        let other = keep(&clients[0], "b");
        let told = told(&guard);
        let waiting = wait_for(scope, &clients[1], "a");
        operator.await_count(&directory, 2);
        let removed_at = Instant::now();
        operator.delete_in(&directory, 0);
        assert_eq!(told.recv_timeout(LIMIT), Ok(LossReason::Gone));
        assert!(
            removed_at.elapsed() < timeout / 7 + SLACK,
            "{:?}",
            removed_at.elapsed()
        );
        assert_eq!((loss(&guard), loss(&other)), (Some(LossReason::Gone), None));
        assert_eq!(waiting.join().unwrap().1.release(), Ok(()));
    });
}

#[test]
fn a_holder_that_asks_learns_of_the_removal_at_once() {
    let shared = needs_zookeeper!().shared();
    let directory = format!("{}/a", shared.root());
    let client = client(&shared.url(), Duration::from_secs(10));
    let mut operator = Operator::new(shared[0].port());
    let mut guard = client.lock("a", LONG).unwrap();
    operator.delete_in(&directory, 0);
    let Err(Error::Lost(lost)) = guard.extend(LONG) else {
        panic!("it was lost")
    };
    assert_eq!(
        (lost.reason(), loss(&guard)),
        (LossReason::Gone, Some(LossReason::Gone))
    );
    let guard = client.lock("a", LONG).unwrap();
    operator.delete_in(&directory, 0);
    let Err(Error::Lost(lost)) = guard.release() else {
        panic!("it was lost")
    };
    assert_eq!(lost.reason(), LossReason::Gone);
}

#[test]
fn a_waiter_whose_znode_was_removed_makes_another_one() {
    let shared = needs_zookeeper!().shared();
    let directory = format!("{}/a", shared.root());
    let clients = [(); 2].map(|()| client(&shared.url(), Duration::from_secs(4)));
    let mut operator = Operator::new(shared[0].port());
    thread::scope(|scope| {
        let guard = keep(&clients[0], "a");
        let waiting = wait_for(scope, &clients[1], "a");
        operator.await_count(&directory, 2);
        operator.delete_in(&directory, 1);
        operator.await_count(&directory, 2);
        assert!(!waiting.is_finished());
        guard.release().unwrap();
        assert_eq!(waiting.join().unwrap().1.release(), Ok(()));
    });
}

#[test]
fn what_was_lost_is_told_as_an_event() {
    let shared = needs_zookeeper!().shared();
    let lost = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&lost);
    let builder = builder(&shared.url(), Duration::from_secs(10)).on_event(move |event| {
        if let redlatch::Event::Lost {
            resource, reason, ..
        } = event
        {
            seen.lock()
                .unwrap()
                .push((resource.as_bytes().to_vec(), *reason));
        }
    });
    let client = builder.build().unwrap();
    let _guards = ["a", "b"].map(|name| keep(&client, name));
    let mut operator = Operator::new(shared[0].port());
    operator.expire_in(&format!("{}/a", shared.root()), 0);
    assert!(eventually(LIMIT, || lost.lock().unwrap().len() == 2));
    let mut lost = lost.lock().unwrap().clone();
    lost.sort_by(|one, other| one.0.cmp(&other.0));
    let gone = |name: &str| (name.as_bytes().to_vec(), LossReason::Gone);
    assert_eq!(lost, [gone("a"), gone("b")]);
}
