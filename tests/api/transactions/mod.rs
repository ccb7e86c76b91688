//! Transactions: two sides commit, or neither does.
//!
//! - `calls.rs`: each call, on real servers, with participants in memory.
//! - `postgres.rs`: what the guide says of PostgreSQL, on a real server.
//! - `records.rs`: what of them is on the nodes, and is swept.
//! - `replaced.rs`: two processes of one side, of which one is stopped while the other goes on.
//! - `rounds.rs`: how many rounds each step takes.
//! - `whole.rs`: a process that has all sides.
//!
//! `tests/transaction_search` goes through all schedules of their steps. In
//! `tests/integrations/tests/stock_transfer.rs`, an example's processes are killed at each of
//! their steps.

#![expect(clippy::unwrap_used, reason = "a call that fails fails the test")]

mod calls;
mod group;
mod postgres;
mod records;
mod replaced;
mod rounds;
mod shelf;
mod whole;
