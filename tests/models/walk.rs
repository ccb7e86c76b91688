//! Random walks through histories that are too large for a search: none breaks a promise, and each
//! wrong rule shows in one.

use crate::{Chance, budget, number, seeds};
use std::env;
use std::fmt;

/// Many more walks than are needed until a wrong rule shows.
const ENOUGH: u64 = 100_000;

/// What takes walks.
pub trait Walker {
    type Violation: fmt::Debug + PartialEq;
    /// What has happened in a number of walks.
    type Totals: Default + fmt::Display;

    /// Takes a walk, until it ends or breaks a promise.
    fn walk(
        &mut self,
        random: &mut Chance,
        totals: &mut Self::Totals,
    ) -> Result<(), Self::Violation>;

    /// The last walk, which has broken this promise, in words.
    fn tell(&mut self, what: &Self::Violation) -> String;
}

/// Takes so many walks, unless the environment says how many: none may break a promise.
#[track_caller]
pub fn sound<W: Walker>(name: &str, walks: u64, walker: &mut W) -> W::Totals {
    let (seeds, fresh) = seeds(budget("REDLATCH_WALKS", walks));
    let mut totals = W::Totals::default();
    for seed in seeds {
        if let Err(what) = walker.walk(&mut Chance::new(seed), &mut totals) {
            let story = walker.tell(&what);
            panic!("{name}: {what:?} in the walk of seed {seed}\n{story}");
        }
    }
    eprintln!("{name}, a twentieth from seed {fresh}: {totals}");
    totals
}

/// Takes walks from this seed on until one breaks a promise, as one must: those before it took
/// seconds, and broke none. Returns which promise it was.
#[track_caller]
pub fn broken<W: Walker>(rule: &impl fmt::Debug, first: u64, walker: &mut W) -> W::Violation {
    let counted = number("REDLATCH_COUNT", 0);
    let from = number("REDLATCH_SEED", first);
    let walks = if counted == 0 { ENOUGH } else { counted };
    let mut totals = W::Totals::default();
    let mut found = None;
    let mut count = 0;
    for seed in from..from + walks {
        let Err(what) = walker.walk(&mut Chance::new(seed), &mut totals) else {
            continue;
        };
        count += 1;
        if found.is_none() && env::var_os("REDLATCH_TRACE").is_some() {
            eprintln!(
                "{rule:?}: {what:?} in the walk of seed {seed}\n{}",
                walker.tell(&what)
            );
        }
        found = found.or(Some(what));
        if counted == 0 {
            break;
        }
    }
    eprintln!("{rule:?}: {found:?}, in {count} of {totals}");
    found.unwrap_or_else(|| panic!("{rule:?} is not found: {totals}"))
}
