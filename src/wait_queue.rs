//! A FIFO wait queue for each lock, within this process, with direct handoff.
//!
//! Threads of one client that want the same lock wait in a queue. Only its head asks the nodes; the
//! others would only compete with it. A release hands the lock to the next waiter together with the
//! lock, and that waiter replaces the token on the nodes in one round
//! ([`Acquire::taking_over`](crate::engine::Acquire::taking_over)).
//!
//! ```text
//!         queue is empty                    granted                hand_off
//!   join ───────────────▶ head, asks the ───────────▶ head, holds ──────────▶ next waiter
//!     │                   nodes                       the lock                becomes the head
//!     └── otherwise ──▶ waiter ──▶ promoted, with or without the lock ──▶ head
//! ```
//!
//! What must stay true: a queue with waiters has a head. The first waiter watches the clock, so
//! that a head which never comes back (a leaked guard, a thread that hangs) delays others only
//! until its key has expired. Tokens still make the lock safe; the queue only saves requests.

mod handoff_limit;
mod own;
mod queue;
mod taker;
mod waiting_thread;

pub(crate) use handoff_limit::HandoffLimit;
pub(crate) use queue::{HeadHandle, Joined, QueueHead, WaitQueues};
pub(crate) use taker::{Caller, StartedCaller, Taker};

#[cfg(test)]
mod tests;
