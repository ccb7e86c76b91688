//! Shorter ways to the same violation.

use crate::fair;
use crate::scheme::Scheme;
use crate::violation::Violation;
use crate::world::{Step, World};
use models::Chance;
use models::ways;

/// How many fair schedules are tried at the end of a history.
const SCHEDULES: u64 = 8;

/// Leaves out steps as long as what remains leads to the same violation.
pub(crate) fn shrink(scheme: &Scheme, what: Violation, trace: &[Step]) -> Vec<Step> {
    // A history that does not need a fair schedule to its end is easier to follow.
    let schedules = if repeat(scheme, what, trace, 0).is_some() { 0 } else { SCHEDULES };
    ways(trace, |steps| repeat(scheme, what, steps, schedules))
}

/// The fair schedule with which these steps end so, if they need one.
pub(crate) fn end(scheme: &Scheme, what: Violation, trace: &[Step]) -> Vec<Step> {
    let mut world = World::new(scheme);
    if trace.iter().any(|step| world.take(*step, scheme).is_err()) {
        return Vec::new();
    }
    let run = |seed| {
        let mut end = Vec::new();
        let found = fair::run(world.clone(), scheme, &mut Chance::new(seed), &mut end);
        (found == Err(what)).then_some(end)
    };
    (0..SCHEDULES).find_map(run).unwrap_or_default()
}

/// Takes the steps, without those that are not possible any more. Returns those that were taken if
/// they lead to the violation.
fn repeat(scheme: &Scheme, what: Violation, trace: &[Step], schedules: u64) -> Option<Vec<Step>> {
    let mut world = World::new(scheme);
    let (mut possible, mut taken) = (Vec::new(), Vec::new());
    for step in trace {
        possible.clear();
        world.steps(&mut possible);
        world.looks(scheme, &mut possible);
        world.faults(scheme, &mut possible);
        if !possible.contains(step) {
            continue;
        }
        taken.push(*step);
        if let Err(found) = world.take(*step, scheme) {
            return (found == what).then_some(taken);
        }
    }
    let ends_badly = |seed| {
        let end = fair::run(world.clone(), scheme, &mut Chance::new(seed), &mut Vec::new());
        end == Err(what)
    };
    (0..schedules).any(ends_badly).then_some(taken)
}
