//! Connections that are cut, that are silent, and that lose a request or its reply.

use redlatch::Error;
use std::thread;
use std::time::{Duration, Instant};
use support::zookeeper::{Direction, Link, Shared};
use support::{eventually, needs_zookeeper};

use crate::operator::{MOMENT, Operator};
use crate::rig::{assert_held_for, client, keep, loss, through, wait_for};
use crate::{LIMIT, LONG};

/// The timeout of most sessions: a third of it, one second, is that of a request.
const TIMEOUT: Duration = Duration::from_secs(3);

#[test]
fn connections_that_are_cut_cost_neither_the_lock_nor_the_place() {
    let shared = needs_zookeeper!().shared();
    let link = Link::to(shared[0].port());
    let directory = format!("{}/a", shared.root());
    let clients = [(); 2].map(|()| client(&through(&link, shared.root()), TIMEOUT));
    let mut operator = Operator::new(shared[0].port());
    thread::scope(|scope| {
        let guard = keep(&clients[0], "a");
        let waiting = wait_for(scope, &clients[1], "a");
        operator.await_count(&directory, 2);
        let before = operator.list(&directory);
        for _ in 0..5 {
            link.cut();
            assert_held_for(&guard, MOMENT);
        }
        assert_eq!(
            operator.list(&directory),
            before,
            "both have the znodes that they had"
        );
        assert_eq!(guard.release(), Ok(()));
        let (_, next) = waiting.join().unwrap();
        assert_eq!(operator.list(&directory), before[1..]);
        assert_eq!(next.release(), Ok(()));
    });
}

#[test]
fn a_wake_up_that_comes_while_the_waiter_is_cut_off_is_not_lost() {
    let shared = needs_zookeeper!().shared();
    let link = Link::to(shared[0].port());
    let holder = client(&shared.url(), TIMEOUT);
    let waiter = client(&through(&link, shared.root()), TIMEOUT);
    let mut operator = Operator::new(shared[0].port());
    thread::scope(|scope| {
        let guard = holder.lock("a", LONG).unwrap();
        let waiting = wait_for(scope, &waiter, "a");
        operator.await_count(&format!("{}/a", shared.root()), 2);
        link.refuse(true);
        assert_eq!(guard.release(), Ok(()));
        thread::sleep(MOMENT);
        assert!(!waiting.is_finished());
        link.refuse(false);
        assert_eq!(waiting.join().unwrap().1.ensure_held(), Ok(()));
    });
}

/// Two links to the same server, and the URL of both.
fn two_links(shared: &Shared) -> ([Link; 2], String) {
    let links = [(); 2].map(|()| Link::to(shared[0].port()));
    let url = format!(
        "zk://127.0.0.1:{},127.0.0.1:{}{}",
        links[0].port(),
        links[1].port(),
        shared.root()
    );
    (links, url)
}

#[test]
fn a_connection_that_is_silent_is_left_in_time() {
    let timeout = Duration::from_secs(7);
    let shared = needs_zookeeper!().shared();
    for directions in [
        vec![Direction::Back],
        vec![Direction::Forth, Direction::Back],
    ] {
        let (links, url) = two_links(&shared);
        let client = client(&url, timeout);
        let guard = keep(&client, "a");
        let used = usize::from(links[1].delivered(Direction::Forth) > 0);
        directions
            .iter()
            .for_each(|direction| links[used].hold(*direction));
        // One seventh until it is left, and two of the other three for the next server.
        assert_held_for(&guard, timeout * 4 / 7);
        assert!(
            links[1 - used].delivered(Direction::Back) > 0,
            "it uses the other connection"
        );
        assert_eq!(guard.release(), Ok(()));
    }
}

#[test]
fn a_create_whose_reply_is_lost_is_found_again() {
    let shared = needs_zookeeper!().shared();
    let link = Link::to(shared[0].port());
    let directory = format!("{}/a", shared.root());
    let client = client(&through(&link, shared.root()), TIMEOUT);
    let mut operator = Operator::new(shared[0].port());
    // The session has begun, and the lock's directory is there.
    client.lock("a", LONG).unwrap().release().unwrap();
    thread::scope(|scope| {
        link.hold(Direction::Back);
        let waiting = wait_for(scope, &client, "a");
        operator.await_count(&directory, 1);
        link.cut();
        link.release(Direction::Back);
        let (_, guard) = waiting.join().unwrap();
        assert_eq!(
            operator.list(&directory).len(),
            1,
            "there is no second znode"
        );
        assert_eq!(guard.release(), Ok(()));
        assert_eq!(operator.list(&directory), [""; 0]);
    });
}

