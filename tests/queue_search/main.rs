//! A search of the queue between processes: what waiters and nodes do by the scripts `queue.lua`,
//! `claim.lua`, `release.lua` and `give.lua`, step by step and message by
//! message.
//!
//! Two clients on three nodes are searched exhaustively. Random walks go through histories of up to
//! eight clients on up to five nodes, in which waiters leave, clients and nodes die, messages are
//! lost, leases and reservations expire, and commands arrive after their connection has ended.
//! Waiters die one by one or in rows, and servers notice that their connection is gone or do not.
//! Others live and never claim, or too late, or reach a minority only. What must hold:
//!
//! - Never do two clients hold the lock.
//! - Without faults nobody is overtaken who had joined a majority before another one began. This
//!   remains so with those faults that lose no place in a queue; and a waiter that was late and has
//!   come back is before all that it was before, except for those whose attempt was under way.
//! - When faults stop, every waiter is served that still lives and can take the lock, and nothing
//!   remains on the nodes. Until then, the lock does not lie free for long: see `fair.rs`.
//!
//! Each [`Mistake`] leaves out one rule of the protocol, and must be found.
//!
//! The search has nodes of its own, which can be copied and compared and have no clock
//! (`node.rs`). To see that they are right, walks are repeated on embedded nodes, which run the
//! scripts (`replay.rs`): all answers, messages and data must be the same.
//!
//! `REDLATCH_WALKS=1000000 REDLATCH_STATES=3000000 REDLATCH_REPLAYS=10000 cargo test --release
//! --test queue_search -- --nocapture` goes further than plain `cargo test` does.

mod air;
mod client;
mod deciding;
mod expect;
mod fair;
mod fault;
mod kind;
mod node;
mod pace;
mod passing;
mod place;
mod possible_faults;
mod random;
mod replay;
mod request;
mod retrying;
mod scheme;
mod search;
mod server;
mod serving;
mod shrink;
mod story;
mod time;
mod token;
mod violation;
mod walk;
mod world;

use kind::{KINDS, Kind};
use scheme::{Mistake, Scheme};
use search::search;
use violation::Violation;

/// How many walks plain `cargo test` takes.
const WALKS: u64 = 4000;

/// How many walks plain `cargo test` repeats on nodes that run the scripts.
const REPLAYS: u64 = 400;

/// How many states plain `cargo test` searches for each kind of fault.
const STATES: usize = 4000;

#[test]
fn all_histories_of_two_clients_without_faults_are_sound() {
    let scheme = Scheme::sound(2);
    let found = search(&scheme, usize::MAX);
    eprintln!("two clients without faults: {found}");
    expect::sound(&scheme, &found);
}

#[test]
fn histories_of_two_clients_with_one_fault_are_sound() {
    for kind in KINDS {
        let scheme = Scheme::sound(2).with_faults(1, &[kind, Kind::Token]);
        let found = search(&scheme, expect::number("REDLATCH_STATES", STATES as u64) as usize);
        eprintln!("two clients and {kind:?}: {found}");
        expect::sound(&scheme, &found);
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

/// Histories of this many clients, each of which wants the lock this often.
fn walked(clients: usize, calls: u8) -> Scheme {
    Scheme { calls, looks_max: 1000, ..Scheme::sound(clients) }
}

/// Many more walks than are needed to find each mistake.
const ENOUGH: u64 = 100_000;

#[track_caller]
fn expect_broken(mistake: Mistake, wanted: Violation, scheme: Scheme) {
    expect::broken(mistake, wanted, scheme, ENOUGH);
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
    let reservations_expire = walked(3, 2).with_faults(30, &[Kind::Reservation, Kind::Push]);
    expect_broken(Mistake::ClaimIgnoresHead, Violation::Overtaken, reservations_expire);
}

#[test]
fn waiters_wait_for_ever_if_a_rule_of_looks_is_left_out() {
    expect_broken(Mistake::ReservationsStay, Violation::WaitsForEver, walked(3, 1));
    let queues_are_lost = walked(3, 1).with_faults(3, &[Kind::QueueLoss]);
    expect_broken(Mistake::LookKeepsOut, Violation::LiesFree, queues_are_lost);
    let nodes_restart = walked(3, 1).with_faults(3, &[Kind::Restart, Kind::Token, Kind::Death]);
    expect_broken(Mistake::QuarantineReserves, Violation::WaitsForEver, nodes_restart);
}

/// Waiters that die, or live and take nothing.
const BAD: [Kind; 2] = [Kind::Death, Kind::Slow];

#[test]
fn the_lock_lies_free_if_a_rule_of_passing_is_left_out() {
    let bad = walked(4, 1).with_faults(3, &BAD);
    expect_broken(Mistake::RenewalProlongs, Violation::LiesFree, bad.clone());
    expect_broken(Mistake::LateStays, Violation::LiesFree, bad.clone());
    expect_broken(Mistake::NextIsNotTold, Violation::LiesFree, bad);
    let slow = Scheme { nodes: 5, ..walked(2, 3).with_faults(1, &[Kind::Slow]) };
    expect_broken(Mistake::MissesInRowCountOnce, Violation::LiesFree, slow);
    let row = walked(5, 1).with_faults(4, &[Kind::Death]);
    expect_broken(Mistake::UnheardStays, Violation::LiesFree, row);
}

#[test]
fn waiters_are_overtaken_if_a_rule_of_passing_is_left_out() {
    let late = walked(3, 2).with_faults(4, &[Kind::Reservation]);
    expect_broken(Mistake::LateGetsNewNumber, Violation::Overtaken, late.clone());
    expect_broken(Mistake::CallerIsLate, Violation::Overtaken, late);
    expect_broken(Mistake::PassesInTime, Violation::Overtaken, walked(3, 2));
}

#[test]
fn keys_remain_if_attempts_are_not_withdrawn() {
    expect_broken(Mistake::TryStays, Violation::Residue, walked(2, 1));
    expect_broken(Mistake::ClaimStays, Violation::Residue, walked(3, 1));
}
