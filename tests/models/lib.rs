//! What the searches for broken promises share: the search through all states of a model, random
//! walks, shorter histories and their stories, mistakes in scripts.
//!
//! | variable | effect |
//! |---|---|
//! | `REDLATCH_STATES`, `REDLATCH_WALKS` | how many states and walks a test looks at |
//! | `REDLATCH_TIMES` | looks at as many times what plain `cargo test` does |
//! | `REDLATCH_SEED` | the first seed of walks |
//! | `REDLATCH_TRACE=1` | tells the walk in which each wrong rule shows |
//! | `REDLATCH_COUNT` | counts in how many of so many walks each wrong rule shows |

#![allow(
    missing_docs,
    missing_debug_implementations,
    reason = "nothing outside the tests uses it"
)]
#![allow(
    clippy::exhaustive_enums,
    clippy::exhaustive_structs,
    reason = "likewise"
)]
#![allow(clippy::must_use_candidate, reason = "likewise")]

#[path = "../support/chance.rs"]
mod chance;
mod change;
pub mod explore;
pub mod walk;
mod words;

pub use chance::Chance;
pub use change::{Change, changed};
use std::hash::{BuildHasher, RandomState};
pub use words::words;

/// The number in a variable of the environment.
pub fn number(variable: &str, otherwise: u64) -> u64 {
    let wanted = std::env::var(variable);
    wanted.map_or(otherwise, |wanted| {
        wanted.parse().expect("the variable is a number")
    })
}

/// How many histories, walks or states a test looks at: what the variable says, or else as many as
/// plain `cargo test` does, `REDLATCH_TIMES` over. `./check` sets that.
pub fn budget(variable: &str, plain: u64) -> u64 {
    number(variable, plain * number("REDLATCH_TIMES", 1))
}

/// This many seeds, of which the last twentieth is another each time, and where that begins.
pub fn seeds(count: u64) -> (impl Iterator<Item = u64>, u64) {
    let from = number("REDLATCH_SEED", 0);
    let fresh = RandomState::new().hash_one(count);
    let seed = move |index| {
        if index < count - count / 20 {
            from + index
        } else {
            fresh.wrapping_add(index)
        }
    };
    ((0..count).map(seed), fresh)
}
