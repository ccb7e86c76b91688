//! Searches for histories of replicated groups in which two clients hold a lock, or a fencing token
//! is given twice, by the rule of `node::history`: each vote is acknowledged by a majority of the
//! group, and a reign is proven by the histories of its servers.
//!
//! What a server is, `group.rs` says: it has a history, which replication, promotions, copies,
//! restarts from old data and broken links change as they do on real servers. What it does with a
//! command, the library's own Lua does on an embedded node (`node.rs`). Votes and the questions
//! behind them are carried out one by one, acknowledgements lie in sockets, answers are read late,
//! replaced masters go on for ever, and what was written on connections that have ended may be
//! carried out later (`world.rs`). What all of that means, the library's own rule says: `weigh`,
//! `Marker`, `Testimony` and `Proof`. What clients do with it, a model does (`client.rs`). In some
//! schemes they resume by its token the lock that they held last.
//!
//! `WAIT` is not there: it only delays the second question, which may be late anyway. Time is whole
//! ticks; the clock of one server may be ahead.
//!
//! Each [`Mistake`](scheme::Mistake) is a wrong rule, or an assumption that does not hold, and
//! leads to two holders in a schedule (`directed.rs`): random walks hardly find most of them. What
//! walks do find, they find too.
//!
//! `REDLATCH_WALKS=1000000 cargo test --release --test history_search -- --nocapture` goes further
//! than plain `cargo test` does; `tests/models/lib.rs` has more variables.

mod client;
mod directed;
mod expect;
mod group;
mod node;
mod schedule;
mod scheme;
mod search;
mod world;

use expect::{broken_from, sound_walks};
use scheme::{Faults, Kind, Mistake, Scheme};

/// How many walks plain `cargo test` takes.
const WALKS: u64 = 125;

#[test]
fn random_walks_are_sound() {
    sound_walks("one promotion", 4 * WALKS, Scheme::small());
    sound_walks("all faults", 4 * WALKS, Scheme::all());
    sound_walks("four replicas", WALKS, FOUR_REPLICAS);
    sound_walks("resumed", WALKS, RESUMED);
    for kind in [Kind::Fenced, Kind::Permit, Kind::Queued] {
        let name = format!("{kind:?}, clocks that differ");
        sound_walks(&name, WALKS, Scheme { kind, ..SKEWED });
    }
}

/// The clock of a replica is ahead.
const SKEWED: Scheme = Scheme {
    skew: 1,
    assumed_skew: 1,
    ..Scheme::small()
};

const FOUR_REPLICAS: Scheme = Scheme {
    servers: 5,
    replicas: 4,
    ..Scheme::small()
};

/// Two clients, and faults that lose keys.
const FLUSHED: Scheme = Scheme {
    faults: Faults {
        flushes: 1,
        evictions: 1,
        ..Scheme::small().faults
    },
    ..Scheme::small()
};

/// Clients resume locks by their tokens.
const RESUMED: Scheme = Scheme {
    faults: Faults {
        resumptions: 3,
        ..FLUSHED.faults
    },
    ..FLUSHED
};

#[test]
fn walks_find_wrong_rules() {
    broken_from(0, Mistake::NothingAcknowledged, Scheme::small());
    broken_from(0, Mistake::NothingProven, Scheme::small());
    broken_from(0, Mistake::MarkerIgnored, FLUSHED);
    broken_from(990, Mistake::OneWitness, Scheme::small());
    broken_from(1580, Mistake::NoMargin, SKEWED);
}
