//! Clients of which some want the lock alone, and others a share of it.

use crate::expect::{broken, broken_from};
use crate::kind::{KINDS, Kind};
use crate::mistake::Mistake;
use crate::scheme::Scheme;
use crate::violation::Violation;
use crate::walk::Walks;
use crate::want::Want::{self, Exclusive, Permit, Reader};
use models::explore::{self, Order};
use models::walk;

/// How many walks plain `cargo test` takes.
const WALKS: u64 = 150;

/// How many states plain `cargo test` searches for each kind of fault and each pair of wants.
const STATES: u64 = 200;

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
        explore::all_sound(
            &format!("{pair:?} without faults"),
            &mut sound(&pair),
            usize::MAX,
        );
    }
}

#[test]
fn histories_of_two_clients_with_one_fault_are_sound() {
    for kind in KINDS {
        for pair in PAIRS {
            let mut scheme = sound(&pair).with_faults(1, &[kind, Kind::Token]);
            let most = models::budget("REDLATCH_STATES", STATES) as usize;
            explore::sound(
                &format!("{pair:?} and {kind:?}"),
                &mut scheme,
                most,
                Order::Breadth,
            );
        }
    }
}

#[test]
fn random_walks_are_sound() {
    walk::sound("shares", WALKS, &mut Walks::new(Scheme::any_shares));
}

/// Without faults. Holders extend, since they restore what they lack.
fn sound(wants: &[Want]) -> Scheme {
    Scheme {
        extends: true,
        ..Scheme::sound(wants)
    }
}

/// Histories of clients that want this, each one of them this often.
fn walked(wants: &[Want], calls: u8) -> Scheme {
    Scheme {
        calls,
        looks_max: 1000,
        ..sound(wants)
    }
}

/// Pushes must be enough, as nobody looks.
fn pushed(wants: &[Want]) -> Scheme {
    Scheme {
        looks_max: 0,
        ..walked(wants, 1)
    }
}

/// The last permit must not go to who came later. This holds in nearly all walks.
fn ordered(scheme: Scheme) -> Scheme {
    Scheme {
        orders_permits: true,
        ..scheme
    }
}

const WRITERS: [Want; 4] = [Exclusive, Reader, Reader, Exclusive];

#[test]
fn holders_are_not_alone_if_a_rule_of_votes_is_left_out() {
    broken(
        Mistake::SharesBesideToken,
        Violation::TwoHolders,
        walked(&WRITERS, 2),
    );
    broken(
        Mistake::ReservationIsGrant,
        Violation::TwoHolders,
        walked(&WRITERS, 2),
    );
    let expiring = walked(&WRITERS, 1).with_faults(3, &[Kind::Death, Kind::Token]);
    broken(
        Mistake::ValidityFromAnswers,
        Violation::TwoHolders,
        expiring,
    );
    broken(
        Mistake::VotesOfAllSlots,
        Violation::SlotTwice,
        walked(&[Permit(2); 4], 1),
    );
    let permits = walked(&[Permit(2); 4], 3);
    broken(
        Mistake::RestoreTakesSlotInUse,
        Violation::SlotTwice,
        permits,
    );
}

#[test]
fn waiters_are_overtaken_if_a_rule_of_order_is_left_out() {
    broken(
        Mistake::TryIgnoresQueue,
        Violation::Overtaken,
        walked(&WRITERS, 2),
    );
    broken(
        Mistake::ReleaseForgetsQueue,
        Violation::Overtaken,
        walked(&WRITERS, 2),
    );
    broken(
        Mistake::LastShareReservesNothing,
        Violation::Overtaken,
        walked(&WRITERS, 2),
    );
    broken(
        Mistake::SharesPassWriters,
        Violation::Overtaken,
        walked(&WRITERS, 2),
    );
    let permits = ordered(walked(&[Permit(2); 4], 3));
    broken_from(3100, Mistake::NoFloor, Violation::Overtaken, permits);
}

#[test]
fn shares_are_not_held_together_if_a_rule_of_calls_is_left_out() {
    let what = Violation::WaitsForShares;
    broken(
        Mistake::TurnCallsNobody,
        what,
        pushed(&[Exclusive, Reader, Reader]),
    );
    broken(
        Mistake::PermitReleasesSilently,
        what,
        pushed(&[Permit(2); 3]),
    );
    broken(Mistake::CallsOutliveShares, what, pushed(&[Permit(2); 3]));
    broken_from(
        4300,
        Mistake::RestoreLeavesWaiter,
        what,
        walked(&[Permit(3); 5], 2),
    );
    let dying = walked(&[Permit(2); 3], 1).with_faults(2, &[Kind::Death, Kind::Token]);
    broken(Mistake::SharesStay, what, dying);
}

#[test]
fn keys_remain_or_turns_never_end_if_a_rule_of_attempts_is_left_out() {
    broken(Mistake::TryStays, Violation::Residue, walked(&WRITERS, 1));
    broken(Mistake::ClaimStays, Violation::Residue, walked(&WRITERS, 1));
    let restarts = walked(&WRITERS, 1).with_faults(3, &[Kind::Restart, Kind::Token, Kind::Death]);
    broken(
        Mistake::QuarantineReserves,
        Violation::WaitsForEver,
        restarts,
    );
}
