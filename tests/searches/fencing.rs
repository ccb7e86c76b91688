//! An exhaustive search through all histories of fencing tokens up to a size: three nodes, two
//! clients that request a lock repeatedly, claims that arrive after their timeout, keys that expire
//! at any moment, and either nodes that lose all their data at any moment, or clients whose wall
//! clocks disagree.
//!
//! The clients are a minimal second version of `engine/acquire/attempts.rs`; what a node does, the
//! library's own Lua does (`node.rs`). Two things must hold in every state: no two grants have the
//! same token, and a grant whose attempt began after another grant has the larger token. The
//! validity of locks is ignored: tokens must be right even if two clients hold a lock at once
//! because keys were lost.

mod node;
mod world;

use models::Change;
use models::explore::{self, Order};
use redlatch_protocol::node::script::{CLAIM, FENCE, Script};
use world::Scheme;

/// Nodes lose their data, and the clients' clocks agree.
const LOST_DATA: Scheme = Scheme::SOUND;

/// Nodes keep their data, and the clients' clocks do not agree.
const WRONG_CLOCKS: Scheme = Scheme {
    loses_data: false,
    clocks_disagree: true,
    ..Scheme::SOUND
};

/// The number of states that plain `cargo test` searches: about a second in a debug build.
const STATES: u64 = 7_500;

/// More states than are needed to find the violation of each broken scheme.
const ENOUGH: usize = 2_000_000;

#[test]
fn tokens_are_unique_and_grow_in_every_history() {
    let states = models::budget("REDLATCH_STATES", STATES) as usize;
    for scheme in [LOST_DATA, WRONG_CLOCKS] {
        for has_late_claims in [false, true] {
            let mut scheme = Scheme {
                has_late_claims,
                ..scheme
            };
            explore::sound("tokens", &mut scheme, states, Order::Breadth);
        }
    }
}

/// The order is the one in which the violation is found sooner.
#[track_caller]
fn expect_broken(mistake: &str, mut scheme: Scheme, order: Order) {
    explore::broken(mistake, &mut scheme, ENOUGH, order);
}

/// A mistake of a node.
const fn change(
    scripts: &'static [Script],
    from: &'static str,
    to: &'static str,
) -> Option<Change> {
    Some(Change { scripts, from, to })
}

#[test]
fn each_part_of_the_scheme_is_needed() {
    let blindly = Scheme {
        change: change(&[FENCE], "if held ~= ARGV[2] then", "if false then"),
        ..WRONG_CLOCKS
    };
    expect_broken(
        "the write-back raises counters even if another client holds the lock",
        blindly,
        Order::Depth,
    );
    // A counter above the token may have given the token to another client before.
    let above = Scheme {
        change: change(
            &[FENCE],
            "if problem or is_above and not is_shared then",
            "if problem then",
        ),
        ..WRONG_CLOCKS
    };
    expect_broken(
        "the write-back counts where the counter is above the token",
        above,
        Order::Depth,
    );
    expect_broken(
        "there is no write-back",
        Scheme {
            never_confirms: true,
            ..WRONG_CLOCKS
        },
        Order::Depth,
    );
    expect_broken(
        "counters begin at one",
        Scheme {
            has_no_seed: true,
            ..LOST_DATA
        },
        Order::Depth,
    );
    // A claim in flight while a node lost its data starts a counter below tokens that were given
    // meanwhile. Later claims must not count from there.
    let only_the_missing = Scheme {
        change: change(
            &[CLAIM],
            "math.max(fence, tonumber(ARGV[5]), counter and counter + 1 or 0)",
            "counter and counter + 1 or tonumber(ARGV[5])",
        ),
        ..LOST_DATA
    };
    expect_broken(
        "a seed counts only where there is no counter",
        only_the_missing,
        Order::Breadth,
    );
}
