//! What a server may be told to forget or to refuse while it runs: rights, users, keys.

use std::time::Duration;

use redlatch::error::{NodeAnswer, ServerErrorKind};
use redlatch::{ExtendError, LockClient, LockError, LockLost, NoQuorum, NodeError, Released};

use super::support::cli::Value;
use super::support::eventually;
use super::support::locks::{LIMIT, LONG, connections, gone, holders, pttl, take, thorough, value};
use super::support::redis::Server;
use super::support::secret::{SECRET, shown};
use super::support::servers::Servers;

/// Tells each of the servers.
fn tell(servers: &[Server], command: &[&str]) {
    servers.iter().for_each(|server| assert_eq!(server.command(command), Value::ok()));
}

/// Servers with a user that may do everything, and a client that comes as that user.
fn with_user() -> (Servers, LockClient) {
    let servers = Servers::start(3);
    let password = format!(">{SECRET}");
    tell(&servers, &["ACL", "SETUSER", "app", "on", &password, "~*", "+@all"]);
    let url = |server: &Server| format!("redis://app:{SECRET}@127.0.0.1:{}", server.port());
    let client = thorough(servers.iter().map(url));
    let _ = take(&client, "before", LONG).release().expect("all nodes are up");
    (servers, client)
}

/// What two of three nodes said, which waiting does not mend: even who waits for ever is told.
#[track_caller]
fn given_up(client: &LockClient, expected: ServerErrorKind) -> NoQuorum {
    let error = client.lock("wanted", LONG).expect_err("nobody may");
    shown(&error);
    let LockError::NoQuorum(error) = error else { panic!("{error:?}") };
    let is_it = |answer: &NodeAnswer| match answer {
        NodeAnswer::Failed(NodeError::Server(error)) => error.kind == expected,
        _ => false,
    };
    assert_eq!(error.reports().iter().filter(|report| is_it(&report.answer)).count(), 2, "{error}");
    for status in client.nodes() {
        assert!(!format!("{status:?} {client:?}").contains(SECRET));
    }
    error
}

#[test]
fn a_right_that_is_taken_away_is_reported_and_given_back_is_used() {
    let (servers, client) = with_user();
    let mut guard = take(&client, "held", LONG);
    tell(&servers[..2], &["ACL", "SETUSER", "app", "-set"]);
    given_up(&client, ServerErrorKind::NoPermission);
    assert!(gone(&servers, "wanted"), "the third has taken back what it granted");
    // What needs no such right goes on.
    guard.extend(LONG).unwrap();

    tell(&servers[..2], &["ACL", "SETUSER", "app", "-evalsha", "-eval"]);
    let before = guard.remaining();
    match guard.extend(LONG) {
        Err(ExtendError::NoQuorum(error)) => assert!(error.to_string().contains("NOPERM")),
        other => panic!("{other:?}"),
    }
    assert!(guard.ensure_held().is_ok() && guard.remaining() <= before);

    tell(&servers[..2], &["ACL", "SETUSER", "app", "+@all"]);
    guard.extend(LONG).unwrap();
    assert_eq!(guard.release(), Ok(Released::InTime));
    // The same connections serve on: nothing was wrong with them.
    let _ = take(&client, "wanted", LONG).release().unwrap();
    assert!(servers.iter().all(|server| connections(server, "redlatch") == 1));
    assert!(gone(&servers, "held"));
}

#[test]
fn a_user_that_is_removed_is_reported_and_comes_back_with_its_return() {
    let (servers, client) = with_user();
    let guard = take(&client, "held", LONG);
    for server in &servers[..2] {
        // This ends the user's connections as well.
        assert_eq!(server.command(&["ACL", "DELUSER", "app"]), Value::Integer(1));
    }
    given_up(&client, ServerErrorKind::WrongPassword);
    let error = guard.release().expect_err("two of three do not let it in");
    shown(&error);
    assert_eq!(holders(&servers[..2], "held"), 2);

    let password = format!(">{SECRET}");
    tell(&servers[..2], &["ACL", "SETUSER", "app", "on", &password, "~*", "+@all"]);
    assert!(eventually(LIMIT, || client.try_lock("wanted", LONG).is_ok_and(|it| it.is_some())));
    let paid = || !client.nodes().is_empty() && holders(&servers, "held") == 0;
    assert!(eventually(LIMIT, paid), "what was owed is paid");
}

#[test]
fn a_key_that_was_evicted_from_a_majority_is_a_lock_that_is_lost() {
    let servers = Servers::start_with(3, &["--maxmemory-policy", "volatile-ttl"]);
    let client = thorough(servers.urls());
    let mut guard = take(&client, "evicted", LONG);
    let evict = |server: &Server| {
        tell(std::slice::from_ref(server), &["CONFIG", "SET", "maxmemory", "1"]);
        // The one key that has a ttl goes with the next command that needs memory.
        let gone = || {
            server.command(&["SET", "more", "memory"]);
            value(server, "evicted").is_none()
        };
        assert!(eventually(LIMIT, gone));
    };
    evict(&servers[0]);
    guard.extend(LONG).unwrap();
    assert!(guard.ensure_held().is_ok(), "one of three is not a majority");
    evict(&servers[1]);
    assert!(matches!(guard.extend(LONG), Err(ExtendError::Lost(LockLost::Gone))));
    assert_eq!((guard.remaining(), guard.ensure_held()), (Duration::ZERO, Err(LockLost::Gone)));
    assert_eq!(guard.release(), Ok(Released::TooLate));
    assert!(gone(&servers, "evicted"));
}

fn is_permanent(report: &redlatch::error::NodeReport) -> bool {
    matches!(&report.answer, NodeAnswer::Failed(problem) if problem.is_permanent())
}

#[test]
fn the_least_rights_suffice() {
    let servers = Servers::start(3);
    let least = "~lock:* +set +get +del +pexpire +pttl +evalsha +eval";
    for (user, more) in [("least", ""), ("more", "+info")] {
        for server in servers.iter() {
            let rules = least.split(' ').chain([more]).filter(|rule| !rule.is_empty());
            let command: Vec<_> =
                ["ACL", "SETUSER", user, "reset", "on", ">pw"].into_iter().chain(rules).collect();
            assert_eq!(server.command(&command), Value::ok());
            server.command(&["SCRIPT", "FLUSH", "SYNC"]);
        }
        let url = |server: &Server| format!("redis://{user}:pw@127.0.0.1:{}", server.port());
        let client = thorough(servers.iter().map(url));
        let half = Duration::from_secs(25);
        for _ in 0..2 {
            let mut guard = take(&client, "lock:least", half);
            assert_eq!(holders(&servers, "lock:least"), 3);
            guard.extend(half).unwrap();
            guard.extend(LONG).unwrap();
            assert!(servers.iter().all(|server| pttl(server, "lock:least") > 26_000));
            guard.extend(half).unwrap();
            assert!(servers.iter().all(|server| pttl(server, "lock:least") > 26_000));
            // To shorten nothing takes the right to look, and is refused without it.
            tell(&servers, &["ACL", "SETUSER", user, "-pttl"]);
            let Err(ExtendError::NoQuorum(error)) = guard.extend(half) else { panic!() };
            assert!(error.reports().iter().all(is_permanent), "{error}");
            tell(&servers, &["ACL", "SETUSER", user, "+pttl"]);
            assert_eq!(guard.release(), Ok(Released::InTime));
            drop(take(&client, "lock:least", half));
            assert!(gone(&servers, "lock:least"));
        }
        let knows = client.nodes().iter().all(|node| node.version.is_some());
        assert_eq!(knows, user == "more");
    }
}
