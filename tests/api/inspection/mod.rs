//! Locks of others: what of them is seen, listed and ended by force.

mod force_release;
mod listing;
mod locks;
mod odd_servers;
mod queue;
