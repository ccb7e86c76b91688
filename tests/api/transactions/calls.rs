//! Transactions on real servers: two sides commit, or neither does, whatever fails in between.

use std::thread;
use std::time::{Duration, Instant};

use redlatch::transaction::{
    Decision, JoinError, NamesError, Participant, RecoverError, TransactionError, TransactionId,
};
use redlatch::{LockClient, RegisterError};
use support::cli;
use support::eventually;
use support::locks::LIMIT;
use support::redis::Server;

use super::group::{client, formed};
use super::shelf::{Shelf, Step};

const SHORT: Duration = Duration::from_millis(100);

pub(super) fn begin(client: &LockClient) -> TransactionId {
    client.transactions().begin(&["berlin", "paris"]).unwrap()
}

/// How many keys of registers a server has, besides its mark and its floor.
pub(super) fn keys(server: &Server) -> usize {
    let cli::Value::Array(keys) = server.command(&["KEYS", "*"]) else {
        panic!("no list")
    };
    let is_counted = |key: &cli::Value| {
        let key = key.text();
        key.contains(":redlatch:register:") || key.contains(":redlatch:promise:")
    };
    keys.iter().filter(|key| is_counted(key)).count()
}

/// Nothing of any transaction is left on the servers.
fn is_clean(client: &LockClient, servers: &[Server]) -> bool {
    let _ = client.registers().sweep().unwrap();
    client.transactions().list().unwrap().is_empty()
        && servers.iter().all(|server| keys(server) == 0)
}

/// Expects that nothing of any transaction stays on the servers.
#[track_caller]
pub(super) fn expect_clean(client: &LockClient, servers: &[Server]) {
    let is_left = || {
        let keys = servers.iter().map(|server| server.command(&["KEYS", "*"]));
        let keys: Vec<_> = keys.collect();
        let swept = client.registers().sweep();
        format!("{:?}, {swept:?}, {keys:?}", client.transactions().list())
    };
    assert!(
        eventually(LIMIT, || is_clean(client, servers)),
        "{}",
        is_left()
    );
}

#[test]
fn two_sides_commit_and_leave_nothing() {
    let (servers, first) = formed(3);
    let second = client(&servers);
    for _ in 0..10 {
        let id = begin(&first);
        let mut berlin = Shelf::default();
        let mut paris = Shelf::default();
        let decisions = thread::scope(|scope| {
            let other = scope.spawn(|| {
                second
                    .transactions()
                    .join(&id, "paris", &mut paris, LIMIT)
                    .unwrap()
            });
            [
                first
                    .transactions()
                    .join(&id, "berlin", &mut berlin, LIMIT)
                    .unwrap(),
                other.join().unwrap(),
            ]
        });
        assert_eq!(decisions, [Decision::Committed; 2]);
        for shelf in [&berlin, &paris] {
            assert_eq!((shelf.applied, shelf.is_empty()), (1, true));
        }
    }
    expect_clean(&first, &servers);
}

#[test]
fn who_waits_in_vain_aborts_and_the_other_learns_of_it() {
    let (servers, first) = formed(3);
    let id = begin(&first);
    let mut berlin = Shelf::default();
    let began = Instant::now();
    let decision = first
        .transactions()
        .join(&id, "berlin", &mut berlin, SHORT)
        .unwrap();
    assert_eq!(
        (decision, berlin.applied, berlin.rolled_back),
        (Decision::Aborted, 0, 1)
    );
    assert!(berlin.is_empty() && began.elapsed() >= SHORT);
    // It prepares nothing, and cannot tell this from a transaction that it has forgotten.
    let mut paris = Shelf::default();
    let decision = client(&servers)
        .transactions()
        .join(&id, "paris", &mut paris, LIMIT)
        .unwrap();
    assert_eq!((decision, paris.prepared_times), (Decision::Over, 0));
    expect_clean(&first, &servers);
}

