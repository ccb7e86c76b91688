//! Nodes that are made a group, by several at once or not to the end.

use super::setting::{client, read, set, with_timeout};
use redlatch::RegisterError;
use std::sync::Barrier;
use std::thread;
use std::time::Duration;
use support::servers::Servers;

#[test]
fn clients_that_form_at_once_make_one_group() {
    for _ in 0..8 {
        let servers = Servers::start(3);
        let mut urls = servers.urls();
        let barrier = Barrier::new(4);
        let results: Vec<Result<(), RegisterError>> = thread::scope(|scope| {
            let threads: Vec<_> = (0..4)
                .map(|_| {
                    urls.rotate_left(1);
                    let client = client(&urls);
                    let barrier = &barrier;
                    scope.spawn(move || {
                        let _ = client.nodes();
                        barrier.wait();
                        client.registers().form(true)
                    })
                })
                .collect();
            threads
                .into_iter()
                .map(|thread| thread.join().unwrap())
                .collect()
        });
        let formed = results.iter().filter(|result| result.is_ok()).count();
        assert_eq!(formed, 1, "{results:?}");
        let register = client(&servers.urls());
        let register = register.register("a").unwrap();
        set(&register, "one");
        assert_eq!(read(&register), Some("one".to_owned()));
    }
}

#[test]
fn marks_that_are_garbage_are_errors_or_other_nodes() {
    let (servers, first) = super::setting::formed(3);
    let register = first.register("a").unwrap();
    set(&register, "one");
    let long = "redlatch 1 ".to_owned() + &"x".repeat(100_000);
    for garbage in ["", "redlatch 1 ", "redlatch 2 joining 7", "\r\n-ERR", &long] {
        servers[0].command(&["SET", ":redlatch:member", garbage]);
        set(&register, "two");
        let fresh = client(&servers.urls());
        assert_eq!(read(&fresh.register("a").unwrap()), Some("two".to_owned()));
    }
    servers[0].command(&["DEL", ":redlatch:member"]);
    servers[0].command(&["LPUSH", ":redlatch:member", "x"]);
    set(&register, "three");
    let fresh = client(&servers.urls());
    assert_eq!(
        read(&fresh.register("a").unwrap()),
        Some("three".to_owned())
    );
}

#[test]
fn a_node_of_another_group_costs_the_others_nothing() {
    let (servers, first) = super::setting::formed(3);
    set(&first.register("a").unwrap(), "one");
    let (others, _) = super::setting::formed(3);
    let urls = [servers[0].url(), servers[1].url(), others[0].url()];
    let fresh = client(&urls).register("a").unwrap().read();
    assert!(fresh.is_ok(), "{fresh:?}");
}

#[test]
fn a_formation_that_has_ended_half_way_is_told_as_such() {
    let servers = Servers::start(3);
    let first = client(&servers.urls());
    first.registers().form(true).unwrap();
    // It came to one node of three.
    for server in &servers[1..] {
        server.command(&["SET", ":redlatch:member", "redlatch 1 joining 17 run "]);
    }
    let error = client(&servers.urls()).registers().form(true).unwrap_err();
    assert!(error.to_string().contains(&servers[0].url()), "{error}");
    assert!(error.to_string().contains("half way"), "{error}");
    assert!(
        error.to_string().contains("delete the key"),
        "it has the cure: {error}"
    );
    let unread = client(&servers.urls())
        .register("a")
        .unwrap()
        .read()
        .unwrap_err();
    assert!(
        unread.to_string().contains("redlatch registers"),
        "{unread}"
    );
    let refused = first.registers().repair().unwrap_err();
    assert!(refused.to_string().contains("half way"), "{refused}");
    servers[0].command(&["DEL", ":redlatch:member"]);
    first.registers().form(true).unwrap();
    let register = first.register("a").unwrap();
    set(&register, "one");
    assert_eq!(read(&register), Some("one".to_owned()));
}

#[test]
fn a_formation_says_that_all_nodes_must_answer() {
    let mut servers = Servers::start(3);
    servers[2].kill();
    let RegisterError::NoQuorum { error, .. } =
        client(&servers.urls()).registers().form(true).unwrap_err()
    else {
        panic!("a node is down")
    };
    assert_eq!((error.answered(), error.needed()), (2, 3));
    assert!(
        error
            .to_string()
            .contains("2 of 3 nodes gave an answer that counts, 3 must")
    );
}

#[test]
fn garbage_on_one_node_is_in_nobodys_way_while_two_agree_and_is_named_otherwise() {
    let (servers, _) = super::setting::formed(3);
    let key = ":redlatch:register:a";
    let later = "0000000000000001aaaaaaaaaaaaaaaaaaaa\u{2}x";
    set(&client(&servers.urls()).register("a").unwrap(), "one");
    for (garbage, new) in [("x", "two"), (later, "three")] {
        let fresh = client(&servers.urls()).register("a").unwrap();
        let before = read(&fresh);
        servers[0].command(&["SET", key, garbage]);
        assert_eq!(read(&fresh), before);
        set(&client(&servers.urls()).register("a").unwrap(), new);
        assert_eq!(read(&fresh), Some(new.to_owned()));
    }
    servers[0].command(&["SET", key, "x"]);
    servers[1].pause();
    let alone = with_timeout(&servers.urls(), Duration::from_secs(1))
        .register("a")
        .unwrap();
    for error in [
        alone.read().unwrap_err(),
        alone.change(|_| Some(vec![1])).unwrap_err(),
    ] {
        let expected = format!("{}/0: another program has written", servers[0].url());
        assert!(error.to_string().starts_with(&expected), "{error}");
    }
    servers[1].resume();
}

#[test]
fn a_floor_that_is_garbage_is_mended_by_a_repair_or_its_node_is_named() {
    let (servers, first) = super::setting::formed(3);
    set(&first.register("a").unwrap(), "one");
    let spoil = |node: usize| servers[node].command(&["SET", ":redlatch:register-floor", "x"]);
    servers[2].command(&["FLUSHALL"]);
    spoil(2);
    assert_eq!(first.registers().repair().unwrap().len(), 1);
    servers[2].command(&["FLUSHALL"]);
    spoil(0);
    let error = first.registers().repair().unwrap_err().to_string();
    let (_, named) = error.split_once(&servers[0].url()).expect("it is named");
    assert!(named.starts_with("/0: unexpected reply"), "{error}");
}
