//! The pure part of [redlatch](https://docs.rs/redlatch): state machines of locks, and the
//! conversation with Redis nodes as bytes. No interface is promised here: use that crate.
//!
//! No socket, clock or source of random numbers is here; bytes, times and random numbers are
//! arguments.

#![allow(
    missing_docs,
    clippy::exhaustive_enums,
    clippy::exhaustive_structs,
    reason = "it has no interface; what redlatch shows of it is documented, and says what may grow"
)]

pub mod engine;
#[cfg(feature = "diagnostics")]
pub mod glob;
pub mod inspect;
pub mod node;
pub mod resp;
pub mod time;
pub mod write_buffer;
