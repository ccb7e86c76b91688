//! Shares of a lock: readers beside each other, and permits.

mod permit_links;
mod permits;
mod permits_crowd;
mod readers;
mod readers_together;
mod readers_together_waiting;
mod readers_waiting;
mod split_permits;
