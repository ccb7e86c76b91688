//! What has gone wrong in other libraries: see the table of this program.

use redlatch::{CancelToken, Error, LockClient, LossReason};
use std::collections::BTreeSet;
use std::thread;
use std::time::{Duration, Instant};
use support::zookeeper::{Direction, Link};
use support::{eventually, needs_zookeeper};

use crate::operator::{MOMENT, Operator};
use crate::rig::{assert_held_for, client, keep, loss, through, wait_for};
use crate::{LIMIT, LONG};

/// As long as servers of the tests allow.
const TIMEOUT: Duration = Duration::from_secs(10);

/// A client behind the link whose session has begun, another one, and the directory of the lock.
fn begin(shared: &support::zookeeper::Shared, link: &Link) -> (LockClient, LockClient, Operator) {
    let linked = client(&through(link, shared.root()), TIMEOUT);
    let other = client(&shared.url(), TIMEOUT);
    linked.lock("a", LONG).unwrap().release().unwrap();
    (linked, other, Operator::new(shared[0].port()))
}

/// CURATOR-79, CURATOR-462.
#[test]
fn a_wait_that_is_cancelled_without_a_reply_to_its_create_leaves_nothing() {
    let shared = needs_zookeeper!().shared();
    let link = Link::to(shared[0].port());
    let directory = format!("{}/a", shared.root());
    let (linked, other, mut operator) = begin(&shared, &link);
    let token = CancelToken::new();
    link.hold(Direction::Back);
    thread::scope(|scope| {
        let waiting = scope.spawn(|| linked.request("a").ttl(LONG).cancelled_by(&token).lock());
        operator.await_count(&directory, 1);
        token.cancel();
        assert_eq!(waiting.join().unwrap().err(), Some(Error::Cancelled));
    });
    link.cut();
    link.release(Direction::Back);
    let began = Instant::now();
    assert!(
        other
            .request("a")
            .ttl(LONG)
            .try_lock_for(LIMIT)
            .unwrap()
            .is_some()
    );
    assert!(
        began.elapsed() < TIMEOUT / 2,
        "before the end of the session"
    );
}

/// CURATOR-106, CURATOR-42.
#[test]
fn many_releases_without_a_connection_are_all_carried_out_later() {
    const LOCKS: usize = 500;
    let shared = needs_zookeeper!().shared();
    let link = Link::to(shared[0].port());
    let (linked, other, _) = begin(&shared, &link);
    let name = |number: usize| format!("many-{number}");
    let guards: Vec<_> = (0..LOCKS)
        .map(|number| keep(&linked, &name(number)))
        .collect();
    link.refuse(true);
    drop(guards);
    thread::sleep(MOMENT);
    assert!(other.try_lock(name(0), LONG).unwrap().is_none());
    link.refuse(false);
    // The session of an operator ends while it has nothing to do.
    let mut operator = Operator::new(shared[0].port());
    for number in 0..LOCKS {
        operator.await_count(&format!("{}/{}", shared.root(), name(number)), 0);
    }
    assert_eq!(
        linked.lock("a", LONG).unwrap().release(),
        Ok(()),
        "the session goes on"
    );
}

/// zk-ruby #49, kazoo #732.
#[test]
fn callers_that_get_no_lock_leave_no_places_behind() {
    let shared = needs_zookeeper!().shared();
    let link = Link::to(shared[0].port());
    let directory = format!("{}/a", shared.root());
    let (linked, other, mut operator) = begin(&shared, &link);
    let guard = keep(&other, "a");
    thread::scope(|scope| {
        for number in 0..4_u64 {
            let linked = &linked;
            scope.spawn(move || {
                for round in 0..10 {
                    let wait = Duration::from_millis(10 + number * round);
                    // With the connection lost it is not known whether it could be had.
                    assert!(!matches!(
                        linked.request("a").ttl(LONG).try_lock_for(wait),
                        Ok(Some(_))
                    ));
                    assert!(!matches!(linked.try_lock("a", LONG), Ok(Some(_))));
                }
            });
        }
        for _ in 0..5 {
            thread::sleep(Duration::from_millis(50));
            link.cut();
        }
    });
    operator.await_count(&directory, 1);
    assert_eq!(guard.release(), Ok(()));
    assert_eq!(linked.lock("a", LONG).unwrap().release(), Ok(()));
}

/// kazoo #732.
#[test]
fn whoever_does_not_wait_writes_nothing() {
    let ensemble = needs_zookeeper!().start(1);
    let [holder, other] = [(); 2].map(|()| client(&ensemble.url("/locks"), TIMEOUT));
    let guard = keep(&holder, "a");
    assert!(other.try_lock("a", LONG).unwrap().is_none());
    let mut operator = Operator::new(ensemble[0].port());
    let began = Instant::now();
    let first = operator.last_transaction();
    for _ in 0..300 {
        assert!(other.try_lock("a", LONG).unwrap().is_none());
    }
    let beats = began.elapsed().as_secs_f64() / (TIMEOUT.as_secs_f64() / 7.0);
    let written = operator.last_transaction() - first;
    assert!(written as f64 <= beats + 1.0, "{written} writes");
    assert_eq!(guard.release(), Ok(()));
}

