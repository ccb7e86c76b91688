//! Real faults on real servers. The table in `docs/faults.md` lists which fault is tested where,
//! also in other files, and which cannot be injected here and why; `rows.rs` checks the table.

mod clocks;
mod connecting;
mod cuts;
mod descriptors;
#[cfg(target_os = "linux")] // its shim calls Linux itself, and it reads /proc
mod forks;
mod holders;
mod names;
mod network;
mod once_per;
mod once_per_claim;
mod once_per_killed;
mod quorums;
mod rights;
mod rows;
mod silence;
