//! Transactions: two sides commit, or neither does.
//!
//! - `calls.rs`: each call, on real servers, with participants in memory.
//! - `postgres.rs`: what the guide says of PostgreSQL, on a real server.
//! - `rounds.rs`: how many rounds each step takes.
//! - `search.rs`: all schedules of the library's own steps, in which participants die and come
//!   back, and changes of the record are late, lost or unheard; and mistakes, which must be found.
//!
//! In `tests/stock_transfer.rs`, an example's processes are killed at each of their steps.

#![expect(clippy::unwrap_used, reason = "a call that fails fails the test")]

mod calls;
mod group;
mod mistake;
mod postgres;
mod rounds;
mod search;
mod shelf;
mod world;
