//! Several resources at once: all of them or none, on each node and in total.

use std::time::Duration;

use redlatch::error::ResourceError;
use redlatch::{Error, LockClient, LockGuard, LossReason};
use support::eventually;
use support::locks::{
    LIMIT, LONG, all_nodes_client, gone, holders, pttl, take, value, with_long_timeout,
};
use support::loss::loss_in;
use support::queue::{finish, spawn_waiter};
use support::servers::Servers;

/// Acquires locks that must be free.
#[track_caller]
fn take_all(client: &LockClient, resources: &[&str]) -> LockGuard {
    let taken = client.request_all(resources).ttl(LONG).try_lock();
    taken
        .expect("a majority answers")
        .expect("no other client holds any of them")
}

/// Are they held by another client?
#[track_caller]
fn is_refused(client: &LockClient, resources: &[&str]) -> bool {
    let taken = client.request_all(resources).ttl(LONG).try_lock();
    taken.expect("a majority answers").is_none()
}

#[test]
fn several_resources_are_locked_together_or_not_at_all() {
    let servers = Servers::start(3);
    let client = all_nodes_client(servers.urls());
    let other = all_nodes_client(servers.urls());
    let held = take(&other, "b", LONG);
    assert!(is_refused(&client, &["a", "b"]) && is_refused(&client, &["b", "c", "a"]));
    assert_eq!(
        (holders(&servers, "a"), holders(&servers, "c")),
        (0, 0),
        "none of the others"
    );
    assert_eq!(holders(&servers, "b"), 3);
    assert_eq!(held.release(), Ok(()), "nor was the other's lock touched");

    let both = take_all(&client, &["b", "a"]);
    assert_eq!(
        both.resources().collect::<Vec<_>>(),
        [b"a", b"b"],
        "in the order of their bytes"
    );
    assert_eq!(both.resource(), b"a");
    for server in &servers[..] {
        assert!(value(server, "a").is_some() && value(server, "a") == value(server, "b"));
    }
    assert!(is_refused(&other, &["a"]) && is_refused(&other, &["b", "c"]));
    assert!(other.try_lock("b", LONG).unwrap().is_none());
    assert_eq!(both.release(), Ok(()));
    assert_eq!((holders(&servers, "a"), holders(&servers, "b")), (0, 0));

    drop(take_all(&client, &["a", "b"]));
    assert!(gone(&servers, "a") && gone(&servers, "b"));
}

#[test]
fn names_may_contain_each_other_and_any_bytes() {
    let servers = Servers::start(3);
    let client = all_nodes_client(servers.urls());
    let names: [&[u8]; 5] = [b"k", b"kk", b"k\r\n\0", b"\xff\xfe", b"*2\r\n"];
    let guard = client
        .request_all(names)
        .ttl(LONG)
        .try_lock()
        .unwrap()
        .unwrap();
    for name in names {
        assert_eq!(holders(&servers, name), 3);
    }
    assert_eq!(guard.release(), Ok(()));
    assert!(names.iter().all(|name| holders(&servers, name) == 0));
    // Each key has the prefix.
    let prefixed = with_long_timeout(servers.urls())
        .key_prefix("app:")
        .wait_for_all(true)
        .build()
        .unwrap();
    let guard = take_all(&prefixed, &["a", "b"]);
    assert_eq!(
        (holders(&servers, "app:a"), holders(&servers, "app:b")),
        (3, 3)
    );
    assert_eq!(guard.resources().collect::<Vec<_>>(), [b"a", b"b"]);
}

