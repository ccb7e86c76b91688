//! The library as a program uses it, against real servers: a folder for each product, all in one
//! program, whose tests run side by side.
//!
//! `cargo test --test api locks::` runs one folder, and `locks::extend::` one file of it. What
//! needs a process of its own is a program in `tests/alone`: it counts threads, memory or
//! allocations, gets signals, or takes the whole machine. Most of these tests wait; the more of
//! them are in one program, the fewer processors are idle.

mod connections;
mod embedded;
mod events;
mod examples;
mod faults;
mod fencing;
mod groups;
mod harness;
mod inspection;
mod interface;
mod keep;
mod locks;
mod matrix;
mod nodes;
mod other_programs;
mod queue;
mod registers;
mod scripts;
mod settings;
mod several;
mod shares;
mod started;
mod transactions;
