//! What the tests expect.

use crate::mistake::Mistake;
use crate::scheme::Scheme;
use crate::search::shrink;
use crate::story;
use crate::violation::Violation;
use crate::walk::{Failure, Totals, walk};
use models::explore::{Found, Order, explore};
use models::{Chance, seeds};

/// Searches all histories up to this many states, and prints what was found under this name.
#[track_caller]
pub(crate) fn sound(name: &str, mut scheme: &Scheme, most: usize) {
    let found = explore(&mut scheme, most, Order::Breadth);
    eprintln!("{name}: {found}");
    if let Found::Violation { trace, .. } = &found {
        panic!("{found}: {scheme:?}\n{}", story::tell(scheme, trace));
    }
}

/// Takes this many random walks.
pub(crate) fn sound_walks(walks: u64, scheme: fn(&mut Chance) -> Scheme) {
    let (seeds, fresh) = seeds(walks);
    let mut totals = Totals::default();
    for seed in seeds {
        if let Err(Failure {
            what,
            scheme,
            trace,
        }) = walk(seed, scheme, &mut totals)
        {
            let story = story::tell(&scheme, &shrink(&scheme, what, &trace));
            panic!("{what:?} in the walk of seed {seed}, {scheme:?}:\n{story}");
        }
    }
    eprintln!("walks, a twentieth of them from seed {fresh}: {totals}");
}

/// Many more walks than are needed to find each mistake.
const ENOUGH: u64 = 100_000;

/// A violation must be found, and it must be this one.
#[track_caller]
pub(crate) fn broken(mistake: Mistake, wanted: Violation, scheme: Scheme) {
    broken_from(0, mistake, wanted, scheme);
}

/// The same with walks from this seed on: those before it took seconds, and found nothing.
#[track_caller]
pub(crate) fn broken_from(first: u64, mistake: Mistake, wanted: Violation, scheme: Scheme) {
    let scheme = scheme.with(mistake);
    let mut totals = Totals::default();
    let mut seeds = first..first + ENOUGH;
    let failure = seeds.find_map(|seed| walk(seed, |_| scheme.clone(), &mut totals).err());
    let what = failure.map(|failure| failure.what);
    eprintln!("{mistake:?}: {what:?} after {} walks", totals.walks);
    assert_eq!(what, Some(wanted), "{mistake:?}");
}
