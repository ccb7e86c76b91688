//! The library as a program uses it, against real servers: one module for each verb and each kind
//! of fault, all in one program, whose tests run side by side.
//!
//! `cargo test --test api lock::` runs one module. What needs a process of its own is a program of
//! its own: it counts threads, memory or allocations, gets signals, or takes the whole machine.

mod support;

mod bridges;
mod bystanders;
mod cancel;
mod cancel_stress;
mod cancel_token;
mod conformance;
mod contention;
mod embedded;
mod errors;
mod event_callbacks;
mod events;
mod every_node;
mod examples;
mod extend;
mod fencing;
mod fencing_counters;
mod fencing_rounds;
mod force_release;
mod forgotten_scripts;
mod handoff;
mod handoff_faults;
mod harness;
mod hold_at_least;
mod inspect;
mod inspect_queue;
mod keep_alive;
mod keep_callbacks;
mod keep_events;
mod keep_loss;
mod late;
mod leave;
mod listing;
mod listing_odd_servers;
mod lock;
mod more_nodes;
mod name_length;
mod nobody_in_vain;
mod node_events;
mod node_warnings;
mod nodes;
mod permit_links;
mod permits;
mod quarantine;
mod queue;
mod queue_events;
mod queue_faults;
mod queue_rights;
mod queue_waiters;
mod readers;
mod readers_waiting;
mod relay;
mod release;
mod request;
mod restart_guard;
mod restarts;
mod script_rules;
mod several;
mod several_nodes;
mod split_permits;
mod split_votes;
mod strangers;
mod stray;
mod timeout;
mod twice;
mod with_lock;
mod with_lock_loss;
