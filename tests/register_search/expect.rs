//! What the tests expect.

use crate::mistake::Mistake;
use crate::plan::Plan;
use crate::search::{Search, shrink};
use crate::server::Server;
use crate::step::Violation;
use crate::story;
use crate::walk::{Totals, walk};
use models::explore::{Found, Order, explore};
use models::{Chance, budget, number, seeds};

/// This many transitions are remembered from one walk to the next.
const SEEN_MAX: usize = 500_000;

/// Many more walks than are needed to find each mistake.
const ENOUGH: u64 = 100_000;

/// Up to this many states of the plan are searched, unless the environment says how many.
pub(crate) fn sound(name: &str, plan: &Plan, states: u64) {
    let most = budget("REDLATCH_STATES", states);
    let mut server = Server::new(&[]);
    // Long histories are in it, also if it ends before all states were found.
    let found = explore(
        &mut Search {
            plan,
            server: &mut server,
        },
        most as usize,
        Order::Depth,
    );
    eprintln!("{name}: {found}");
    if let Found::Violation { what, trace, .. } = found {
        let trace = shrink(plan, what, &trace, &mut server);
        panic!(
            "{name}: {what:?}\n{}",
            story::tell(plan, &trace, &mut server)
        );
    }
}

/// Takes this many random walks, unless the environment says how many.
pub(crate) fn sound_walks(name: &str, walks: u64, plan: fn(&mut Chance) -> Plan) {
    let (seeds, fresh) = seeds(budget("REDLATCH_WALKS", walks));
    let mut totals = Totals::default();
    let mut server = Server::new(&[]);
    for seed in seeds {
        if server.seen() > SEEN_MAX {
            server = Server::new(&[]);
        }
        let mut random = Chance::new(seed);
        let plan = plan(&mut random);
        let mut trace = Vec::new();
        if let Err(what) = walk(&plan, &mut random, &mut server, &mut trace, &mut totals) {
            let trace = shrink(&plan, what, &trace, &mut server);
            let story = story::tell(&plan, &trace, &mut server);
            panic!("{name}: {what:?} in the walk of seed {seed}\n{story}");
        }
    }
    eprintln!("{name}, a twentieth from seed {fresh}: {totals}");
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

/// The same with walks from this seed on, unless the environment names another: those before it
/// took seconds, and found nothing.
#[track_caller]
pub(crate) fn broken_from(first: u64, mistake: Mistake, wanted: Violation, plan: Plan) {
    let plan = plan.with(mistake);
    let changes = mistake.changes();
    let mut server = Server::new(&changes);
    let mut totals = Totals::default();
    let from = number("REDLATCH_SEED", first);
    for seed in from..from + ENOUGH {
        if server.seen() > SEEN_MAX {
            server = Server::new(&changes);
        }
        let mut random = Chance::new(seed);
        let mut trace = Vec::new();
        if let Err(what) = walk(&plan, &mut random, &mut server, &mut trace, &mut totals) {
            eprintln!("{mistake:?}: {what:?} after {totals}");
            if std::env::var_os("REDLATCH_TRACE").is_some() {
                let trace = shrink(&plan, what, &trace, &mut server);
                eprintln!(
                    "{} steps: {}",
                    trace.len(),
                    story::tell(&plan, &trace, &mut server)
                );
            }
            assert_eq!(what, wanted, "{mistake:?}");
            return;
        }
    }
    panic!("{mistake:?} is not found: {totals}");
}
