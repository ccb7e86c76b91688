//! Searches for histories of replicated groups in which two clients hold a lock, by the rule of
//! groups without `replicas=`. (`tests/history_search` has the other rule.)
//!
//! Replication is late and in order, a promotion loses what had not arrived, a replaced master goes
//! on for a while, servers start again with or without their keys, are elected again
//! untold, or execute nothing for any time; markers are flushed and evicted; connections end, and
//! what was written on them is carried out later; a vote and the check behind it are two steps, and
//! their answers are read later still (`group.rs`, `world.rs`; the steps from each state,
//! `search.rs`). Time is whole ticks, one for all.
//!
//! What a server does, the library's own Lua does on an embedded node (`node.rs`). What its answers
//! mean, the library's own rule says, `Reign`; what `node/session/trust/reign.rs` does with that, a
//! model does (`client.rs`). In some schemes clients resume by its token the lock that they held
//! last, which they have given away, or released, or which has ended.
//!
//! Small histories are searched exhaustively, larger ones by random walks, of one group and of
//! three. Each [`Mistake`](scheme::Mistake) is a wrong rule and must be found: by walks, or by a
//! schedule where walks hardly do (`directed.rs`).
//!
//! The model lacks drifting clocks, the queue, shares and fencing, and slots that move.
//!
//! `REDLATCH_WALKS=1000000 REDLATCH_STATES=10000000 cargo test --release --test group_search --
//! --nocapture` goes further than plain `cargo test` does; `tests/models/lib.rs` has more
//! variables.

mod client;
mod directed;
mod expect;
mod group;
mod node;
mod scheme;
mod search;
mod world;

use expect::{broken, broken_by_search, broken_from, sound, sound_walks};
use scheme::{Faults, Mistake, Scheme};

/// How many walks plain `cargo test` takes.
const WALKS: u64 = 125;

/// Two clients, two servers and one promotion.
const SMALL: Scheme = Scheme {
    servers: 2,
    clients: 2,
    ttl: 1,
    bound: 1,
    goes_on: 1,
    ticks: 2,
    greets_at_once: true,
    tries_early: false,
    extends: false,
    faults: Faults {
        promotions: 1,
        attempts: 2,
        ..Faults::NONE
    },
    ..Scheme::bounded()
};

#[test]
fn all_small_histories_are_sound() {
    sound("small histories", SMALL);
    let restarts = Faults {
        restarts: 1,
        promotions: 0,
        ..SMALL.faults
    };
    sound(
        "small histories with a restart",
        Scheme {
            faults: restarts,
            ..SMALL
        },
    );
}

#[test]
#[ignore = "it takes a minute"]
fn all_small_histories_with_extensions_are_sound() {
    let extends = Scheme {
        extends: true,
        ticks: 3,
        ..SMALL
    };
    sound("small histories with extensions", extends);
}

#[test]
fn the_bound_is_needed_in_a_small_history() {
    broken_by_search(Mistake::NoBound, Scheme { ticks: 3, ..SMALL });
}

#[test]
fn random_walks_are_sound() {
    sound_walks("bounded", WALKS, Scheme::bounded());
    sound_walks("elected again", WALKS, ELECTED_AGAIN);
    sound_walks("three groups", WALKS, THREE_GROUPS);
    sound_walks("elected again, resumed", WALKS, ELECTED_AGAIN.resumed());
    sound_walks("three groups, resumed", WALKS, THREE_GROUPS.resumed());
}

/// Of what happens to the servers, promotions only.
const PROMOTED: Scheme = Scheme {
    faults: Faults {
        promotions: 3,
        attempts: 6,
        new_clients: 3,
        ..Faults::NONE
    },
    ..Scheme::bounded()
};

const ELECTED_AGAIN: Scheme = Scheme {
    servers: 2,
    ticks: 18,
    has_epochs: true,
    faults: Faults {
        second_elections: 1,
        attempts: 8,
        ..PROMOTED.faults
    },
    ..PROMOTED
};

const THREE_GROUPS: Scheme = Scheme {
    groups: 3,
    servers: 2,
    clients: 2,
    ttl: 4,
    ticks: 18,
    attempt: 1,
    greets_at_once: true,
    releases: true,
    faults: Faults {
        promotions: 4,
        restarts: 2,
        attempts: 6,
        new_clients: 2,
        ..Faults::NONE
    },
    ..Scheme::bounded()
};

/// One promotion, after which the replaced master goes on for longer than locks live.
const LONG_BOUND: Scheme = Scheme {
    servers: 2,
    clients: 2,
    ttl: 2,
    bound: 4,
    goes_on: 4,
    ticks: 12,
    faults: Faults {
        promotions: 1,
        attempts: 6,
        ..Faults::NONE
    },
    ..Scheme::bounded()
};

#[test]
fn the_quarantine_and_the_marker_are_needed() {
    broken(Mistake::NoQuarantine, Scheme::bounded());
    broken(Mistake::CountedByWitness, Scheme::bounded());
    broken(Mistake::CountedFromLastHeard, Scheme::bounded());
    broken_from(990, Mistake::MarkerByRun, Scheme::bounded());
    broken(Mistake::CountedByWitness, THREE_GROUPS);
}

#[test]
fn the_check_behind_the_vote_is_needed() {
    broken(Mistake::CheckBefore, Scheme::bounded());
    broken(Mistake::NoCheck, Scheme::bounded());
    broken(Mistake::MarkerIgnored, Scheme::bounded());
}

#[test]
fn the_bound_is_needed() {
    broken(Mistake::NoBound, PROMOTED);
    broken_from(16_200, Mistake::ExtensionAtOnce, LONG_BOUND);
    broken_from(13_800, Mistake::ReclaimAtOnce, LONG_BOUND);
}

#[test]
fn epochs_and_fresh_greetings_are_needed() {
    broken_from(4800, Mistake::NoEpoch, ELECTED_AGAIN);
    broken_from(37_200, Mistake::NotGreetedAgain, ELECTED_AGAIN);
}