#[test]
fn foreign_keys_on_a_minority_are_no_problem() {
    let servers = Servers::start(3);
    let client = all_nodes_client(servers.urls());
    // One node has a foreign key for one resource, a second node for the other resource.
    for foreign in ["foreign", ""] {
        servers[0].command(&["SET", "a", foreign, "PX", "50000"]);
        let both = take_all(&client, &["a", "b"]);
        assert_eq!(
            (holders(&servers[1..], "a"), holders(&servers, "b")),
            (2, 2)
        );
        assert_eq!(both.release(), Ok(()));
        assert_eq!(value(&servers[0], "a").as_deref(), Some(foreign.as_bytes()));
        // With two such nodes, no majority has both free, although each resource is free on a
        // majority.
        servers[1].command(&["SET", "b", foreign]);
        assert!(is_refused(&client, &["a", "b"]));
        assert_eq!(
            (holders(&servers, "a"), holders(&servers, "b")),
            (1, 1),
            "foreign keys stay"
        );
        servers[1].command(&["DEL", "b"]);
    }
    // A value that is not a string is foreign as well.
    servers[0].command(&["DEL", "a"]);
    servers[0].command(&["LPUSH", "b", "x"]);
    let mut both = take_all(&client, &["a", "b"]);
    both.extend(LONG).unwrap();
    assert_eq!(both.release(), Ok(()));
    assert_eq!(holders(&servers, "a"), 0);
    servers[1].command(&["LPUSH", "b", "x"]);
    assert!(is_refused(&client, &["a", "b"]));
}

#[test]
fn several_locks_are_extended_together() {
    let servers = Servers::start(3);
    let client = all_nodes_client(servers.urls());
    let request = client.request_all(["a", "b"]).ttl(Duration::from_secs(30));
    let mut both = request.try_lock().unwrap().unwrap();
    both.extend(LONG).unwrap();
    assert!(both.remaining() > Duration::from_secs(40));
    let shortest = |key| {
        servers
            .iter()
            .map(|server| pttl(server, key))
            .min()
            .unwrap()
    };
    assert!(shortest("a") > 40_000 && shortest("b") > 40_000);
    // By less than the remaining ttl: neither is shortened.
    both.extend(Duration::from_secs(1)).unwrap();
    assert!(shortest("a") > 20_000 && shortest("b") > 20_000);
    assert!(both.remaining() > Duration::from_secs(20));

    // On a node that lost one key, it is restored, and the other keeps its ttl.
    servers[2].command(&["DEL", "b"]);
    both.extend(Duration::from_secs(1)).unwrap();
    assert!(
        eventually(LIMIT, || value(&servers[2], "b").is_some()),
        "restored"
    );
    assert!(pttl(&servers[2], "a") > 20_000, "the other keeps its ttl");
    assert_eq!(both.release(), Ok(()));
    assert_eq!((holders(&servers, "a"), holders(&servers, "b")), (0, 0));
}

#[test]
fn if_a_majority_lost_one_of_the_keys_the_whole_lock_is_lost() {
    let servers = Servers::start(3);
    let client = all_nodes_client(servers.urls());
    let other = all_nodes_client(servers.urls());
    let lose = |key: &str| {
        servers[..2]
            .iter()
            .for_each(|server| drop(server.command(&["DEL", key])));
    };
    let both = take_all(&client, &["a", "b"]);
    lose("b");
    assert!(matches!(both.release(), Err(Error::Lost(_))));
    assert_eq!(
        (holders(&servers, "a"), holders(&servers, "b")),
        (0, 0),
        "no key stays behind"
    );

    let mut both = take_all(&client, &["a", "b"]);
    lose("a");
    let stolen = take(&other, "a", LONG);
    assert_eq!(loss_in(both.extend(LONG)), Some(LossReason::Gone));
    assert!(both.ensure_held().is_err() && both.remaining().is_zero());
    drop(both);
    assert!(gone(&servers, "b"));
    assert_eq!(
        stolen.release(),
        Ok(()),
        "no key of another client is deleted"
    );
}