/// CURATOR-498, 604, 696: a znode of an earlier session is still there when the next one begins.
/// Here it is another client's, with a name that only that one can have drawn.
#[test]
fn a_znode_of_an_earlier_session_is_not_taken_for_ones_own() {
    let shared = needs_zookeeper!().shared();
    let directory = format!("{}/a", shared.root());
    let [holder, waiter] = [(); 2].map(|()| client(&shared.url(), TIMEOUT));
    let mut operator = Operator::new(shared[0].port());
    thread::scope(|scope| {
        let guard = keep(&holder, "a");
        let waiting = wait_for(scope, &waiter, "a");
        operator.await_count(&directory, 2);
        let before = operator.list(&directory);
        operator.expire_in(&directory, 1);
        let joined = || operator.list(&directory).len() == 2;
        assert!(eventually(LIMIT, joined));
        let after = operator.list(&directory);
        assert_eq!(after[0], before[0]);
        let id = |name: &str| name.rsplit_once("lock-").map(|(id, _)| id.to_owned());
        assert_ne!(
            id(&after[1]),
            id(&before[1]),
            "a name belongs to one session"
        );
        guard.release().unwrap();
        waiting.join().unwrap().1.release().unwrap();
    });
}

/// CURATOR-315, CURATOR-335, CURATOR-462, kazoo #429.
#[test]
fn permits_are_not_lost_with_connections() {
    const PERMITS: u32 = 3;
    let shared = needs_zookeeper!().shared();
    let link = Link::to(shared[0].port());
    let clients = [(); 4].map(|()| client(&through(&link, shared.root()), TIMEOUT));
    thread::scope(|scope| {
        let work = |client: &LockClient| {
            for round in 0..15 {
                let request = client.request("a").ttl(LONG).one_of(PERMITS);
                if round % 3 == 0 {
                    // Not waiting leaves nothing behind either, whatever becomes of it.
                    drop(request.clone().try_lock());
                }
                let permit = request
                    .try_lock_for(LIMIT)
                    .unwrap()
                    .expect("there are enough");
                assert!(permit.slot().is_some_and(|slot| slot < PERMITS));
                thread::sleep(Duration::from_millis(10));
                drop(permit);
            }
        };
        clients
            .iter()
            .for_each(|client| drop(scope.spawn(move || work(client))));
        for _ in 0..8 {
            thread::sleep(Duration::from_millis(60));
            link.cut();
        }
    });
    let take = || {
        clients[0]
            .request("a")
            .ttl(LONG)
            .one_of(PERMITS)
            .try_lock_for(LIMIT)
    };
    let all: Vec<_> = (0..PERMITS).map(|_| take().unwrap().unwrap()).collect();
    let slots: BTreeSet<_> = all.iter().map(|permit| permit.slot().unwrap()).collect();
    assert_eq!(slots.len(), PERMITS as usize, "none is missing");
}

/// CURATOR-595.
#[test]
fn permits_of_a_session_that_has_ended_go_to_others() {
    let shared = needs_zookeeper!().shared();
    let [holder, other] = [(); 2].map(|()| client(&shared.url(), TIMEOUT));
    let permit = |client: &LockClient| {
        let request = client.request("a").ttl(LONG).one_of(2);
        request.try_lock_for(LIMIT).unwrap().unwrap()
    };
    let held = [permit(&holder), permit(&holder)];
    let mut operator = Operator::new(shared[0].port());
    thread::scope(|scope| {
        let waiting = scope.spawn(|| permit(&other));
        operator.await_count(&format!("{}/a", shared.root()), 1);
        operator.expire_in(&format!("{}/a~shares", shared.root()), 0);
        let next = waiting.join().unwrap();
        // Whoever ends its session does not wait for the holder to hear of it.
        let are_lost = || held.iter().all(|permit| loss(permit).is_some());
        assert!(eventually(LIMIT, are_lost));
        assert_held_for(&next, MOMENT);
        // The client goes on, with a permit of its next session.
        let again = permit(&holder);
        assert_ne!(again.slot(), next.slot());
    });
}

/// CURATOR-307: a release after the loss of everything is an answer and no panic.
#[test]
fn a_release_after_the_directory_was_removed_says_that_the_lock_was_lost() {
    let shared = needs_zookeeper!().shared();
    let directory = format!("{}/a", shared.root());
    let client = client(&shared.url(), TIMEOUT);
    let mut operator = Operator::new(shared[0].port());
    let guard = client.lock("a", LONG).unwrap();
    operator.delete_in(&directory, 0);
    operator.delete(&directory);
    let lost = guard.release().map_err(|error| match error {
        Error::Lost(lost) => lost.reason(),
        other => panic!("{other:?}"),
    });
    assert_eq!(lost, Err(LossReason::Gone));
    // Its waiters go on in a new directory.
    let guard = client.lock("a", LONG).unwrap();
    assert_eq!(guard.release(), Ok(()));
}

/// ZOOKEEPER-3162: strangers in the directory are nobody's predecessor.
#[test]
fn foreign_names_in_the_directory_keep_nobody_waiting() {
    use redlatch_zookeeper::message::{Acl, CreateKind};

    let shared = needs_zookeeper!().shared();
    let client = client(&shared.url(), TIMEOUT);
    client.lock("a", LONG).unwrap().release().unwrap();
    let mut operator = Operator::new(shared[0].port());
    for name in [
        "leases",
        "x-0000000000",
        "lock-x",
        "_c_-lock-",
        "lock-99999999999999999999",
    ] {
        operator.create(&format!("{}/a/{name}", shared.root()), Acl::Anyone);
    }
    let sequential = format!("{}/a/x-", shared.root());
    operator.create_as(&sequential, Acl::Anyone, CreateKind::EphemeralSequential);
    for _ in 0..2 {
        let guard = client
            .try_lock("a", LONG)
            .unwrap()
            .expect("nobody else contends");
        assert_eq!(guard.release(), Ok(()));
    }
}