/// Another process of its side has prepared, and has died.
#[test]
fn who_has_begun_it_does_not_prepare_again_what_is_prepared() {
    let (_servers, first) = formed(3);
    let id = first.transactions().begin(&["berlin"]).unwrap();
    let mut berlin = Shelf::default();
    berlin.prepare(&id).unwrap();
    let decision = first.transactions().join(&id, "berlin", &mut berlin, LIMIT);
    assert_eq!(decision.unwrap(), Decision::Committed);
    assert_eq!((berlin.prepared_times, berlin.applied), (1, 1));
}

#[test]
fn a_side_that_cannot_prepare_ends_it_for_all_at_once() {
    let (servers, first) = formed(3);
    let id = begin(&first);
    let second = client(&servers);
    let mut berlin = Shelf::default();
    let mut paris = Shelf::failing(Step::Prepare);
    let began = Instant::now();
    thread::scope(|scope| {
        let waits = scope.spawn(|| {
            first
                .transactions()
                .join(&id, "berlin", &mut berlin, LIMIT)
                .unwrap()
        });
        let awaited = || second.transactions().list().unwrap()[0].awaited.clone();
        assert!(eventually(LIMIT, || awaited() == ["paris"]));
        let refused = second
            .transactions()
            .join(&id, "paris", &mut paris, LIMIT)
            .unwrap_err();
        assert_eq!(refused, JoinError::Refused("prepare"));
        assert_eq!(waits.join().unwrap(), Decision::Aborted);
    });
    assert!(began.elapsed() < LIMIT);
    assert!(berlin.is_empty() && paris.is_empty() && berlin.applied == 0);
}

#[test]
fn a_commit_that_fails_is_reported_and_repeated_and_nothing_is_forgotten() {
    let (servers, first) = formed(3);
    let id = begin(&first);
    let mut berlin = Shelf::failing(Step::Commit);
    let mut paris = Shelf::default();
    thread::scope(|scope| {
        scope.spawn(|| {
            first
                .transactions()
                .join(&id, "paris", &mut paris, LIMIT)
                .unwrap()
        });
        let second = client(&servers);
        let failed = second
            .transactions()
            .join(&id, "berlin", &mut berlin, LIMIT)
            .unwrap_err();
        assert_eq!(
            failed,
            JoinError::Unfinished {
                is_committed: true,
                error: "commit"
            }
        );
    });
    let listed = first.transactions().list().unwrap();
    assert_eq!(
        (listed.len(), listed[0].id, listed[0].is_committed),
        (1, id, true)
    );
    assert_eq!(listed[0].participants, ["berlin", "paris"]);
    assert_eq!(listed[0].awaited, ["berlin"]);
    assert_eq!(
        first.transactions().abort(&id).unwrap(),
        Decision::Committed
    );
    let unresolved = first
        .transactions()
        .recover("berlin", &mut berlin)
        .unwrap_err();
    let RecoverError::Unresolved {
        resolved: 0,
        unresolved,
    } = unresolved
    else {
        panic!()
    };
    assert_eq!((unresolved.len(), unresolved[0].0), (1, id));
    berlin.fails = None;
    assert_eq!(
        first.transactions().recover("berlin", &mut berlin).unwrap(),
        [(id, Decision::Committed)]
    );
    assert_eq!(
        (berlin.applied, berlin.is_empty(), paris.applied),
        (1, true, 1)
    );
    expect_clean(&first, &servers);
}

#[test]
fn who_comes_back_after_the_commit_does_not_take_it_for_an_abort() {
    let (servers, first) = formed(3);
    let id = begin(&first);
    // The record is gone before it has forgotten.
    let mut berlin = Shelf::failing(Step::Forget);
    let mut paris = Shelf::default();
    thread::scope(|scope| {
        scope.spawn(|| {
            first
                .transactions()
                .join(&id, "paris", &mut paris, LIMIT)
                .unwrap()
        });
        let second = client(&servers);
        assert_eq!(
            second
                .transactions()
                .join(&id, "berlin", &mut berlin, LIMIT)
                .unwrap(),
            Decision::Committed
        );
    });
    assert!(eventually(LIMIT, || first
        .transactions()
        .list()
        .unwrap()
        .is_empty()));
    assert!(!berlin.is_empty());
    berlin.fails = None;
    assert_eq!(
        first
            .transactions()
            .join(&id, "berlin", &mut berlin, LIMIT)
            .unwrap(),
        Decision::Committed
    );
    assert_eq!(
        (berlin.applied, berlin.rolled_back, berlin.is_empty()),
        (1, 0, true)
    );
}

