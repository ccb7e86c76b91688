//! Searches for histories of registers in which an agreement is broken.
//!
//! The clients run the library's own changes (`client.rs`), the repairers its own refills
//! (`repairer.rs`), the nodes the library's own Lua (`server.rs`). In between, every command that
//! was ever sent may be carried out at any time, again, or never, and answers are late or lost
//! (`world.rs`). Small histories are searched exhaustively (`search.rs`), larger ones by random
//! walks, on three and five nodes and with nodes that lose all they have kept, or come back with an
//! older state (`walk.rs`). What must hold:
//!
//! - The results of all calls have a linearization, and versions grow along it, also over deletions
//!   (`history.rs`).
//! - When faults stop, each majority of the nodes that have votes serves a new client (`end.rs`).
//! - If a majority has forgotten nothing, a repairer then gives all nodes their votes.
//!
//! Each [`Mistake`](mistake::Mistake) leaves out one rule of the protocol, and must be found.
//!
//! `REDLATCH_WALKS=1000000 REDLATCH_STATES=3000000 cargo test --release --test register_search --
//! --nocapture` goes further than plain `cargo test` does; `tests/models/lib.rs` has more
//! variables.

mod actor;
mod client;
mod current;
mod decision;
mod deletions;
mod end;
mod expect;
mod history;
mod membership;
mod misreading;
mod mistake;
mod plan;
mod refills;
mod registers;
mod repairer;
mod round;
mod search;
mod sending;
mod server;
mod step;
mod told;
mod vote_repairs;
mod voter;
mod votes;
mod walk;
mod world;
