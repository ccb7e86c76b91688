//! Permits whose number a node gave to another client than the other nodes did.

use redlatch_protocol::node::script::{FENCE, KEEP_SHARED, QUEUE, RELEASE_SHARED, SHARE, Script};
use support::cli::Value;
use support::locks::LONG;
use support::redis::Server;
use support::servers::Servers;
use support::waiters::{BY_PUSH, await_keys, holder};

/// Two permits exchange their holders on this node.
fn exchange(server: &Server, one: &str, other: &str) {
    let source = "local found = redis.call('ZRANGE', KEYS[1], 0, -1, 'WITHSCORES')
        for i = 1, #found, 2 do
          local slot, value = string.match(found[i], '^(%d+):(.*)$')
          local new = slot == ARGV[1] and ARGV[2] or slot == ARGV[2] and ARGV[1]
          if new then
            redis.call('ZREM', KEYS[1], found[i])
            redis.call('ZADD', KEYS[1], found[i + 1], new .. ':' .. value)
            redis.call('ZADD', KEYS[2], new, value)
          end
        end";
    let keys = ["name:redlatch:holders", "name:redlatch:permits"];
    server.command(&["EVAL", source, "2", keys[0], keys[1], one, other]);
}

/// On each of two nodes, another holder has the number that is about to be free, and that node gave
/// the right one to the client that gives its permit back. So each of three nodes would have
/// another free number.
#[test]
fn a_permit_that_is_given_back_is_free_on_nodes_that_gave_its_number_to_another_holder() {
    support::needs!(Shares);
    let servers = Servers::start(3);
    let client = holder(servers.urls());
    let permit = || {
        client
            .request("name")
            .ttl(LONG)
            .one_of(3)
            .try_lock()
            .unwrap()
    };
    let mut held: Vec<_> = (0..3).map(|_| permit().unwrap()).collect();
    held.sort_by_key(redlatch::LockGuard::slot);
    exchange(&servers[0], "0", "2");
    exchange(&servers[1], "1", "2");
    // Two nodes confirm each, and the third gives its wrong number up.
    held[0].extend(LONG).unwrap();
    held[1].extend(LONG).unwrap();
    assert_eq!(held.remove(2).release(), Ok(()));
    let mut found = None;
    let is_granted = || {
        found = permit();
        found.is_some()
    };
    assert!(
        support::eventually(BY_PUSH, is_granted),
        "{:?}",
        client.inspect("name")
    );
    assert_eq!(found.as_ref().unwrap().slot(), Some(2));
    // The next extensions bring the permits to the nodes that had given their numbers to others.
    held[0].extend(LONG).unwrap();
    held[1].extend(LONG).unwrap();
    let numbers = || -> Vec<Vec<u32>> {
        let numbers = |node: &redlatch::NodeView| {
            let mut numbers: Vec<_> = node.shares.iter().filter_map(|it| it.slot).collect();
            numbers.sort_unstable();
            numbers
        };
        client
            .inspect("name")
            .unwrap()
            .nodes
            .iter()
            .map(numbers)
            .collect()
    };
    let all_are_right = || numbers().iter().all(|node| *node == [0, 1, 2]);
    assert!(
        support::eventually(BY_PUSH, all_are_right),
        "{:?}",
        numbers()
    );
    drop((held, found));
    await_keys(&servers, &[]);
}

/// The answer of a script about the lock `k`, which gets the number 1.
fn run(server: &Server, script: Script, keys: &[&str], words: &[&str]) -> Value {
    let count = keys.len().to_string();
    let words = [&["EVAL", script.source, &count], keys, words, &["1"]].concat();
    server.command(&words)
}

const YES: Value = Value::Integer(1);
const NO: Value = Value::Integer(-1);

/// The names of waiters have 20 bytes.
const W1: &str = "..................w1";
const W2: &str = "..................w2";

fn members(server: &Server) -> String {
    let found = server.command(&["ZRANGE", "k:redlatch:holders", "0", "-1"]);
    let Value::Array(members) = found else {
        panic!("{found:?}")
    };
    members
        .iter()
        .map(|it| it.text().to_owned())
        .collect::<Vec<_>>()
        .join(" ")
}

/// Takes a share: in the turn of a waiter, if one is named. Returns its number.
fn share(server: &Server, value: &str, permits: &str, waiter: &str, life: &str) -> Option<i64> {
    let first = if waiter.is_empty() { "0" } else { "" };
    let words = [value, life, permits, first, waiter, "0", "0"];
    match run(server, SHARE, &["k"], &words) {
        Value::Array(list) => match list[..] {
            [_, _, _, Value::Integer(number)] => Some(number),
            _ => panic!("{list:?}"),
        },
        no => {
            assert_eq!(no, NO);
            None
        }
    }
}

