//! The servers: their states, errors and warnings, restarts, and lists of them that change.

mod events;
mod every_node;
mod more_nodes;
mod quarantine;
mod restart_guard;
mod restarts;
mod status;
mod warnings;
