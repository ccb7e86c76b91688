//! What a server lacks or loses while it runs: commands, rights, users and keys.

use std::thread;
use std::time::Duration;

use redlatch::error::{NodeAnswer, ServerErrorKind};
use redlatch::{
    Error, LockClient, LockGuard, LockRequest, LossReason, NoQuorum, NodeError, QueueSupport,
};

use support::cli::Value;
use support::eventually;
use support::locks::{
    LIMIT, LONG, all_nodes_client, connections, gone, holders, pttl, take, value,
};
use support::loss::{loss, loss_in};
use support::queue::finish;
use support::redis::Server;
use support::secret::{SECRET, shown};
use support::servers::Servers;
use support::waiters::{await_keys, await_queued};

/// Runs a command on each of the servers.
fn run_on_each(servers: &[Server], command: &[&str]) {
    servers
        .iter()
        .for_each(|server| assert_eq!(server.command(command), Value::ok()));
}

/// Servers with a user with all rights, and a client with that user.
fn with_user() -> (Servers, LockClient) {
    let servers = Servers::start(3);
    let password = format!(">{SECRET}");
    run_on_each(
        &servers,
        &["ACL", "SETUSER", "app", "on", &password, "~*", "+@all"],
    );
    let url = |server: &Server| server.url_of(&format!("app:{SECRET}"));
    let client = all_nodes_client(servers.iter().map(url));
    take(&client, "before", LONG)
        .release()
        .expect("all nodes are up");
    (servers, client)
}

/// The errors of two of three nodes. Waiting cannot fix them, so a request without a time limit
/// gets them too.
#[track_caller]
fn given_up(client: &LockClient, expected: ServerErrorKind) -> NoQuorum {
    let error = client
        .lock("wanted", LONG)
        .expect_err("the user has no right");
    shown(&error);
    let Error::NoQuorum(error) = error else {
        panic!("{error:?}")
    };
    let is_it = |answer: &NodeAnswer| match answer {
        NodeAnswer::Failed(NodeError::Server(error)) => error.kind == expected,
        _ => false,
    };
    assert_eq!(
        error
            .reports()
            .iter()
            .filter(|report| is_it(&report.answer))
            .count(),
        2,
        "{error}"
    );
    for status in client.nodes() {
        assert!(!format!("{status:?} {client:?}").contains(SECRET));
    }
    error
}

#[test]
fn a_revoked_right_is_reported_and_works_again_when_granted() {
    support::needs!(Users);
    let (servers, client) = with_user();
    let mut guard = take(&client, "held", LONG);
    run_on_each(&servers[..2], &["ACL", "SETUSER", "app", "-set"]);
    given_up(&client, ServerErrorKind::NoPermission);
    assert!(
        gone(&servers, "wanted"),
        "the third node's grant is removed"
    );
    // Commands that do not need the right still work.
    guard.extend(LONG).unwrap();

    run_on_each(
        &servers[..2],
        &["ACL", "SETUSER", "app", "-evalsha", "-eval"],
    );
    let before = guard.remaining();
    match guard.extend(LONG) {
        Err(Error::NoQuorum(error)) => assert!(error.to_string().contains("NOPERM")),
        other => panic!("{other:?}"),
    }
    assert!(guard.ensure_held().is_ok() && guard.remaining() <= before);

    run_on_each(&servers[..2], &["ACL", "SETUSER", "app", "+@all"]);
    guard.extend(LONG).unwrap();
    assert_eq!(guard.release(), Ok(()));
    // The same connections are still used.
    take(&client, "wanted", LONG).release().unwrap();
    assert!(
        servers
            .iter()
            .all(|server| connections(server, "redlatch") == 1)
    );
    assert!(gone(&servers, "held"));
}

