//! Clients that want the lock alone.

use crate::expect::{broken, broken_from};
use crate::kind::{KINDS, Kind};
use crate::mistake::Mistake;
use crate::scheme::Scheme;
use crate::violation::Violation;
use crate::walk::Walks;
use crate::want::Want::Exclusive;
use models::explore::{self, Order};
use models::walk;

/// How many walks plain `cargo test` takes.
const WALKS: u64 = 150;

/// How many states plain `cargo test` searches for each kind of fault.
const STATES: u64 = 500;

#[test]
fn all_histories_of_two_clients_without_faults_are_sound() {
    explore::all_sound(
        "two clients without faults",
        &mut Scheme::sound(&[Exclusive; 2]),
        usize::MAX,
    );
}

#[test]
fn histories_of_two_clients_with_one_fault_are_sound() {
    for kind in KINDS {
        let mut scheme = Scheme::sound(&[Exclusive; 2]).with_faults(1, &[kind, Kind::Token]);
        let most = models::budget("REDLATCH_STATES", STATES) as usize;
        explore::sound(
            &format!("two clients and {kind:?}"),
            &mut scheme,
            most,
            Order::Breadth,
        );
    }
}

#[test]
fn random_walks_are_sound() {
    walk::sound("the lock alone", WALKS, &mut Walks::new(Scheme::any_queue));
}

/// Histories of this many clients, each of which wants the lock this often.
fn walked(clients: usize, calls: u8) -> Scheme {
    Scheme {
        calls,
        looks_max: 1000,
        ..Scheme::sound(&vec![Exclusive; clients])
    }
}

#[test]
fn two_clients_hold_the_lock_if_a_rule_of_claims_is_left_out() {
    broken(
        Mistake::ReservationIsGrant,
        Violation::TwoHolders,
        walked(3, 1),
    );
    let expiring = walked(3, 1).with_faults(3, &[Kind::Token, Kind::Death]);
    broken(
        Mistake::ValidityFromAnswers,
        Violation::TwoHolders,
        expiring,
    );
}

#[test]
fn waiters_are_overtaken_if_a_rule_of_order_is_left_out() {
    broken(Mistake::NumberOfOneNode, Violation::Overtaken, walked(3, 2));
    broken(
        Mistake::ReleaseForgetsQueue,
        Violation::Overtaken,
        walked(3, 2),
    );
    let claims_fail = walked(2, 3).with_faults(10, &[Kind::Timeout]);
    broken(Mistake::ClaimLeavesQueue, Violation::Overtaken, claims_fail);
    let reservations_expire = walked(3, 2).with_faults(30, &[Kind::Reservation, Kind::Push]);
    broken_from(
        3800,
        Mistake::ClaimIgnoresHead,
        Violation::Overtaken,
        reservations_expire,
    );
}

#[test]
fn waiters_wait_for_ever_if_a_rule_of_looks_is_left_out() {
    broken(
        Mistake::ReservationsStay,
        Violation::WaitsForEver,
        walked(3, 1),
    );
    let queues_are_lost = walked(3, 1).with_faults(3, &[Kind::QueueLoss]);
    broken(Mistake::LookKeepsOut, Violation::LiesFree, queues_are_lost);
    let nodes_restart = walked(3, 1).with_faults(3, &[Kind::Restart, Kind::Token, Kind::Death]);
    broken(
        Mistake::QuarantineReserves,
        Violation::WaitsForEver,
        nodes_restart,
    );
}

/// Waiters that die, or live and take nothing.
const BAD: [Kind; 2] = [Kind::Death, Kind::Slow];

#[test]
fn the_lock_lies_free_if_a_rule_of_passing_is_left_out() {
    let bad = walked(4, 1).with_faults(3, &BAD);
    broken(Mistake::RenewalProlongs, Violation::LiesFree, bad.clone());
    broken(Mistake::LateStays, Violation::LiesFree, bad.clone());
    broken_from(1400, Mistake::NextIsNotTold, Violation::LiesFree, bad);
    let slow = Scheme {
        nodes: 5,
        ..walked(2, 3).with_faults(1, &[Kind::Slow])
    };
    broken_from(
        14_300,
        Mistake::MissesInRowCountOnce,
        Violation::LiesFree,
        slow,
    );
    let row = walked(5, 1).with_faults(4, &[Kind::Death]);
    broken_from(2800, Mistake::UnheardStays, Violation::LiesFree, row);
}

#[test]
fn waiters_are_overtaken_if_a_rule_of_passing_is_left_out() {
    let late = walked(3, 2).with_faults(4, &[Kind::Reservation]);
    broken(
        Mistake::LateGetsNewNumber,
        Violation::Overtaken,
        late.clone(),
    );
    broken(Mistake::CallerIsLate, Violation::Overtaken, late);
    broken(Mistake::PassesInTime, Violation::Overtaken, walked(3, 2));
}

#[test]
fn keys_remain_if_attempts_are_not_withdrawn() {
    broken(Mistake::TryStays, Violation::Residue, walked(2, 1));
    broken(Mistake::ClaimStays, Violation::Residue, walked(3, 1));
}
