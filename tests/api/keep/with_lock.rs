//! `with_lock` whose lock is lost while the body runs: the result says so.

use std::time::Duration;

use redlatch::{Error, LockClient, LockGuard, LossReason};
use support::locks::{LONG, gone, pause, resume, without_restart_guard};
use support::servers::Servers;

fn client(servers: &Servers) -> LockClient {
    let settings = without_restart_guard(servers.urls());
    settings
        .node_timeout(Duration::from_millis(400))
        .build()
        .expect("the settings are good")
}

/// Why the lock was lost, of whose body this is the result.
#[track_caller]
fn loss<T>(result: Result<T, Error>) -> LossReason {
    match result {
        Err(Error::Lost(lost)) => lost.reason(),
        Err(error) => panic!("{error}"),
        Ok(_) => panic!("it was held to the end"),
    }
}

#[test]
fn a_lock_whose_keys_vanished_during_the_body_was_lost_also_if_no_extension_noticed() {
    let servers = Servers::start(3);
    let client = client(&servers);
    // The next extension is due in ten seconds.
    let flush = |held: &LockGuard, nodes: usize| {
        servers
            .iter()
            .take(nodes)
            .for_each(|server| _ = server.command(&["DEL", "orders"]));
        assert_eq!(held.ensure_held(), Ok(()), "the client cannot know yet");
        Ok("sent")
    };
    for nodes in [2, 3] {
        let result = client.with_lock("orders", LONG, |held| flush(held, nodes));
        assert_eq!(loss(result), LossReason::Gone);
    }
    let request = client.request("orders").ttl(LONG);
    let result = request.clone().try_with_lock(|held| flush(held, 3));
    assert_eq!(loss(result), LossReason::Gone);
    // A majority still has it.
    assert_eq!(request.with_lock(|held| flush(held, 1)), Ok("sent"));
}

#[test]
fn nodes_that_do_not_answer_the_release_are_no_loss() {
    let servers = Servers::start(3);
    let client = client(&servers);
    for own in [Ok(7), Err(Error::HeldByThisThread)] {
        let result = client.with_lock("orders", LONG, |_| {
            pause(&servers, 3);
            own.clone()
        });
        assert_eq!(result, own);
        resume(&servers, 3);
        assert!(
            gone(&servers, "orders"),
            "it is released when they can be reached"
        );
    }
}
