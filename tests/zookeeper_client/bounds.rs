//! How much a client puts on the ensemble at most.

use redlatch::Error;
use std::time::Duration;
use support::zookeeper::ask;
use support::{eventually, needs_zookeeper};

use crate::operator::Operator;
use crate::rig::client;
use crate::{LIMIT, LONG};

/// ZOOKEEPER-4306: the transaction that ends a session lists its znodes. The server's limit of a
/// transaction is the default one here.
#[test]
fn a_client_holds_no_more_than_a_server_can_end_at_once() {
    let ensemble = needs_zookeeper!().start(1);
    let client = client(&ensemble.url("/locks"), Duration::from_secs(10));
    // Sets of long names, for few requests: each has the paths of 20 znodes.
    let name = |set: usize, number: usize| format!("{set}-{number}-{}", "n".repeat(1_000));
    let mut sets = Vec::new();
    let refused = loop {
        let names: Vec<String> = (0..20).map(|number| name(sets.len(), number)).collect();
        match client.request_all(&names).ttl(LONG).try_lock() {
            Ok(set) => sets.push(set.expect("nobody else has it")),
            Err(error) => break error,
        }
    };
    assert_eq!(refused, Error::TooManyHeld);
    assert!((20..=26).contains(&sets.len()), "{} sets", sets.len());
    assert!(sets.iter().all(|set| set.ensure_held().is_ok()));
    // What is released makes room.
    assert_eq!(sets.pop().map(redlatch::LockGuard::release), Some(Ok(())));
    assert!(client.try_lock("small", LONG).unwrap().is_some());
    // All of them end with the session, and the server goes on.
    let mut operator = Operator::new(ensemble[0].port());
    operator.expire_in(&format!("/locks/{}", name(0, 0)), 0);
    let port = ensemble[0].port();
    let is_empty = || {
        let text = ask(port, "mntr").unwrap_or_default();
        text.lines()
            .any(|line| line.split_whitespace().eq(["zk_ephemerals_count", "0"]))
    };
    assert!(eventually(LIMIT, is_empty));
    assert!(eventually(LIMIT, || sets
        .iter()
        .all(|set| set.ensure_held().is_err())));
    assert!(client.try_lock("small", LONG).unwrap().is_some());
}
