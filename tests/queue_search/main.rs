//! A search of the queue between processes: what waiters and nodes do by the scripts `queue.lua`,
//! `turn.lua`, `leave_queue.lua` and `release.lua`, step by step and message by message.
//!
//! Two clients on three nodes are searched exhaustively. Random walks go through histories of up to
//! five clients on five nodes, in which waiters leave, clients and nodes die, pushes are lost,
//! leases expire, and commands arrive after their connection has ended. What must hold:
//!
//! - Never do two clients hold the lock.
//! - Without faults nobody is overtaken who had joined a majority before another one began. This
//!   remains so with those faults that lose no place in a queue.
//! - When faults stop, every waiter that still lives is served, and nothing remains on the nodes.
//!
//! Each [`Mistake`] leaves out one rule of the protocol, and must be found.
//!
//! `REDLATCH_WALKS=1000000 REDLATCH_STATES=3000000 cargo test --release --test queue_search --
//! --nocapture` goes further than plain `cargo test` does.

mod client;
mod fair;
mod fault;
mod kind;
mod node;
mod possible_faults;
mod random;
mod scheme;
mod search;
mod shrink;
mod story;
mod token;
mod violation;
mod walk;
mod world;

use kind::{KINDS, Kind};
use scheme::{Mistake, Scheme};
use search::{Found, search};
use std::hash::{BuildHasher, RandomState};
use violation::Violation;
use walk::{Failure, Totals, walk};

/// How many walks plain `cargo test` takes.
const WALKS: u64 = 4000;

/// How many states plain `cargo test` searches for each kind of fault.
const STATES: usize = 4000;

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
    let scheme = Scheme::sound(2);
    let found = search(&scheme, usize::MAX);
    eprintln!("two clients without faults: {found}");
    expect_sound(&scheme, &found);
}

#[test]
fn histories_of_two_clients_with_one_fault_are_sound() {
    for kind in KINDS {
        let scheme = Scheme::sound(2).with_faults(1, &[kind, Kind::Token]);
        let found = search(&scheme, number("REDLATCH_STATES", STATES as u64) as usize);
        eprintln!("two clients and {kind:?}: {found}");
        expect_sound(&scheme, &found);
    }
}

#[test]
fn random_walks_are_sound() {
    let walks = number("REDLATCH_WALKS", WALKS);
    let fresh = RandomState::new().hash_one(walks);
    let mut totals = Totals::default();
    for count in 0..walks {
        // The first half is the same each time.
        let seed = if count < walks / 2 { count } else { fresh.wrapping_add(count) };
        if let Err(Failure { what, scheme, trace }) = walk(seed, None, &mut totals) {
            let trace = shrink::shrink(&scheme, what, &trace);
            let story = story::tell(&scheme, &trace);
            panic!("{what:?} in the walk of seed {seed}, {scheme:?}:\n{story}");
        }
    }
    eprintln!("walks, half of them from seed {fresh}: {totals}");
}

/// Histories of this many clients, each of which wants the lock this often.
fn walked(clients: usize, calls: u8) -> Scheme {
    Scheme { calls, looks_max: 1000, ..Scheme::sound(clients) }
}

/// Many more walks than are needed to find each mistake.
const ENOUGH: u64 = 100_000;

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

#[test]
fn two_clients_hold_the_lock_if_a_rule_of_claims_is_left_out() {
    expect_broken(Mistake::ReservationIsGrant, Violation::TwoHolders, walked(3, 1));
    let expiring = walked(3, 1).with_faults(3, &[Kind::Token, Kind::Death]);
    expect_broken(Mistake::ValidityFromAnswers, Violation::TwoHolders, expiring);
}

#[test]
fn waiters_are_overtaken_if_a_rule_of_order_is_left_out() {
    expect_broken(Mistake::NumberOfOneNode, Violation::Overtaken, walked(3, 2));
    expect_broken(Mistake::ReleaseForgetsQueue, Violation::Overtaken, walked(3, 2));
    let claims_fail = walked(2, 3).with_faults(10, &[Kind::Timeout]);
    expect_broken(Mistake::ClaimLeavesQueue, Violation::Overtaken, claims_fail);
    let reservations_expire = walked(2, 3).with_faults(30, &[Kind::Reservation, Kind::Push]);
    expect_broken(Mistake::ClaimIgnoresHead, Violation::Overtaken, reservations_expire);
}

#[test]
fn waiters_wait_for_ever_if_a_rule_of_looks_is_left_out() {
    expect_broken(Mistake::ReservationsStay, Violation::WaitsForEver, walked(3, 1));
    let queues_are_lost = walked(3, 1).with_faults(3, &[Kind::QueueLoss]);
    expect_broken(Mistake::LookKeepsOut, Violation::WaitsForEver, queues_are_lost);
    let nodes_restart = walked(3, 1).with_faults(3, &[Kind::Restart, Kind::Token, Kind::Death]);
    expect_broken(Mistake::QuarantineReserves, Violation::WaitsForEver, nodes_restart);
}

#[test]
fn keys_remain_if_attempts_are_not_withdrawn() {
    expect_broken(Mistake::TryStays, Violation::Residue, walked(2, 1));
    expect_broken(Mistake::ClaimStays, Violation::Residue, walked(3, 1));
}
