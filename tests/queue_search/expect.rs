//! What the tests of both searches expect.

use crate::replay::{self, Compared};
use crate::scheme::{Mistake, Scheme};
use crate::search::Found;
use crate::violation::Violation;
use crate::walk::{Failure, Totals, walk};
use crate::{shrink, story};
use std::hash::{BuildHasher, RandomState};

pub(crate) fn number(variable: &str, otherwise: u64) -> u64 {
    let wanted = std::env::var(variable);
    wanted.map_or(otherwise, |wanted| wanted.parse().expect("the variable is a number"))
}

#[track_caller]
pub(crate) fn sound(scheme: &Scheme, found: &Found) {
    if let Found::Violation { trace, .. } = found {
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
pub(crate) fn sound_walks(walks: u64) {
    let (seeds, fresh) = seeds(walks);
    let mut totals = Totals::default();
    for seed in seeds {
        if let Err(Failure { what, scheme, trace }) = walk(seed, None, &mut totals) {
            let trace = shrink::shrink(&scheme, what, &trace);
            let story = story::tell(&scheme, &trace);
            panic!("{what:?} in the walk of seed {seed}, {scheme:?}:\n{story}");
        }
    }
    eprintln!("walks, a twentieth of them from seed {fresh}: {totals}");
}

/// Repeats so many random walks on nodes that run the scripts.
pub(crate) fn scripts_like_the_model(walks: u64) {
    let (seeds, fresh) = seeds(walks);
    let mut compared = Compared::default();
    for seed in seeds {
        let (scheme, trace) = replay::steps(seed);
        replay::replay(&scheme, &trace, &mut compared);
    }
    eprintln!("a twentieth of them from seed {fresh}: {compared:?}");
}

/// A violation must be found in so many walks, and it must be this one.
#[track_caller]
pub(crate) fn broken(mistake: Mistake, wanted: Violation, scheme: Scheme, enough: u64) {
    let scheme = scheme.with(mistake);
    let mut totals = Totals::default();
    let failure = (0..enough).find_map(|seed| walk(seed, Some(&scheme), &mut totals).err());
    let what = failure.map(|failure| failure.what);
    eprintln!("{mistake:?}: {what:?} after {} walks", totals.walks);
    assert_eq!(what, Some(wanted), "{mistake:?}");
}
