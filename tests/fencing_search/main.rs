//! Every history of fencing tokens, up to a size: three nodes, two clients that ask again and again,
//! messages that arrive late or never, keys that expire and nodes that lose all data at any moment.
//!
//! The scheme is that of `engine/acquire/fencing.rs` and `node/claim.lua`, written down a second
//! time, as small as it can be. Two things must hold in every state: no two grants have the same
//! token, and a grant whose attempt began after another grant was given has the larger one. Time
//! plays no part: a token must be right even where a lock is held by two clients at once because
//! keys were lost.

mod search;
mod world;

use search::{Found, search};
use world::Scheme;

/// As many states as plain `cargo test` looks at for each variant: some seconds in a debug build.
const STATES: usize = 400_000;

fn states() -> usize {
    let wanted = std::env::var("REDLATCH_STATES");
    wanted.map_or(STATES, |states| states.parse().expect("REDLATCH_STATES is a number"))
}

#[test]
fn tokens_are_unique_and_grow_in_every_history() {
    let found = search(Scheme::SOUND, states());
    eprintln!("{found:?}");
    assert!(matches!(found, Found::Nothing { .. }), "{found:?}");
}

#[test]
fn each_part_of_the_scheme_is_needed() {
    let broken = [
        (
            "the write-back sets counters whoever holds the lock",
            Scheme { confirms_blindly: true, ..Scheme::SOUND },
        ),
        ("there is no write-back", Scheme { never_confirms: true, ..Scheme::SOUND }),
        ("counters begin at one", Scheme { has_no_seed: true, ..Scheme::SOUND }),
        (
            "the seed counts only where there is no counter",
            Scheme { seeds_only_the_missing: true, ..Scheme::SOUND },
        ),
    ];
    for (mistake, scheme) in broken {
        let found = search(scheme, 20_000_000);
        eprintln!("{mistake}: {found:?}");
        assert!(matches!(found, Found::Violation { .. }), "{mistake}: {found:?}");
    }
}
