//! Nodes that are made a group, by several at once or not to the end.

use super::setting::{client, read, set};
use redlatch::RegisterError;
use std::sync::Barrier;
use std::thread;
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
                    let (client, barrier) = (client(&urls), &barrier);
                    scope.spawn(move || {
                        let _ = client.nodes();
                        barrier.wait();
                        client.form_registers(true)
                    })
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
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
    assert_eq!(read(&fresh.register("a").unwrap()), Some("three".to_owned()));
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
    first.form_registers(true).unwrap();
    // It came to one node of three.
    for server in &servers[1..] {
        server.command(&["SET", ":redlatch:member", "redlatch 1 joining 17 run "]);
    }
    let error = client(&servers.urls()).form_registers(true).unwrap_err();
    assert!(error.to_string().contains(&servers[0].url()), "{error}");
    assert!(error.to_string().contains("half way"), "{error}");
    servers[0].command(&["DEL", ":redlatch:member"]);
    first.form_registers(true).unwrap();
    let register = first.register("a").unwrap();
    set(&register, "one");
    assert_eq!(read(&register), Some("one".to_owned()));
}
