//! Searches for histories of registers in which an agreement is broken.
//!
//! The clients run the library's own changes (`client.rs`), the nodes the library's own Lua
//! (`server.rs`). In between, every command that was ever sent may be carried out at any time,
//! again, or never, and answers are late or lost (`world.rs`). Small histories are searched
//! exhaustively (`search.rs`), larger ones by random walks, on three and five nodes and with nodes
//! that lose all they have kept (`walk.rs`). What must hold:
//!
//! - The results of all calls have a linearization, and versions grow along it, also over deletions
//!   (`history.rs`).
//! - When faults stop, each majority serves a new client.
//!
//! Each [`Mistake`](mistake::Mistake) leaves out one rule of the protocol, and must be found.
//!
//! `REDLATCH_WALKS=1000000 REDLATCH_STATES=3000000 cargo test --release --test register_search --
//! --nocapture` goes further than plain `cargo test` does; `REDLATCH_SEED` is the first seed.
//! `REDLATCH_TRACE=1` shows how each mistake was found.

#[path = "../searches/change.rs"]
mod change;
mod client;
mod deletions;
mod expect;
mod history;
mod misreading;
mod mistake;
mod plan;
#[path = "../searches/random.rs"]
mod random;
mod registers;
mod search;
mod server;
#[path = "../searches/shorter.rs"]
mod shorter;
mod step;
mod story;
mod walk;
#[path = "../searches/words.rs"]
mod words;
mod world;
