//! An exhaustive search through all histories of fencing tokens up to a size: three nodes, two
//! clients that request a lock repeatedly, claims that arrive after their timeout, keys that expire
//! at any moment, and either nodes that lose all their data at any moment, or clients whose wall
//! clocks disagree.
//!
//! The model is a minimal second version of `engine/acquire/fencing.rs` and `node/claim.lua`. Two
//! things must hold in every state: no two grants have the same token, and a grant whose attempt
//! began after another grant has the larger token. The validity of locks is ignored: tokens must be
//! right even if two clients hold a lock at once because keys were lost.
//!
//! `REDLATCH_STATES=20000000 cargo test --release --test fencing_search -- --nocapture` looks
//! further than plain `cargo test` does.

mod search;
mod world;

use search::{Found, search};
use world::Scheme;

/// Nodes lose their data, and the clients' clocks agree.
const LOST_DATA: Scheme = Scheme::SOUND;

/// Nodes keep their data, and the clients' clocks do not agree.
const WRONG_CLOCKS: Scheme = Scheme { loses_data: false, clocks_disagree: true, ..Scheme::SOUND };

/// The number of states that plain `cargo test` searches: some seconds in a debug build.
const STATES: usize = 60_000;

/// More states than are needed to find the violation of each broken scheme.
const ENOUGH: usize = 2_000_000;

fn states() -> usize {
    let wanted = std::env::var("REDLATCH_STATES");
    wanted.map_or(STATES, |states| states.parse().expect("REDLATCH_STATES is a number"))
}

#[test]
fn tokens_are_unique_and_grow_in_every_history() {
    for scheme in [LOST_DATA, WRONG_CLOCKS] {
        for has_late_claims in [false, true] {
            let found = search(Scheme { has_late_claims, ..scheme }, states());
            eprintln!("{found}");
            assert!(matches!(found, Found::Nothing { .. }), "{found}");
        }
    }
}

#[track_caller]
fn expect_broken(mistake: &str, scheme: Scheme) {
    let found = search(scheme, ENOUGH);
    eprintln!("{mistake}: {found}");
    assert!(matches!(found, Found::Violation { .. }), "{mistake}: {found}");
}

#[test]
fn each_part_of_the_scheme_is_needed() {
    let blindly = Scheme { confirms_blindly: true, ..WRONG_CLOCKS };
    expect_broken("the write-back raises counters even if another client holds the lock", blindly);
    // A counter above the token may have given the token to another client before.
    let above = Scheme { confirms_what_is_above: true, ..WRONG_CLOCKS };
    expect_broken("the write-back counts where the counter is above the token", above);
    expect_broken("there is no write-back", Scheme { never_confirms: true, ..WRONG_CLOCKS });
    expect_broken("counters begin at one", Scheme { has_no_seed: true, ..LOST_DATA });
    // A claim in flight while a node lost its data starts a counter below tokens that were given
    // meanwhile. Later claims must not count from there.
    let only_the_missing = Scheme { seeds_only_the_missing: true, ..LOST_DATA };
    expect_broken("a seed counts only where there is no counter", only_the_missing);
}
