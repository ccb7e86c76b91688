//! Permits whose number a node gave to another client than the other nodes did.

use crate::support;

use redlatch::Released;
use redlatch::internal::node::script::{
    EXTEND_SHARED, FENCE, QUEUE, RELEASE_SHARED, RESTORE_SHARED, SHARE, Script,
};
use support::cli::Value;
use support::locks::LONG;
use support::redis::Server;
use support::servers::Servers;
use support::waiters::{BY_PUSH, await_keys, holder};

/// Two permits exchange their holders on this node.
fn exchange(server: &Server, one: &str, other: &str) {
    let source = "local found = redis.call('ZRANGE', KEYS[1], 0, -1, 'WITHSCORES')
        for i = 1, #found, 2 do
          local slot, rest = string.match(found[i], '^(%d+)(:.*)$')
          local new = slot == ARGV[1] and ARGV[2] or slot == ARGV[2] and ARGV[1]
          if new then
            redis.call('ZREM', KEYS[1], found[i])
            redis.call('ZADD', KEYS[1], found[i + 1], new .. rest)
          end
        end";
    server.command(&["EVAL", source, "1", "name:redlatch:holders", one, other]);
}

/// On each of two nodes, another holder has the number that is about to be free, and that node gave
/// the right one to the client that gives its permit back. So each of three nodes would have
/// another free number.
#[test]
fn a_permit_that_is_given_back_is_free_on_nodes_that_gave_its_number_to_another_holder() {
    support::needs!(Shares);
    let servers = Servers::start(3);
    let client = holder(servers.urls());
    let permit = || client.request("name").ttl(LONG).permits(3).try_lock().unwrap();
    let mut held: Vec<_> = (0..3).map(|_| permit().unwrap()).collect();
    held.sort_by_key(redlatch::LockGuard::permit);
    exchange(&servers[0], "0", "2");
    exchange(&servers[1], "1", "2");
    // Two nodes confirm each, and the third cannot move it.
    held[0].extend(LONG).unwrap();
    held[1].extend(LONG).unwrap();
    assert_eq!(held.remove(2).release(), Ok(Released::InTime));
    let mut found = None;
    let is_granted = || {
        found = permit();
        found.is_some()
    };
    assert!(support::eventually(BY_PUSH, is_granted), "{:?}", client.inspect("name"));
    assert_eq!(found.as_ref().unwrap().permit(), Some(2));
    // The numbers that are shown are those that the holders have, also where they are kept free.
    let numbers = || -> Vec<Vec<u32>> {
        let numbers = |node: &redlatch::NodeView| {
            let mut numbers: Vec<_> = node.shares.iter().filter_map(|it| it.permit).collect();
            numbers.sort_unstable();
            numbers
        };
        client.inspect("name").unwrap().nodes.iter().map(numbers).collect()
    };
    let all_are_right = || numbers().iter().all(|node| *node == [0, 1, 2]);
    assert!(support::eventually(BY_PUSH, all_are_right), "{:?}", numbers());
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

fn members(server: &Server) -> String {
    let found = server.command(&["ZRANGE", "k:redlatch:holders", "0", "-1"]);
    let Value::Array(members) = found else { panic!("{found:?}") };
    members.iter().map(|it| it.text().to_owned()).collect::<Vec<_>>().join(" ")
}

/// Takes a share: in the turn of a waiter, if one is named. Returns its number.
fn share(server: &Server, value: &str, permits: &str, waiter: &str, life: &str) -> Option<i64> {
    let words = [value, life, permits, "0", waiter, "1500", "0", "0"];
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
    let words = [waiter, "0", "none", "12s3 owner", "90000", "50000"];
    let Value::Array(list) = run(server, QUEUE, &["k"], &words) else { panic!("no list") };
    list[3] == Value::Integer(1)
}

/// A node with permits 0, 1 and 2 of `a`, `b` and `c`, and two waiters. The permit of `c` is to be
/// 0, which `a` has.
fn moved() -> Servers {
    let servers = Servers::start(1);
    let server = &servers[0];
    for (number, value) in [(0, "a"), (1, "b"), (2, "c")] {
        assert_eq!(share(server, value, "3", "", "100000"), Some(number));
    }
    assert!(!is_called(server, "w1"));
    assert!(!is_called(server, "w2"));
    assert_eq!(run(server, RESTORE_SHARED, &["k"], &["0", "c", "200000"]), NO);
    servers
}

#[test]
fn a_node_that_cannot_move_a_permit_frees_the_wrong_number_and_keeps_the_right_one() {
    support::needs!(Shares);
    let servers = moved();
    let server = &servers[0];
    assert_eq!(members(server), "0:a 1:b 1024:c");
    // Once more, or late, it changes nothing; and no command about permit 0 succeeds for `c`.
    assert_eq!(run(server, RESTORE_SHARED, &["k"], &["0", "c", "100000"]), NO);
    assert_eq!(members(server), "0:a 1:b 1024:c");
    assert_eq!(run(server, EXTEND_SHARED, &["k"], &["0", "c", "300000"]), NO);
    let fenced = run(server, FENCE, &["k", "k:redlatch:fence"], &["1", "0:c", "7", "90000"]);
    assert_eq!(fenced, NO);
    assert_eq!(share(server, "c", "3", "", "300000"), None);
    // There are three holders of three permits still.
    assert!(!is_called(server, "w1"));
    // The number that is given back is free for nobody but `c`, the other one for the first waiter.
    assert_eq!(run(server, RELEASE_SHARED, &["k"], &["a", "3", "", "", "50000"]), YES);
    assert!(is_called(server, "w1"));
    assert!(!is_called(server, "w2"));
    assert_eq!(share(server, "d", "3", "w1", "400000"), Some(2));
    assert_eq!(members(server), "1:b 1024:c 2:d");
    assert_eq!(run(server, RESTORE_SHARED, &["k"], &["0", "c", "500000"]), YES);
    assert_eq!(members(server), "1:b 2:d 0:c");
}

#[test]
fn a_permit_that_could_not_be_moved_is_given_back_as_every_other_one() {
    support::needs!(Shares);
    let servers = moved();
    let server = &servers[0];
    let bell = || server.command(&["EXISTS", "k:redlatch:bell:w1"]);
    assert_eq!(bell(), Value::Integer(0));
    assert_eq!(run(server, RELEASE_SHARED, &["k"], &["c", "3", "", "", "50000"]), YES);
    assert_eq!(bell(), Value::Integer(1));
    assert!(is_called(server, "w1"));
    assert!(!is_called(server, "w2"));
    // What arrives after that leaves nothing where the number is taken.
    assert_eq!(run(server, RESTORE_SHARED, &["k"], &["0", "c", "900000"]), NO);
    assert_eq!(members(server), "0:a 1:b");
}
