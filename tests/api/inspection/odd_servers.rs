//! Listing locks on servers that refuse it, hold other data, or list without end.

use super::listing::names;

use redlatch::error::{NodeAnswer, ResourceError, ServerErrorKind};
use redlatch::{Error, LockClient, NodeError};
use support::locks::{
    LONG, all_nodes_client, can_be_acquired, report_texts, take, without_restart_guard,
};
use support::peer::Peer;
use support::servers::Servers;

#[track_caller]
fn error(client: &LockClient, pattern: &str) -> Error {
    let last = client.locks(pattern).last().expect("an item");
    last.expect_err("no majority can be read")
}

#[test]
fn a_pattern_that_no_name_can_match_is_an_error() {
    let servers = Servers::start(1);
    let client = all_nodes_client(servers.urls());
    assert_eq!(error(&client, ""), Error::Resource(ResourceError::Empty));
    let long = "x".repeat(70_000);
    let Error::Resource(ResourceError::TooLong { .. }) = error(&client, &long) else {
        panic!("no key is so long")
    };
}

#[test]
fn a_missing_right_is_an_error_and_no_empty_list() {
    support::needs!(Users);
    let servers = Servers::start(3);
    let client = all_nodes_client(servers.urls());
    let lock = take(&client, "held", LONG);
    for right in ["scan", "strlen"] {
        for server in servers.iter() {
            server.command(&["ACL", "SETUSER", "default", "+@all", &format!("-{right}")]);
        }
        let Error::NoQuorum(error) = error(&client, "*") else {
            panic!("no {right}")
        };
        for report in error.reports() {
            let NodeAnswer::Failed(NodeError::Server(error)) = &report.answer else {
                panic!("{report}")
            };
            assert_eq!(error.kind, ServerErrorKind::NoPermission, "{report}");
        }
        assert!(
            can_be_acquired(&client, "job"),
            "locks do not need that right"
        );
    }
    drop(lock);
}

#[test]
fn a_command_that_a_server_has_lost_is_an_error_and_no_empty_list() {
    for command in ["SCAN", "STRLEN"] {
        let servers = Servers::start_with(1, &["--rename-command", command, ""]);
        let client = all_nodes_client(servers.urls());
        let lock = take(&client, "held", LONG);
        let Error::NoQuorum(error) = error(&client, "*") else {
            panic!("no {command}")
        };
        let texts = report_texts(&error);
        assert!(texts[0].contains("command called from"), "{texts:?}");
        drop(lock);
    }
}

#[test]
fn a_user_is_listed_the_locks_whose_keys_it_may_read() {
    support::needs!(Users);
    let servers = Servers::start(1);
    let all = all_nodes_client(servers.urls());
    let locks = [take(&all, "orders:1", LONG), take(&all, "users:1", LONG)];
    let user = ["ACL", "SETUSER", "some", "on", ">pw", "~orders:*", "+@all"];
    servers[0].command(&user);
    let url = servers[0].url().replacen("://", "://some:pw@", 1);
    let client = all_nodes_client([url]);
    assert_eq!(names(client.locks("*")), [b"orders:1"]);
    drop(locks);
}

#[test]
fn a_key_that_is_longer_than_that_of_any_lock_hides_no_lock() {
    let servers = Servers::start(1);
    let client = all_nodes_client(servers.urls());
    let lock = take(&client, "x".repeat(63 * 1024), LONG);
    for length in [63 * 1024 + 1, 70_000, 210_000] {
        servers[0].command(&["SET", &"y".repeat(length), "value", "PX", "50000"]);
    }
    let other = take(&client, "job", LONG);
    assert_eq!(
        names(client.locks("*"))
            .iter()
            .map(Vec::len)
            .collect::<Vec<_>>(),
        [3, 63 * 1024]
    );
    assert!(
        client.nodes()[0].last_error.is_none(),
        "the connection has lasted"
    );
    drop((lock, other));
}

/// A node that answers each step of a listing with this cursor and these names.
fn endless(page: impl Fn(u64) -> (u64, Vec<String>) + Send + Sync + 'static) -> Peer {
    Peer::start(move |conversation| {
        let mut number = 0;
        while let Some(command) = conversation.read_command() {
            let verb = command[0].to_ascii_uppercase();
            let reply = match &verb[..] {
                b"INFO" => "$0\r\n\r\n".to_owned(),
                b"EVAL" | b"EVALSHA" => {
                    number += 1;
                    let (cursor, names) = page(number);
                    let proof = String::from_utf8_lossy(command.last().expect("a proof"));
                    let digits = cursor.to_string();
                    let mut reply = format!("*3\r\n:{proof}\r\n${}\r\n{digits}\r\n", digits.len());
                    reply += &format!("*1\r\n*{}\r\n", names.len());
                    for name in names {
                        reply += &format!("${}\r\n{name}\r\n", name.len());
                    }
                    reply
                }
                _ => "-ERR unknown command\r\n".to_owned(),
            };
            if !conversation.send(reply.as_bytes()) {
                return;
            }
        }
    })
}

#[test]
fn a_listing_ends_although_a_node_begins_it_again_and_again() {
    let circles: [fn(u64) -> u64; 3] = [|_| 7, |step| 1 + step % 2, |step| step.min(1_000) % 3 + 1];
    for cursor in circles {
        let peer = endless(move |step| (cursor(step), vec!["job".to_owned()]));
        let client = without_restart_guard(vec![peer.url()]).build().unwrap();
        let mut locks = client.locks("*");
        assert!(locks.next().unwrap().unwrap().resource() == "job");
        let Some(Err(Error::NoQuorum(error))) = locks.next() else {
            panic!("it ends")
        };
        let texts = report_texts(&error);
        assert!(
            texts[0].contains("its list of keys has no end"),
            "{texts:?}"
        );
        assert!(locks.next().is_none());
    }
}

#[test]
fn what_a_node_lists_without_end_is_not_all_remembered() {
    let name = |number: u64| format!("{number:03}{}", "x".repeat(60_000));
    let long = move |step: u64| (step, (0..3).map(|it| name(step * 3 + it)).collect());
    let peer = endless(long);
    let client = without_restart_guard(vec![peer.url()]).build().unwrap();
    let mut count = 0;
    let error = client
        .locks("*")
        .inspect(|_| count += 1)
        .find_map(Result::err);
    let Some(Error::NoQuorum(error)) = error else {
        panic!("{error:?}")
    };
    let texts = report_texts(&error);
    assert!(
        texts[0].contains("its list of keys has no end"),
        "{texts:?}"
    );
    assert!((1_000..10_000).contains(&count), "{count} names of 60 kB");
}
