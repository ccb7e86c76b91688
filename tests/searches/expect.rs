//! What the tests expect.

use crate::mistake::Mistake;
use crate::random::Random;
use crate::scheme::Scheme;
use crate::search::{Found, search};
use crate::violation::Violation;
use crate::walk::{Failure, Totals, walk};
use crate::{shrink, story};
use std::hash::{BuildHasher, RandomState};

pub(crate) fn number(variable: &str, otherwise: u64) -> u64 {
    let wanted = std::env::var(variable);
    wanted.map_or(otherwise, |wanted| wanted.parse().expect("the variable is a number"))
}

/// Searches all histories up to so many states, and prints what was found under this name.
#[track_caller]
pub(crate) fn sound(name: &str, scheme: &Scheme, most: usize) {
    let found = search(scheme, most);
    eprintln!("{name}: {found}");
    if let Found::Violation { trace, .. } = &found {
        panic!("{found}: {scheme:?}\n{}", story::tell(scheme, trace));
    }
}

/// So many seeds, of which the last twentieth is another each time, and where that begins.
fn seeds(count: u64) -> (impl Iterator<Item = u64>, u64) {
    let (from, fresh) = (number("REDLATCH_SEED", 0), RandomState::new().hash_one(count));
    let seed = move |index| {
        if index < count - count / 20 { from + index } else { fresh.wrapping_add(index) }
    };
    ((0..count).map(seed), fresh)
}

/// Takes so many random walks.
pub(crate) fn sound_walks(walks: u64, scheme: fn(&mut Random) -> Scheme) {
    let (seeds, fresh) = seeds(walks);
    let mut totals = Totals::default();
    for seed in seeds {
        if let Err(Failure { what, scheme, trace }) = walk(seed, scheme, &mut totals) {
            let mut trace = shrink::shrink(&scheme, what, &trace);
            trace.extend(shrink::end(&scheme, what, &trace));
            let story = story::tell(&scheme, &trace);
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
