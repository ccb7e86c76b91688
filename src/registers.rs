//! Registers: values that a majority of the nodes agrees on for good; and what is built on them:
//! transactions, and jobs that run once in each period.

mod once_per;
mod register;
mod transaction;

pub use once_per::{OncePer, OncePerRun};
pub use register::{Changed, Register, RegisterList, Registers, Stale, Swept, VALUE_MAX, Value};
pub use transaction::{Decision, Participant, Transaction, Transactions};
