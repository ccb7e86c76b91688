//! Nodes that have forgotten something get their votes back.

use crate::expect::{broken, broken_from, sound_walks};
use crate::mistake::Mistake;
use crate::plan::{Plan, Verb};
use crate::step::Violation::{NoLinearization, Unrepaired};
use Verb::{Append, Delete, Read};

/// How many walks plain `cargo test` takes.
const WALKS: u64 = 64;

#[test]
fn random_walks_with_repairs_are_sound() {
    sound_walks("walks with repairs", WALKS, Plan::any_repaired);
}

/// Clients that change a register while a node that forgets is repaired.
fn changed() -> Plan {
    let plan = Plan::new(&[&[Append; 4], &[Append, Read, Append], &[Read, Append, Read]]);
    Plan {
        losses: 1,
        repairers: vec![200],
        ..plan
    }
}

/// Clients that delete what others create.
fn deleted() -> Plan {
    let plan = Plan::new(&[
        &[Append, Delete, Append],
        &[Append, Delete],
        &[Read, Append],
    ]);
    Plan {
        losses: 1,
        repairers: vec![200],
        ..plan
    }
}

/// Nodes that forget twice, and two repairers.
fn twice(plan: Plan) -> Plan {
    Plan {
        losses: 2,
        repairers: vec![200, 200],
        ..plan
    }
}

#[test]
fn a_repair_that_leaves_out_a_rule_of_epochs_is_found() {
    broken_from(3380, Mistake::RefillKeepsEpoch, NoLinearization, changed());
    broken(Mistake::NextEpochUndecided, Unrepaired, twice(changed()));
}

#[test]
fn a_repair_that_leaves_out_a_rule_of_copies_is_found() {
    broken_from(110, Mistake::CopiedFromOne, NoLinearization, changed());
    let older = Plan {
        comes_back_older: true,
        ..deleted()
    };
    broken_from(600, Mistake::NotWiped, NoLinearization, older);
    broken(Mistake::JoinsUnnumbered, NoLinearization, twice(changed()));
}

#[test]
#[ignore = "it takes thousands of walks"]
fn a_node_that_serves_other_epochs_is_found() {
    broken(Mistake::ServesOtherEpochs, NoLinearization, changed());
}

#[test]
#[ignore = "it takes many thousands of walks"]
fn a_repair_that_copies_before_the_members_enter_is_found() {
    broken(Mistake::CopiedBeforeEntered, NoLinearization, changed());
}