fn is_called(server: &Server, waiter: &str) -> bool {
    let words = [waiter, "0", "none", "12s3 50000 90000  owner", "90000"];
    let Value::Array(list) = run(server, QUEUE, &["k"], &words) else {
        panic!("no list")
    };
    list[3] == Value::Integer(1)
}

/// A node with permits 0, 1 and 2 of `a`, `b` and `c`, and two waiters.
fn used_up() -> Servers {
    let servers = Servers::start(1);
    let server = &servers[0];
    for (number, value) in [(0, "a"), (1, "b"), (2, "c")] {
        assert_eq!(share(server, value, "3", "", "100000"), Some(number));
    }
    assert!(!is_called(server, W1));
    assert!(!is_called(server, W2));
    servers
}

#[test]
fn a_permit_that_another_client_has_on_a_node_is_not_given_there_and_the_wrong_one_is_free() {
    support::needs!(Shares);
    let servers = used_up();
    let server = &servers[0];
    // The permit of `c` is 0, which `a` has here.
    for _ in 0..2 {
        assert_eq!(
            run(
                server,
                KEEP_SHARED,
                &["k"],
                &["0", "c", "200000", "restore"]
            ),
            NO
        );
        assert_eq!(members(server), "0:a 1:b");
    }
    assert_eq!(
        run(server, KEEP_SHARED, &["k"], &["0", "c", "300000", ""]),
        NO
    );
    let fenced = run(
        server,
        FENCE,
        &["k", "k:redlatch:fence"],
        &["1", "0:c", "7", "90000"],
    );
    assert_eq!(fenced, NO);
    assert!(is_called(server, W1));
    assert!(!is_called(server, W2));
    assert_eq!(share(server, "d", "3", W1, "400000"), Some(2));
    // When `a` has given it back, it is there for `c`, and for nobody else after that.
    assert_eq!(
        run(server, RELEASE_SHARED, &["k"], &["a", "3", "", ""]),
        YES
    );
    for _ in 0..2 {
        assert_eq!(
            run(
                server,
                KEEP_SHARED,
                &["k"],
                &["0", "c", "500000", "restore"]
            ),
            YES
        );
        assert_eq!(members(server), "1:b 2:d 0:c");
    }
    assert!(!is_called(server, W2));
}

#[test]
fn a_permit_moves_to_its_number_where_that_is_free() {
    support::needs!(Shares);
    let servers = used_up();
    let server = &servers[0];
    assert_eq!(
        run(server, RELEASE_SHARED, &["k"], &["a", "3", "", ""]),
        YES
    );
    assert_eq!(
        run(
            server,
            KEEP_SHARED,
            &["k"],
            &["0", "c", "200000", "restore"]
        ),
        YES
    );
    assert_eq!(members(server), "1:b 0:c");
    assert!(is_called(server, W1));
    assert!(!is_called(server, W2));
    assert_eq!(share(server, "d", "3", W1, "400000"), Some(2));
}

/// The set that finds a free number follows from the holders, whichever of the two was evicted.
#[test]
fn no_number_is_given_twice_where_a_node_lost_a_part_of_its_data() {
    support::needs!(Shares);
    let servers = used_up();
    let server = &servers[0];
    let ttl = |key: &str| {
        let Value::Integer(ttl) = server.command(&["PTTL", key]) else {
            panic!("no number")
        };
        ttl
    };
    server.command(&["DEL", "k:redlatch:permits"]);
    assert_eq!(share(server, "d", "3", "", "100000"), None);
    assert!(!is_called(server, W1));
    assert!((1..=100_000).contains(&ttl("k:redlatch:permits")));
    server.command(&["DEL", "k:redlatch:permits"]);
    assert_eq!(
        run(
            server,
            KEEP_SHARED,
            &["k"],
            &["0", "c", "200000", "restore"]
        ),
        NO
    );
    assert_eq!(share(server, "d", "3", W1, "300000"), Some(2));
    assert_eq!(members(server), "0:a 1:b 2:d");
    server.command(&["DEL", "k:redlatch:holders"]);
    assert_eq!(share(server, "e", "3", W2, "200000"), Some(0));
    assert_eq!(members(server), "0:e");
    assert_eq!(
        run(server, RELEASE_SHARED, &["k"], &["e", "3", "", ""]),
        YES
    );
    assert_eq!(
        server.command(&["EXISTS", "k", "k:redlatch:permits"]),
        Value::Integer(0)
    );
}