#[test]
fn invalid_input_is_refused_before_anything_is_sent() {
    let servers = Servers::start(1);
    let client = all_nodes_client(servers.urls());
    let refusal = |resources: Vec<Vec<u8>>| match client.request_all(resources).lock() {
        Err(Error::Resource(error)) => error,
        other => panic!("{other:?}"),
    };
    let name = |number: usize| number.to_string().into_bytes();
    assert_eq!(refusal(vec![]), ResourceError::None);
    assert_eq!(refusal(vec![name(1), Vec::new()]), ResourceError::Empty);
    let too_many = ResourceError::TooMany {
        count: 65,
        most: 64,
    };
    assert_eq!(refusal((0..65).map(name).collect()), too_many);
    assert_eq!(
        refusal(vec![name(1); 65]),
        too_many,
        "names are counted, not resources"
    );
    let endless = client
        .request_all(std::iter::repeat("again"))
        .lock()
        .unwrap_err();
    assert_eq!(endless, Error::Resource(too_many));
    let long = |byte| vec![byte; 63 * 512];
    let length = 63 * 1024 + 1;
    let most = 63 * 1024;
    let too_long = ResourceError::TooLong { length, most };
    assert_eq!(refusal(vec![long(b'a'), long(b'b'), name(1)]), too_long);
    // Keys of counters, queues, leases and readers.
    for suffix in ["fence", "queue", "lease:some-waiter", "holders", ""] {
        let other = format!("account:redlatch:{suffix}").into_bytes();
        assert_eq!(
            refusal(vec![b"account".to_vec(), other.clone()]),
            ResourceError::Reserved
        );
        let plain = client.request(&other).lock().unwrap_err();
        assert_eq!(plain, Error::Resource(ResourceError::Reserved), "{suffix}");
    }
    for error in [
        too_many,
        too_long,
        ResourceError::None,
        ResourceError::Reserved,
    ] {
        assert!(!error.to_string().is_empty() && !error.to_string().ends_with('.'));
    }
    assert_eq!(servers[0].command(&["DBSIZE"]).integer(), 0);

    // The maximum, also fenced; and duplicates, which count once.
    let most = client
        .request_all((0..64).map(name))
        .fenced()
        .try_lock()
        .unwrap();
    assert_eq!(most.expect("they are free").release(), Ok(()));
    let most = client.request_all([long(b'a'), long(b'b')]).fenced();
    assert_eq!(most.try_lock().unwrap().unwrap().release(), Ok(()));
    let twice = take_all(&client, &["a", "b", "a", "a"]);
    assert_eq!(twice.resources().count(), 2);
    assert_eq!(twice.release(), Ok(()));
    let one = take_all(&client, &["a", "a"]);
    assert!(
        client.try_lock("a", LONG).unwrap().is_none(),
        "one of one is a lock like any other"
    );
    assert_eq!(one.release(), Ok(()));
}

#[test]
fn threads_that_want_the_same_set_hand_it_off() {
    let servers = Servers::start(3);
    let client = with_long_timeout(servers.urls())
        .wait_for_all(true)
        .handoff_limit(u32::MAX, LONG);
    let client = client.build().unwrap();
    let held = take_all(&client, &["a", "b"]);
    let waiting = {
        let client = client.clone();
        // The same set in another order.
        spawn_waiter(move || client.request_all(["b", "a"]).ttl(LONG).lock().unwrap())
    };
    // On one node, one of the keys became a foreign one meanwhile.
    servers[0].command(&["SET", "b", "foreign"]);
    let before = value(&servers[1], "a");
    assert_eq!(held.release(), Ok(()));
    let next = finish(waiting);
    for server in &servers[1..] {
        assert!(
            value(server, "a").is_some() && value(server, "a") != before,
            "another token"
        );
        assert_eq!(value(server, "a"), value(server, "b"));
    }
    let is_cleared = || value(&servers[0], "a").is_none();
    assert!(
        eventually(LIMIT, is_cleared),
        "the keys of the former lock are removed"
    );
    assert_eq!(next.release(), Ok(()));
    assert_eq!((holders(&servers, "a"), holders(&servers, "b")), (0, 1));
}
