//! Attacks on registers, each with its result: nodes, clients and programs that do what they should
//! not.

#![cfg(target_os = "linux")]
#![expect(
    clippy::unwrap_used,
    reason = "an error that is not expected fails the test"
)]

mod closures;
mod contention;
mod forgetting;
mod formation;
mod network;
mod setting;
