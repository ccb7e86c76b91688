//! A search of shares: what readers, writers, clients that want permits, and nodes do by the
//! scripts `share.lua`, `queue.lua`, `claim.lua`, `release_shared.lua`, `give.lua`,
//! `extend_shared.lua` and `restore_shared.lua`, message by message.
//!
//! The steps of the world, its faults, and the search are those of `queue_search`, also that walks
//! are repeated on nodes that run the scripts. Two clients on
//! three nodes are searched exhaustively; random walks go through histories of up to five clients
//! on five nodes. What must hold:
//!
//! - Never is there an exclusive holder beside another holder, never two holders of one slot, and
//!   never more holders of permits than permits.
//! - Without faults nobody is overtaken who had joined a majority before another one began, where
//!   they exclude each other: a writer by nobody, a reader by no writer, and a waiter for the only
//!   permit by no other one. Where there are several permits, a turn may split, so that another
//!   client is granted a permit first.
//! - When faults stop, and no holder of a share releases, those are served who can share with the
//!   holders and before whom nobody waits that they exclude.
//! - When faults stop, and everybody releases, every waiter is served that still lives and can take
//!   its turn, and nothing remains on the nodes.
//!
//! Four rules are there only for waiters that would not be served although permits are free. Once a
//! turn for a permit has failed, the next one names the slot at which nodes begin
//! ([`Mistake::NodesChooseSlot`]). A round for a permit waits for all nodes, since its holder may
//! read nothing after that ([`Mistake::PermitRoundEndsWithMajority`]). With `restore_shared.lua`
//! the holder's waiter leaves the queue, by its own command ([`Mistake::RestoreLeavesWaiter`]).
//! And where the holder's slot has been given to another client, it frees the one that the node
//! gave the holder ([`Mistake::RefusedRestoreKeepsSlot`]).
//!
//! Each [`Mistake`] leaves out one rule of the protocol, and must be found; but for the first two
//! of these four and the last, of which no walk shows yet that waiters need them now that nodes
//! pass over those they have called.
//!
//! `REDLATCH_WALKS=1000000 REDLATCH_STATES=3000000 REDLATCH_REPLAYS=10000 cargo test --release
//! --test shared_search -- --nocapture` goes further than plain `cargo test` does; `REDLATCH_SEED`
//! is the first seed.

mod client;
mod fair;
mod grant;
mod node;
mod passing;
mod reading;
mod request;
mod scheme;
mod serving;
mod shares;
mod steps;
mod violation;

// The steps of the world, the faults and the search know nothing about shares.
#[path = "../queue_search/air.rs"]
mod air;
#[path = "../queue_search/expect.rs"]
mod expect;
#[path = "../queue_search/fault.rs"]
mod fault;
#[path = "../queue_search/kind.rs"]
mod kind;
#[path = "../queue_search/pace.rs"]
mod pace;
#[path = "../queue_search/place.rs"]
mod place;
#[path = "../queue_search/possible_faults.rs"]
mod possible_faults;
#[path = "../queue_search/random.rs"]
mod random;
#[path = "../queue_search/replay.rs"]
mod replay;
#[path = "../queue_search/retrying.rs"]
mod retrying;
#[path = "../queue_search/fair.rs"]
mod schedule;
#[path = "../queue_search/search.rs"]
mod search;
#[path = "../queue_search/server.rs"]
mod server;
#[path = "../queue_search/shrink.rs"]
mod shrink;
#[path = "../queue_search/story.rs"]
mod story;
#[path = "../queue_search/time.rs"]
mod time;
#[path = "../queue_search/token.rs"]
mod token;
#[path = "../queue_search/walk.rs"]
mod walk;
#[path = "../queue_search/world.rs"]
mod world;

use Want::{Exclusive, Permit, Reader};
use kind::{KINDS, Kind};
use scheme::{Mistake, Scheme, Want};
use search::search;
use violation::Violation;

/// How many walks plain `cargo test` takes.
const WALKS: u64 = 4000;

/// How many walks plain `cargo test` repeats on nodes that run the scripts.
const REPLAYS: u64 = 200;

/// How many states plain `cargo test` searches for each kind of fault and each pair of wants.
const STATES: u64 = 1500;

/// What two clients may want.
const PAIRS: [[Want; 2]; 6] = [
    [Exclusive, Reader],
    [Reader, Reader],
    [Exclusive, Permit(2)],
    [Reader, Permit(1)],
    [Permit(1), Permit(1)],
    [Permit(2), Permit(2)],
];