#[test]
fn a_transaction_that_is_over_is_not_told_as_aborted() {
    let (servers, first) = formed(3);
    let id = begin(&first);
    let mut berlin = Shelf::default();
    let mut paris = Shelf::default();
    thread::scope(|scope| {
        scope.spawn(|| {
            first
                .transactions()
                .join(&id, "paris", &mut paris, LIMIT)
                .unwrap()
        });
        let second = client(&servers);
        assert_eq!(
            second
                .transactions()
                .join(&id, "berlin", &mut berlin, LIMIT)
                .unwrap(),
            Decision::Committed
        );
    });
    // Each side was killed before it has told its caller, and is asked again.
    for (name, shelf) in [("berlin", &mut berlin), ("paris", &mut paris)] {
        let again = client(&servers);
        assert_eq!(again.transactions().recover(name, shelf).unwrap(), []);
        assert_eq!(
            again.transactions().join(&id, name, shelf, LIMIT).unwrap(),
            Decision::Over
        );
        assert_eq!((shelf.applied, shelf.prepared_times), (1, 1));
    }
    assert_eq!(first.transactions().abort(&id).unwrap(), Decision::Over);
    // What was aborted looks the same, and what never was.
    let id = begin(&first);
    assert_eq!(first.transactions().abort(&id).unwrap(), Decision::Aborted);
    assert_eq!(first.transactions().abort(&id).unwrap(), Decision::Over);
    let text = id.to_string();
    let never: TransactionId = format!("{}{:032x}", &text[..17], 7).parse().unwrap();
    assert_eq!(first.transactions().abort(&never).unwrap(), Decision::Over);
    let mut shelf = Shelf::default();
    assert_eq!(
        first
            .transactions()
            .join(&never, "berlin", &mut shelf, LIMIT)
            .unwrap(),
        Decision::Over
    );
    assert!(shelf.is_empty() && shelf.prepared_times == 0);
}

#[test]
fn without_a_majority_a_side_stays_prepared_until_it_can_ask() {
    let (servers, first) = formed(3);
    let quick = support::locks::with_long_timeout(servers.iter().map(Server::url))
        .node_timeout(Duration::from_millis(300))
        .build()
        .unwrap();
    let id = begin(&first);
    let mut berlin = Shelf::default();
    let error = thread::scope(|scope| {
        let waits = scope.spawn(|| {
            quick
                .transactions()
                .join(&id, "berlin", &mut berlin, SHORT * 10)
        });
        assert!(eventually(LIMIT, || first.transactions().list().unwrap()
            [0]
        .awaited
            == ["paris"]));
        servers[1..].iter().for_each(Server::pause);
        waits.join().unwrap().unwrap_err()
    });
    let is_lost = |error: &_| {
        use TransactionError::Register;
        matches!(
            error,
            JoinError::Undecided(Register(RegisterError::NoQuorum { .. }))
        )
    };
    assert!(is_lost(&error), "{error}");
    assert_eq!((berlin.rolled_back, berlin.is_empty()), (0, false));
    let left = quick
        .transactions()
        .recover("berlin", &mut berlin)
        .unwrap_err();
    assert!(matches!(left, RecoverError::Unresolved { .. }) && berlin.rolled_back == 0);
    servers[1..].iter().for_each(Server::resume);
    let recovered = || quick.transactions().recover("berlin", &mut berlin).is_ok();
    assert!(eventually(LIMIT, recovered));
    assert_eq!(
        (berlin.applied, berlin.rolled_back, berlin.is_empty()),
        (0, 1, true)
    );
    // One of three nodes down is no reason to wait.
    servers[0].pause();
    let id = begin(&quick);
    assert_eq!(
        quick
            .transactions()
            .join(&id, "paris", &mut Shelf::default(), SHORT)
            .unwrap(),
        Decision::Aborted
    );
    servers[0].resume();
}

