//! A search of shares: what readers, writers, clients that want permits, and nodes do by the
//! scripts `share.lua`, `queue.lua`, `turn.lua`, `release_shared.lua`, `leave_queue.lua`,
//! `release.lua`, `extend_shared.lua` and `restore_shared.lua`, message by message.
//!
//! The steps of the world, its faults, and the search are those of `queue_search`. Two clients on
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
//! - When faults stop, and everybody releases, every waiter that still lives is served, and nothing
//!   remains on the nodes.
//!
//! Three rules go beyond the scripts as they were first written. Once a turn for a permit has
//! failed, the next one names the slot at which nodes begin. With `restore_shared.lua` the holder's
//! waiter leaves the queue (by a command of its own). And where the holder's slot has been given
//! to another client, it frees the one that the node gave the holder, and keeps the right one.
//! Without them ([`Mistake::NodesChooseSlot`], [`Mistake::RestoreLeavesWaiter`],
//! [`Mistake::RefusedRestoreKeepsSlot`]) waiters are not served although permits are free.
//!
//! Each [`Mistake`] leaves out one rule of the protocol, and must be found.
//!
//! `REDLATCH_WALKS=1000000 REDLATCH_STATES=3000000 cargo test --release --test shared_search --
//! --nocapture` goes further than plain `cargo test` does; `REDLATCH_SEED` is the first seed.

mod client;
mod fair;
mod grant;
mod node;
mod scheme;
mod shares;
mod steps;
mod violation;

// The steps of the world, the faults and the search know nothing about shares.
#[path = "../queue_search/fault.rs"]
mod fault;
#[path = "../queue_search/kind.rs"]
mod kind;
#[path = "../queue_search/possible_faults.rs"]
mod possible_faults;
#[path = "../queue_search/random.rs"]
mod random;
#[path = "../queue_search/fair.rs"]
mod schedule;
#[path = "../queue_search/search.rs"]
mod search;
#[path = "../queue_search/shrink.rs"]
mod shrink;
#[path = "../queue_search/story.rs"]
mod story;
#[path = "../queue_search/token.rs"]
mod token;
#[path = "../queue_search/walk.rs"]
mod walk;
#[path = "../queue_search/world.rs"]
mod world;

use Want::{Exclusive, Permit, Reader};
use kind::{KINDS, Kind};
use scheme::{Mistake, Scheme, Want};
use search::{Found, search};
use std::hash::{BuildHasher, RandomState};
use violation::Violation;
use walk::{Failure, Totals, walk};

/// How many walks plain `cargo test` takes.
const WALKS: u64 = 4000;

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

fn number(variable: &str, otherwise: u64) -> u64 {
    let wanted = std::env::var(variable);
    wanted.map_or(otherwise, |wanted| wanted.parse().expect("the variable is a number"))
}

#[track_caller]
fn expect_sound(scheme: &Scheme, found: &Found) {
    if let Found::Violation { trace, .. } = found {
        panic!("{found}: {scheme:?}\n{}", story::tell(scheme, trace));
    }
}

#[test]
fn all_histories_of_two_clients_without_faults_are_sound() {
    for pair in PAIRS {
        let scheme = Scheme::sound(&pair);
        let found = search(&scheme, usize::MAX);
        eprintln!("{pair:?} without faults: {found}");
        expect_sound(&scheme, &found);
    }
}

#[test]
fn histories_of_two_clients_with_one_fault_are_sound() {
    for kind in KINDS {
        for pair in PAIRS {
            let scheme = Scheme::sound(&pair).with_faults(1, &[kind, Kind::Token]);
            let found = search(&scheme, number("REDLATCH_STATES", STATES) as usize);
            eprintln!("{pair:?} and {kind:?}: {found}");
            expect_sound(&scheme, &found);
        }
    }
}

#[test]
fn random_walks_are_sound() {
    let (walks, from) = (number("REDLATCH_WALKS", WALKS), number("REDLATCH_SEED", 0));
    let fresh = RandomState::new().hash_one(walks);
    let mut totals = Totals::default();
    for count in 0..walks {
        // The first half is the same each time.
        let seed = if count < walks / 2 { from + count } else { fresh.wrapping_add(count) };
        if let Err(Failure { what, scheme, trace }) = walk(seed, None, &mut totals) {
            let trace = shrink::shrink(&scheme, what, &trace);
            let story = story::tell(&scheme, &trace);
            panic!("{what:?} in the walk of seed {seed}, {scheme:?}:\n{story}");
        }
    }
    eprintln!("walks, half of them from seed {fresh}: {totals}");
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

/// A violation must be found, and it must be this one.
#[track_caller]
fn expect_broken(mistake: Mistake, wanted: Violation, scheme: Scheme) {
    let scheme = scheme.with(mistake);
    let mut totals = Totals::default();
    let failure = (0..ENOUGH).find_map(|seed| walk(seed, Some(&scheme), &mut totals).err());
    let what = failure.map(|failure| failure.what);
    eprintln!("{mistake:?}: {what:?} after {} walks", totals.walks);
    assert_eq!(what, Some(wanted), "{mistake:?}");
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
    expect_broken(Mistake::RestoreTakesSlotInUse, Violation::TooManyPermits, permits);
}

#[test]
fn waiters_are_overtaken_if_a_rule_of_order_is_left_out() {
    expect_broken(Mistake::TryIgnoresQueue, Violation::Overtaken, walked(&WRITERS, 2));
    expect_broken(Mistake::ReleaseForgetsQueue, Violation::Overtaken, walked(&WRITERS, 2));
    expect_broken(Mistake::LastShareReservesNothing, Violation::Overtaken, walked(&WRITERS, 2));
    expect_broken(Mistake::SharesPassWriters, Violation::Overtaken, walked(&WRITERS, 2));
    let permits = ordered(walked(&[Permit(2); 4], 3));
    expect_broken(Mistake::NoFloor, Violation::Overtaken, permits);
    let permits = ordered(walked(&[Permit(3); 5], 2));
    expect_broken(Mistake::RefusedRestoreRemoves, Violation::Overtaken, permits.clone());
    expect_broken(Mistake::MovedPermitsDoNotCount, Violation::Overtaken, permits);
}

#[test]
fn shares_are_not_held_together_if_a_rule_of_calls_is_left_out() {
    let what = Violation::WaitsForShares;
    expect_broken(Mistake::TurnRingsNobody, what, pushed(&[Exclusive, Reader, Reader]));
    expect_broken(Mistake::PermitReleasesSilently, what, pushed(&[Permit(2); 3]));
    expect_broken(Mistake::RestoreLeavesWaiter, what, walked(&[Permit(3); 5], 2));
    let silent = Scheme { extends_at_end: false, ..walked(&[Permit(3); 5], 2) };
    expect_broken(Mistake::RefusedRestoreKeepsSlot, what, silent);
    let dying = walked(&[Permit(3); 4], 2).with_faults(3, &[Kind::Death, Kind::Down]);
    expect_broken(Mistake::NodesChooseSlot, what, dying);
    let dying = walked(&WRITERS, 1).with_faults(2, &[Kind::Death, Kind::Token]);
    expect_broken(Mistake::SharesStay, what, dying);
}

#[test]
fn keys_remain_or_turns_never_end_if_a_rule_of_attempts_is_left_out() {
    expect_broken(Mistake::AttemptStays, Violation::Residue, walked(&WRITERS, 1));
    let restarts = walked(&WRITERS, 1).with_faults(3, &[Kind::Restart, Kind::Token, Kind::Death]);
    expect_broken(Mistake::QuarantineReserves, Violation::WaitsForEver, restarts);
}