#[test]
fn all_histories_of_two_clients_without_faults_are_sound() {
    for pair in PAIRS {
        let scheme = Scheme::sound(&pair);
        let found = search(&scheme, usize::MAX);
        eprintln!("{pair:?} without faults: {found}");
        expect::sound(&scheme, &found);
    }
}

#[test]
fn histories_of_two_clients_with_one_fault_are_sound() {
    for kind in KINDS {
        for pair in PAIRS {
            let scheme = Scheme::sound(&pair).with_faults(1, &[kind, Kind::Token]);
            let found = search(&scheme, expect::number("REDLATCH_STATES", STATES) as usize);
            eprintln!("{pair:?} and {kind:?}: {found}");
            expect::sound(&scheme, &found);
        }
    }
}

#[test]
fn random_walks_are_sound() {
    expect::sound_walks(expect::number("REDLATCH_WALKS", WALKS));
}

#[test]
fn the_scripts_do_what_the_model_does() {
    expect::scripts_like_the_model(expect::number("REDLATCH_REPLAYS", REPLAYS));
}

/// Histories of clients that want this, each one of them this often.
fn walked(wants: &[Want], calls: u8) -> Scheme {
    Scheme { calls, looks_max: 1000, ..Scheme::sound(wants) }
}

/// Pushes must be enough, as nobody looks.
fn pushed(wants: &[Want]) -> Scheme {
    Scheme { looks_max: 0, ..walked(wants, 1) }
}

/// The last permit must not go to who came later. This holds in nearly all walks.
fn ordered(scheme: Scheme) -> Scheme {
    Scheme { orders_permits: true, ..scheme }
}

/// Many more walks than are needed to find each mistake.
const ENOUGH: u64 = 20_000;

#[track_caller]
fn expect_broken(mistake: Mistake, wanted: Violation, scheme: Scheme) {
    expect::broken(mistake, wanted, scheme, ENOUGH);
}

const WRITERS: [Want; 4] = [Exclusive, Reader, Reader, Exclusive];

#[test]
fn holders_are_not_alone_if_a_rule_of_votes_is_left_out() {
    expect_broken(Mistake::SharesBesideToken, Violation::TwoHolders, walked(&WRITERS, 2));
    expect_broken(Mistake::CallIsGrant, Violation::TwoHolders, walked(&WRITERS, 2));
    let expiring = walked(&WRITERS, 1).with_faults(3, &[Kind::Death, Kind::Token]);
    expect_broken(Mistake::ValidityFromAnswers, Violation::TwoHolders, expiring);
    expect_broken(Mistake::VotesOfAllSlots, Violation::SlotTwice, walked(&[Permit(2); 4], 1));
    let permits = walked(&[Permit(2); 4], 3);
    expect_broken(Mistake::RestoreTakesSlotInUse, Violation::SlotTwice, permits);
}

#[test]
fn waiters_are_overtaken_if_a_rule_of_order_is_left_out() {
    expect_broken(Mistake::TryIgnoresQueue, Violation::Overtaken, walked(&WRITERS, 2));
    expect_broken(Mistake::ReleaseForgetsQueue, Violation::Overtaken, walked(&WRITERS, 2));
    expect_broken(Mistake::LastShareReservesNothing, Violation::Overtaken, walked(&WRITERS, 2));
    expect_broken(Mistake::SharesPassWriters, Violation::Overtaken, walked(&WRITERS, 2));
    let permits = ordered(walked(&[Permit(2); 4], 3));
    expect_broken(Mistake::NoFloor, Violation::Overtaken, permits);
}

#[test]
fn shares_are_not_held_together_if_a_rule_of_calls_is_left_out() {
    let what = Violation::WaitsForShares;
    expect_broken(Mistake::TurnCallsNobody, what, pushed(&[Exclusive, Reader, Reader]));
    expect_broken(Mistake::PermitReleasesSilently, what, pushed(&[Permit(2); 3]));
    expect_broken(Mistake::CallsOutliveShares, what, pushed(&[Permit(2); 3]));
    expect_broken(Mistake::RestoreLeavesWaiter, what, walked(&[Permit(3); 5], 2));
    let dying = walked(&WRITERS, 1).with_faults(2, &[Kind::Death, Kind::Token]);
    expect_broken(Mistake::SharesStay, what, dying);
}

#[test]
fn keys_remain_or_turns_never_end_if_a_rule_of_attempts_is_left_out() {
    expect_broken(Mistake::AttemptStays, Violation::Residue, walked(&WRITERS, 1));
    let restarts = walked(&WRITERS, 1).with_faults(3, &[Kind::Restart, Kind::Token, Kind::Death]);
    expect_broken(Mistake::QuarantineReserves, Violation::WaitsForEver, restarts);
}
