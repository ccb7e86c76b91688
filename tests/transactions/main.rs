//! Transactions: two sides commit, or neither does.
//!
//! - `calls.rs`: each call, on real servers, with participants in memory.
//! - `killed.rs`: the example `stock_transfer`, whose processes are killed at each of their steps.
//! - `postgres.rs`: what the guide says of PostgreSQL, on a real server.
//! - `rounds.rs`: how many rounds each step takes.
//! - `search.rs`: all schedules of the library's own steps, in which participants die and come
//!   back, and changes of the record are late, lost or unheard; and mistakes, which must be found.

#![expect(clippy::unwrap_used, reason = "a call that fails fails the test")]

mod calls;
mod group;
mod killed;
mod mistake;
mod postgres;
mod rounds;
mod search;
mod shelf;
#[path = "../examples/stock_transfer.rs"]
#[allow(dead_code, reason = "its main reads the command line, which is this test's here")]
mod stock_transfer;
mod world;
