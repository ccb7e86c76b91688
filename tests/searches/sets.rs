//! Clients of which some want one of two locks, and others a set of both.

use crate::expect::broken;
use crate::kind::Kind;
use crate::mistake::Mistake;
use crate::scheme::Scheme;
use crate::violation::Violation;
use crate::walk::Walks;
use crate::want::Want::{self, Both, Exclusive, Second};
use models::explore::{self, Order};
use models::walk;

/// How many walks plain `cargo test` takes.
const WALKS: u64 = 75;

/// How many states plain `cargo test` searches for each kind of fault and each pair of wants.
const STATES: u64 = 200;

/// What two clients may want.
const PAIRS: [[Want; 2]; 2] = [[Both, Second], [Both, Both]];

/// What can happen to a waiter that the other one must get over.
const KINDS: [Kind; 6] = [
    Kind::Death,
    Kind::Push,
    Kind::Cut,
    Kind::Reservation,
    Kind::Lease,
    Kind::Patience,
];

#[test]
#[ignore = "it takes minutes without --release"]
fn all_histories_of_two_clients_without_faults_are_sound() {
    for pair in PAIRS {
        explore::all_sound(
            &format!("{pair:?} without faults"),
            &mut Scheme::sound(&pair),
            usize::MAX,
        );
    }
}

#[test]
fn histories_of_two_clients_with_one_fault_are_sound() {
    for kind in KINDS {
        for pair in PAIRS {
            let mut scheme = Scheme::sound(&pair).with_faults(1, &[kind, Kind::Token]);
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
    walk::sound("sets", WALKS, &mut Walks::new(Scheme::any_sets));
}

/// Histories of clients that want this, each one of them this often.
fn walked(wants: &[Want], calls: u8) -> Scheme {
    Scheme {
        calls,
        looks_max: 1000,
        ..Scheme::sound(wants)
    }
}

#[test]
fn each_rule_of_sets_is_needed() {
    let wants = [Both, Exclusive, Second, Both];
    let calm = walked(&wants, 2);
    broken(
        Mistake::SetHasManyNumbers,
        Violation::Overtaken,
        calm.clone(),
    );
    broken(Mistake::SetLeavesFirst, Violation::Residue, calm.clone());
    let dying = calm.with_faults(4, &[Kind::Reservation, Kind::Token, Kind::Death]);
    broken(
        Mistake::ClaimsFirstOfSet,
        Violation::TwoHolders,
        dying.clone(),
    );
    broken(Mistake::PartIsSet, Violation::WaitsForEver, dying);
    let apart = walked(&[Both, Second, Both, Both], 2).with_faults(4, &[Kind::Down, Kind::Slow]);
    let hasty = walked(&wants, 2).with_faults(4, &[Kind::Patience]);
    broken(Mistake::TurnForOneOfSet, Violation::TwoHolders, hasty);
    broken(Mistake::WholeSetIsRenewed, Violation::LiesFree, apart);
}
