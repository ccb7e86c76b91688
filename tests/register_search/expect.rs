//! What the tests expect.

use crate::mistake::Mistake;
use crate::plan::Plan;
use crate::search::Search;
use crate::step::Violation;
use crate::walk::Walks;
use models::explore::{self, Order};
use models::{Chance, budget, walk};

/// Up to this many states of the plan are searched, unless the environment says how many.
#[track_caller]
pub(crate) fn sound(name: &str, plan: Plan, states: u64) {
    let most = budget("REDLATCH_STATES", states) as usize;
    // Long histories are in it, also if it ends before all states were found.
    explore::sound(name, &mut Search::new(plan, &[]), most, Order::Depth);
}

/// Takes this many random walks, unless the environment says how many.
#[track_caller]
pub(crate) fn sound_walks(name: &str, walks: u64, draw: fn(&mut Chance) -> Plan) {
    let totals = walk::sound(name, walks, &mut Walks::new(draw, Vec::new()));
    assert!(
        totals.made > 0 && totals.saw > 0 && totals.unknown > 0,
        "{totals}"
    );
}

/// Random walks must find that a rule is left out.
#[track_caller]
pub(crate) fn broken(mistake: Mistake, wanted: Violation, plan: Plan) {
    broken_from(0, mistake, wanted, plan);
}

/// The same with walks from this seed on.
#[track_caller]
pub(crate) fn broken_from(first: u64, mistake: Mistake, wanted: Violation, plan: Plan) {
    let plan = plan.with(mistake);
    let mut walks = Walks::new(|_: &mut Chance| plan.clone(), mistake.changes());
    let found = walk::broken(&mistake, first, &mut walks);
    assert_eq!(found, wanted, "{mistake:?}");
}
