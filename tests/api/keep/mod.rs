//! Locks that are kept: extended by the watchdog until they are released or lost.

mod alive;
mod busy;
mod events;
mod loss;
mod many;
mod with_lock;
