//! Runs the examples that are built on async runtimes, whose crates no other program needs. Their
//! own checks say whether the result is as described.

use redlatch::embedded::Nodes;

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
