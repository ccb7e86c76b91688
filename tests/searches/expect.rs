//! What the tests expect.

use crate::mistake::Mistake;
use crate::scheme::Scheme;
use crate::violation::Violation;
use crate::walk::Walks;
use models::{Chance, walk};

/// A violation must be found, and it must be this one.
#[track_caller]
pub(crate) fn broken(mistake: Mistake, wanted: Violation, scheme: Scheme) {
    broken_from(0, mistake, wanted, scheme);
}

/// The same with walks from this seed on.
#[track_caller]
pub(crate) fn broken_from(first: u64, mistake: Mistake, wanted: Violation, scheme: Scheme) {
    let scheme = scheme.with(mistake);
    let found = walk::broken(
        &mistake,
        first,
        &mut Walks::new(|_: &mut Chance| scheme.clone()),
    );
    assert_eq!(found, wanted, "{mistake:?}");
}
