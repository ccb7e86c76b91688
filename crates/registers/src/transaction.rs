//! Transactions: two processes change two databases, or none does.
//!
//! Each transaction has one [`Record`], which is the value of a register. It holds the votes, and
//! the change that adds the last vote is the decision. So there is no coordinator that could fail
//! between the votes and the decision, as in two-phase commit, and a side that waits for too long
//! does not decide alone, as in three-phase commit. (Paxos Commit, Gray and Lamport 2006, has a
//! consensus instance for each vote; here one register holds all of them.)
//!
//! ```text
//!              begin               the last vote                    the last finish
//!   no record ───────▶ Open{voted} ─────────────▶ Committed{finished} ─────────────▶ no record
//!                        │                                                              ▲
//!                        └──────────────────────── abort ───────────────────────────────┘
//! ```
//!
//! - To a side that is prepared, no record means that the transaction was aborted. Nobody can vote
//!   before the record was made, as nobody knows the id. To all others it means that the
//!   transaction is over, or never was.
//! - Anybody may abort what is not committed. After its vote, a side never rolls back on its own.
//! - A side finishes when its commit is on its disk. The record is there until all have: before
//!   that, somebody may come back and ask.
//!
//! [`Joining`] is what one side does, in which order. It sees no register, no clock and no disk.

mod id;
mod joining;
mod names;
mod record;

pub use id::{InvalidTransactionId, TransactionId};
pub use joining::{Disk, JoinEnd, JoinStep, Joining};
pub use names::{NamesError, PARTICIPANT_NAME_MAX, PARTICIPANTS_MAX};
pub use record::{InvalidRecord, Record, Told, UnknownName};
