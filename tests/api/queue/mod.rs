//! The nodes' queue of waiters: its order, its events, and what disturbs it.

mod events;
mod faults;
mod order;
mod processes;
mod rights;
mod skipped_waiters;
mod waiters;
