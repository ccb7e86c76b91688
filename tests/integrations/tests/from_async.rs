//! Runs the examples that are built on async runtimes, whose crates no other program needs. Their
//! own checks say whether the result is as described.

use redlatch::LockClient;
use redlatch::embedded::Nodes;
use std::time::Duration;
use tokio::runtime::Builder;
use tokio::task::{JoinSet, spawn_blocking};

#[path = "../examples/from_axum.rs"]
#[allow(
    dead_code,
    reason = "its main reads the command line, which is this test's here"
)]
mod from_axum;
#[path = "../examples/from_mio.rs"]
#[allow(
    dead_code,
    reason = "its main reads the command line, which is this test's here"
)]
mod from_mio;
#[path = "../examples/from_smol.rs"]
#[allow(
    dead_code,
    reason = "its main reads the command line, which is this test's here"
)]
mod from_smol;
#[path = "../examples/from_tokio.rs"]
#[allow(
    dead_code,
    reason = "its main reads the command line, which is this test's here"
)]
mod from_tokio;

#[test]
fn tasks_of_tokio_hold_locks_and_leave_the_queue_when_they_are_dropped() {
    let nodes = Nodes::start(3).expect("nodes can be started");
    from_tokio::story(&nodes.urls()).expect("it checks its own result");
}

#[test]
fn tasks_of_smol_are_served_in_order_and_leave_the_queue_when_they_are_dropped() {
    let nodes = Nodes::start(3).expect("nodes can be started");
    from_smol::story(&nodes.urls()).expect("it checks its own result");
}

#[test]
fn an_event_loop_gets_its_locks_by_callbacks() {
    let nodes = Nodes::start(3).expect("nodes can be started");
    from_mio::story(&nodes.urls()).expect("it checks its own result");
}

#[test]
fn a_request_whose_client_has_hung_up_waits_no_more() {
    let nodes = Nodes::start(3).expect("nodes can be started");
    from_axum::story(&nodes.urls()).expect("it checks its own result");
}

/// With a thread of that pool for each wait, none would be left for the release of the holder.
#[test]
fn waits_of_six_hundred_tasks_leave_the_only_blocking_thread_to_releases() {
    let nodes = Nodes::start(3).expect("nodes can be started");
    let client = LockClient::new(nodes.urls()).expect("the URLs are good");
    let runtime = Builder::new_multi_thread()
        .worker_threads(2)
        .max_blocking_threads(1)
        .build()
        .expect("a runtime starts");
    runtime.block_on(async {
        let mut tasks = JoinSet::new();
        for _ in 0..600 {
            let waiting = client
                .request("name")
                .ttl(Duration::from_secs(60))
                .lock_async();
            tasks.spawn(async move {
                let lock = waiting.await.expect("it is granted");
                let released = spawn_blocking(|| lock.release()).await;
                released.expect("no panic").expect("it is held");
            });
        }
        while let Some(served) = tasks.join_next().await {
            served.expect("no panic");
        }
    });
}