/// A server may lack any of the commands that scripts call, and has words of its own for that.
#[test]
fn no_call_waits_for_a_command_that_the_servers_lack() {
    type Kind = fn(LockRequest<'_>) -> LockRequest<'_>;
    const KINDS: [Kind; 4] = [
        |it| it,
        |it| it.fenced(),
        |it| it.shared(),
        |it| it.one_of(2),
    ];
    for command in [
        "DEL", "EXISTS", "GET", "PEXPIRE", "SET", "TIME", "ZADD", "ZRANGE",
    ] {
        let server = Server::start(&["--rename-command", command, ""]);
        let client = all_nodes_client([server.url()]);
        let lock = |(number, kind): (usize, Kind)| {
            let client = client.clone();
            let name = number.to_string();
            thread::spawn(move || kind(client.request(name).ttl(LONG)).lock().map(drop))
        };
        let calls: Vec<_> = KINDS.into_iter().enumerate().map(lock).collect();
        let failed: Vec<_> = calls
            .into_iter()
            .filter_map(|call| finish(call).err())
            .collect();
        assert!(!failed.is_empty(), "{command}: not every request needs it");
        for error in failed {
            let Error::NoQuorum(error) = error else {
                panic!("{command}: {error}")
            };
            assert!(
                error.reports().iter().all(is_permanent),
                "{command}: {error}"
            );
        }
    }
}

#[test]
fn a_removed_user_is_reported_and_works_again_when_created() {
    support::needs!(Users);
    let (servers, client) = with_user();
    let guard = take(&client, "held", LONG);
    for server in &servers[..2] {
        // This ends the user's connections as well.
        assert_eq!(
            server.command(&["ACL", "DELUSER", "app"]),
            Value::Integer(1)
        );
    }
    let error = given_up(&client, ServerErrorKind::Authentication);
    assert_eq!(error.to_string().matches("WRONGPASS").count(), 2, "{error}");
    let error = guard
        .release()
        .expect_err("two of three refuse to authenticate");
    shown(&error);
    assert_eq!(holders(&servers[..2], "held"), 2);

    let password = format!(">{SECRET}");
    run_on_each(
        &servers[..2],
        &["ACL", "SETUSER", "app", "on", &password, "~*", "+@all"],
    );
    assert!(eventually(LIMIT, || client
        .try_lock("wanted", LONG)
        .is_ok_and(|it| it.is_some())));
    let paid = || !client.nodes().is_empty() && holders(&servers, "held") == 0;
    assert!(eventually(LIMIT, paid), "the pending release is sent");
}

#[test]
fn a_key_evicted_from_a_majority_is_a_lost_lock() {
    let servers = Servers::start_with(3, &["--maxmemory-policy", "volatile-ttl"]);
    let client = all_nodes_client(servers.urls());
    let mut guard = take(&client, "evicted", LONG);
    let evict = |server: &Server| {
        run_on_each(
            std::slice::from_ref(server),
            &["CONFIG", "SET", "maxmemory", "1"],
        );
        // The one key with a ttl is evicted by the next command that needs memory.
        let gone = || {
            server.command(&["SET", "more", "memory"]);
            value(server, "evicted").is_none()
        };
        assert!(eventually(LIMIT, gone));
    };
    evict(&servers[0]);
    guard.extend(LONG).unwrap();
    assert!(
        guard.ensure_held().is_ok(),
        "one of three is not a majority"
    );
    evict(&servers[1]);
    assert_eq!(loss_in(guard.extend(LONG)), Some(LossReason::Gone));
    assert_eq!(
        (guard.remaining(), loss(&guard)),
        (Duration::ZERO, Some(LossReason::Gone))
    );
    assert!(matches!(guard.release(), Err(Error::Lost(_))));
    assert!(gone(&servers, "evicted"));
}

fn is_permanent(report: &redlatch::error::NodeReport) -> bool {
    matches!(&report.answer, NodeAnswer::Failed(error) if error.is_permanent())
}

#[test]
fn the_documented_rights_suffice() {
    support::needs!(Users);
    let servers = Servers::start(3);
    let least = "~lock:* +set +get +del +pexpire +pttl +evalsha +eval";
    for (user, more) in [("least", ""), ("more", "+info")] {
        for server in servers.iter() {
            let rules = least
                .split(' ')
                .chain([more])
                .filter(|rule| !rule.is_empty());
            let command: Vec<_> = ["ACL", "SETUSER", user, "reset", "on", ">pw"]
                .into_iter()
                .chain(rules)
                .collect();
            assert_eq!(server.command(&command), Value::ok());
            server.command(&["SCRIPT", "FLUSH", "SYNC"]);
        }
        let url = |server: &Server| server.url_of(&format!("{user}:pw"));
        let client = all_nodes_client(servers.iter().map(url));
        let half = Duration::from_secs(25);
        for _ in 0..2 {
            let mut guard = take(&client, "lock:least", half);
            assert_eq!(holders(&servers, "lock:least"), 3);
            guard.extend(half).unwrap();
            guard.extend(LONG).unwrap();
            assert!(
                servers
                    .iter()
                    .all(|server| pttl(server, "lock:least") > 26_000)
            );
            guard.extend(half).unwrap();
            assert!(
                servers
                    .iter()
                    .all(|server| pttl(server, "lock:least") > 26_000)
            );
            // Never shortening a ttl needs the right to read it, and is refused without it.
            run_on_each(&servers, &["ACL", "SETUSER", user, "-pttl"]);
            let Err(Error::NoQuorum(error)) = guard.extend(half) else {
                panic!()
            };
            assert!(error.reports().iter().all(is_permanent), "{error}");
            run_on_each(&servers, &["ACL", "SETUSER", user, "+pttl"]);
            assert_eq!(guard.release(), Ok(()));
            drop(take(&client, "lock:least", half));
            assert!(gone(&servers, "lock:least"));
        }
        let knows = client.nodes().iter().all(|node| node.version.is_some());
        assert_eq!(knows, user == "more");
    }
}

/// Scripts go by their digest, or by their source to a user who has only that right; and by their
/// digest alone to one who has only that, where others have loaded them.
#[test]
fn either_right_to_run_scripts_suffices() {
    support::needs!(Users);
    type Kind = fn(LockRequest<'_>) -> LockRequest<'_>;
    const KINDS: [Kind; 4] = [
        |it| it,
        |it| it.fenced(),
        |it| it.shared(),
        |it| it.one_of(2),
    ];
    let servers = Servers::start(3);
    let use_all = |client: &LockClient, other: &LockClient| {
        for (number, kind) in KINDS.into_iter().enumerate() {
            let name = format!("kind-{number}");
            let request = |client: &LockClient| kind(client.request(&name).ttl(LONG)).lock();
            for _ in 0..2 {
                let mut guard = request(client).expect("its user may run scripts");
                guard.extend(LONG).expect("its user may run scripts");
                assert_eq!(guard.release(), Ok(()));
                // No call after this reads what the nodes say to it.
                drop(request(client).expect("the lock is free"));
                assert!(gone(&servers, &name), "{name} is left");
            }
        }
        let held = take(client, "waited", LONG);
        let waiter = other.clone();
        let thread = thread::spawn(move || waiter.lock("waited", LONG).map(LockGuard::release));
        await_queued(&servers, "waited", 1);
        drop(held);
        assert_eq!(finish(thread).expect("it is its turn"), Ok(()));
        await_keys(&servers, &[]);
    };
    let client = |user: &str| {
        let url = |server: &Server| server.url_of(&format!("{user}:pw"));
        all_nodes_client(servers.iter().map(url))
    };
    for (user, lacks) in [("all", "+get"), ("source", "-evalsha"), ("digest", "-eval")] {
        let rule = format!("ACL SETUSER {user} reset on >pw ~* &* +@all {lacks}");
        run_on_each(&servers, &rule.split(' ').collect::<Vec<_>>());
        use_all(&client(user), &client(user));
    }
}

/// Without a right that only the queue needs, the lock is as safe and passes on, in some order.
#[test]
fn the_documented_rights_suffice_for_the_queue() {
    support::needs!(Users);
    let servers = Servers::start(3);
    let locking = "~lock:* +set +get +del +pexpire +pttl +evalsha +eval +info +ping";
    let queueing = "+zadd +zrange +zrem +zscore +zrank +zcard +exists";
    let pushes = "+client|tracking +client|caching +subscribe +publish &redlatch:*";
    let table = [
        (
            "all",
            format!("{locking} {queueing} {pushes}"),
            QueueSupport::Full,
        ),
        (
            "queue",
            format!("{locking} {queueing}"),
            QueueSupport::WithoutPushes,
        ),
        ("lock", locking.to_owned(), QueueSupport::Unsupported),
    ];
    for (user, rights, support) in table {
        let rule = format!("ACL SETUSER {user} reset on >pw {rights}");
        run_on_each(&servers, &rule.split(' ').collect::<Vec<_>>());
        let url = |server: &Server| server.url_of(&format!("{user}:pw"));
        let client = || all_nodes_client(servers.iter().map(url));
        let first = client();
        let second = client();
        // What its user may not ask is refused now, and not beside an attempt.
        drop(second.nodes());
        for _ in 0..3 {
            let held = take(&first, "lock:queue", LONG);
            let waiter = second.clone();
            let thread = thread::spawn(move || waiter.lock("lock:queue", LONG).unwrap());
            let is_known = || {
                second
                    .nodes()
                    .iter()
                    .all(|node| node.queue == Some(support))
            };
            assert!(eventually(LIMIT, is_known), "{user}: {:?}", second.nodes());
            assert!(!thread.is_finished());
            assert_eq!(held.release(), Ok(()), "{user}");
            assert!(
                eventually(LIMIT, || thread.is_finished()),
                "{user}: it waits for ever"
            );
            assert_eq!(thread.join().unwrap().release(), Ok(()), "{user}");
        }
        assert!(gone(&servers, "lock:queue"), "{user}");
        let statuses = second.nodes();
        assert!(
            statuses.iter().all(|node| node.last_error.is_none()),
            "{user}: {statuses:?}"
        );
    }
}
