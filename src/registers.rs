//! Registers: values that a majority of the nodes agrees on for good; and what is built on them:
//! transactions, and jobs that run once in each period. No lock needs any of this.
//!
//! The methods of a [`LockClient`](crate::LockClient) with which all that begins are here too.

mod once_per;
pub mod register;
pub mod transaction;

pub use once_per::{OncePer, OncePerRun};