/// Nodes that are frozen for a moment are no reason to leave the record, and the id on the disk, to
/// the next recovery.
#[test]
fn a_round_that_fails_after_the_commit_is_repeated() {
    let (servers, first) = formed(3);
    let node_timeout = Duration::from_millis(700);
    let urls = servers.iter().map(Server::url);
    let quick = support::locks::with_long_timeout(urls)
        .node_timeout(node_timeout)
        .build()
        .unwrap();
    let id = begin(&first);
    let mut berlin = Shelf::failing(Step::Forget);
    let mut paris = Shelf::failing(Step::Commit);
    thread::scope(|scope| {
        scope.spawn(|| {
            first
                .transactions()
                .join(&id, "paris", &mut paris, LIMIT)
                .unwrap_err()
        });
        quick
            .transactions()
            .join(&id, "berlin", &mut berlin, LIMIT)
            .unwrap();
    });
    assert_eq!((berlin.applied, berlin.is_empty()), (1, false));
    berlin.fails = None;
    servers[1..].iter().for_each(Server::pause);
    let decision = thread::scope(|scope| {
        let waits = scope.spawn(|| quick.transactions().join(&id, "berlin", &mut berlin, LIMIT));
        // The first try has two rounds, and each that follows has one.
        thread::sleep(node_timeout.mul_f32(2.5));
        servers[1..].iter().for_each(Server::resume);
        waits.join().unwrap()
    });
    assert_eq!(decision, Ok(Decision::Committed));
    assert_eq!((berlin.applied, berlin.is_empty()), (1, true));
}

#[test]
fn what_cannot_be_a_transaction_is_refused_and_nothing_is_written() {
    let (servers, first) = formed(3);
    let names: Vec<String> = (0..17).map(|number| number.to_string()).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    for (names, expected) in [
        (&[][..], NamesError::None),
        (
            &["a", "a"][..],
            NamesError::Twice {
                name: "a".to_owned(),
            },
        ),
        (&["a", ""][..], NamesError::Empty),
        (
            &names[..],
            NamesError::TooMany {
                count: 17,
                most: 16,
            },
        ),
    ] {
        assert_eq!(
            first.transactions().begin(names).unwrap_err(),
            TransactionError::Names(expected)
        );
    }
    assert!(servers.iter().all(|server| keys(server) == 0));
    let id = begin(&first);
    let mut shelf = Shelf::default();
    let unknown = first
        .transactions()
        .join(&id, "rome", &mut shelf, SHORT)
        .unwrap_err();
    assert!(matches!(
        unknown,
        JoinError::NotBegun(TransactionError::UnknownName(_))
    ));
    let (_others, other) = formed(3);
    let foreign = JoinError::NotBegun(TransactionError::OtherGroup { id });
    assert_eq!(
        other
            .transactions()
            .join(&id, "berlin", &mut shelf, SHORT)
            .unwrap_err(),
        foreign
    );
    assert_eq!(
        other.transactions().abort(&id).unwrap_err(),
        TransactionError::OtherGroup { id }
    );
    assert!(shelf.is_empty() && shelf.prepared_times == 0);
    // What was prepared for another group stays so.
    shelf.prepared.push(id);
    assert!(other.transactions().recover("berlin", &mut shelf).is_err());
    assert_eq!((shelf.prepared.len(), shelf.rolled_back), (1, 0));
    assert_eq!(
        first.transactions().list().unwrap()[0].awaited,
        ["berlin", "paris"]
    );
}