#[test]
fn a_wait_that_ends_without_a_reply_to_its_create_leaves_nothing() {
    let shared = needs_zookeeper!().shared();
    let link = Link::to(shared[0].port());
    let directory = format!("{}/a", shared.root());
    let client = client(&through(&link, shared.root()), Duration::from_secs(10));
    let mut operator = Operator::new(shared[0].port());
    client.lock("a", LONG).unwrap().release().unwrap();
    link.hold(Direction::Back);
    assert!(
        client.request("a").ttl(LONG).try_lock_for(MOMENT).is_err(),
        "nothing is known of the lock"
    );
    operator.await_count(&directory, 1);
    link.cut();
    link.release(Direction::Back);
    // Long before the session would end.
    let began = Instant::now();
    operator.await_count(&directory, 0);
    assert!(began.elapsed() < Duration::from_secs(8));
}

/// The guard is released while the link holds this direction: it is not known whether it is.
fn release_in_vain(direction: Direction) {
    let shared = needs_zookeeper!().shared();
    let link = Link::to(shared[0].port());
    let directory = format!("{}/a", shared.root());
    let holder = client(&through(&link, shared.root()), TIMEOUT);
    let other = client(&shared.url(), TIMEOUT);
    let mut operator = Operator::new(shared[0].port());
    let guard = holder.lock("a", LONG).unwrap();
    link.hold(direction);
    let Err(Error::NoQuorum(error)) = guard.release() else {
        panic!("no server answers")
    };
    assert_eq!(error.reports().len(), 1);
    let is_carried_out = direction == Direction::Back;
    assert_eq!(operator.list(&directory).is_empty(), is_carried_out);
    link.release(direction);
    assert!(
        other
            .request("a")
            .ttl(LONG)
            .try_lock_for(LIMIT)
            .unwrap()
            .is_some()
    );
}

#[test]
fn a_release_without_a_reply_says_so_and_is_carried_out() {
    release_in_vain(Direction::Back);
}

#[test]
fn a_release_that_does_not_arrive_says_so_and_is_carried_out_later() {
    release_in_vain(Direction::Forth);
}

#[test]
fn a_guard_that_is_dropped_without_a_connection_frees_the_lock_later() {
    let shared = needs_zookeeper!().shared();
    let link = Link::to(shared[0].port());
    let timeout = Duration::from_secs(10);
    let holder = client(&through(&link, shared.root()), timeout);
    let other = client(&shared.url(), timeout);
    let guard = keep(&holder, "a");
    link.refuse(true);
    drop(guard);
    assert!(other.try_lock("a", LONG).unwrap().is_none());
    link.refuse(false);
    // Long before the session would end.
    let began = Instant::now();
    assert!(
        other
            .request("a")
            .ttl(LONG)
            .try_lock_for(LIMIT)
            .unwrap()
            .is_some()
    );
    assert!(began.elapsed() < timeout / 2, "{:?}", began.elapsed());
}

#[test]
fn an_extension_without_an_answer_leaves_the_lock_as_it_was() {
    let shared = needs_zookeeper!().shared();
    let link = Link::to(shared[0].port());
    let client = client(&through(&link, shared.root()), Duration::from_secs(10));
    let mut guard = client.lock("a", LONG).unwrap();
    let before = guard.remaining();
    let began = Instant::now();
    link.hold(Direction::Back);
    assert!(matches!(guard.extend(LONG), Err(Error::NoQuorum(_))));
    if began.elapsed() < before {
        assert_eq!(loss(&guard), None);
    }
    link.release(Direction::Back);
    assert!(
        eventually(LIMIT, || guard.extend(LONG).is_ok()),
        "{:?}",
        loss(&guard)
    );
    assert_eq!(guard.release(), Ok(()));
}

#[test]
fn a_second_connection_of_the_session_costs_neither_the_lock_nor_the_place() {
    let shared = needs_zookeeper!().shared();
    let directory = format!("{}/a", shared.root());
    let clients = [(); 2].map(|()| client(&shared.url(), Duration::from_secs(7)));
    let mut operator = Operator::new(shared[0].port());
    thread::scope(|scope| {
        let guard = keep(&clients[0], "a");
        let waiting = wait_for(scope, &clients[1], "a");
        operator.await_count(&directory, 2);
        let before = operator.list(&directory);
        for path in operator.paths(&directory) {
            // The server closes the connection of the client, which connects again.
            operator.take_over_session(&path, None);
            assert_held_for(&guard, MOMENT);
        }
        assert_eq!(operator.list(&directory), before);
        assert_eq!(guard.release(), Ok(()));
        waiting.join().unwrap().1.release().unwrap();
    });
}

#[test]
fn errors_of_an_ensemble_name_no_urls_of_redis() {
    let shared = needs_zookeeper!().shared();
    let link = Link::to(shared[0].port());
    link.refuse(true);
    let client = client(&through(&link, shared.root()), TIMEOUT);
    let Err(Error::NoQuorum(error)) = client.try_lock("a", LONG) else {
        panic!("nobody answers")
    };
    let text = error.to_string();
    assert!(!text.contains("rediss://"), "{text}");
}
