//! How many rounds a read and a change take, counted by the nodes.

use std::thread;
use std::time::Duration;

use support::eventually;
use support::locks::{LIMIT, calls};
use support::redis::Server;

use super::{client, formed, read, set};

/// How many scripts the nodes have run.
fn scripts(servers: &[Server]) -> Vec<u64> {
    servers
        .iter()
        .map(|server| calls(server, "eval") + calls(server, "evalsha"))
        .collect()
}

/// What each node runs while this is done: the last ones of a round may come late.
#[track_caller]
fn takes(servers: &[Server], rounds: u64, done: impl FnOnce()) {
    let before = scripts(servers);
    done();
    let expected: Vec<u64> = before.iter().map(|count| count + rounds).collect();
    assert!(
        eventually(LIMIT, || scripts(servers) == expected),
        "{expected:?}, and not {:?}",
        scripts(servers)
    );
}

#[test]
fn a_first_change_takes_two_rounds_and_the_next_one_and_a_read_one() {
    let (servers, first) = formed(3);
    let register = first.register("a").unwrap();
    // It has a history: ballots that a client which knows none of them must be above. It is when it
    // counts from the time, if there were fewer changes than milliseconds.
    for number in 0..5 {
        set(&register, &number.to_string());
    }
    thread::sleep(Duration::from_millis(50));
    let other = client(&servers);
    // So it knows the group.
    assert_eq!(read(&other.register("b").unwrap()), None);
    let same = other.register("a").unwrap();
    takes(&servers, 1, || {
        assert_eq!(read(&same), Some("4".to_owned()));
    });
    takes(&servers, 2, || _ = set(&same, "first"));
    takes(&servers, 1, || _ = set(&same, "next"));
    // After another client: its promise is refused, and it is nobody's turn.
    takes(&servers, 3, || _ = set(&register, "after another"));
    takes(&servers, 1, || _ = set(&register, "again"));
}

#[test]
fn a_change_after_another_client_takes_two_rounds_if_that_was_read() {
    let (servers, first) = formed(3);
    let register = first.register("a").unwrap();
    set(&register, "first");
    let other = client(&servers);
    assert_eq!(
        read(&other.register("b").unwrap()),
        None,
        "it knows the group"
    );
    for number in 0..3 {
        set(&other.register("a").unwrap(), &number.to_string());
        // As above: the ballot that the next change counts from the time must be above this one's,
        // and above the one that this one has promised to its client.
        thread::sleep(Duration::from_millis(50));
        assert_eq!(read(&register), Some(number.to_string()));
        takes(&servers, 2, || _ = set(&register, "after another"));
        assert_eq!(read(&register), Some("after another".to_owned()));
        takes(&servers, 1, || _ = set(&register, "again"));
    }
}
