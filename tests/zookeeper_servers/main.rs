//! Sessions and contenders on real ZooKeeper servers.
//!
//! The tests are skipped where ZooKeeper is not installed: see `support::zookeeper`.

#![expect(
    clippy::unwrap_used,
    reason = "a lock is poisoned only after the test has failed"
)]
#![expect(
    clippy::print_stdout,
    reason = "the figures are worth seeing, with --nocapture"
)]

mod client;
mod contenders;
mod contention;
mod crowds;
mod cuts;
mod drive;
mod expiry;
mod faults;
mod harness;
mod lost_replies;
mod messages;
mod numbers;
mod settings;
mod storm;
