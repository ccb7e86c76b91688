//! A breadth-first search through all states of a scheme.

use crate::fair;
use crate::scheme::Scheme;
use crate::violation::Violation;
use crate::world::{Step, World};
use models::Chance;
use std::collections::HashSet;
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};

/// The result of a search.
#[derive(Debug)]
pub(crate) enum Found {
    /// No violation in this many states: all states, or the maximum.
    Nothing { states: usize, all: bool, ends: usize },
    /// A violation after this many states, and the steps to it.
    Violation { states: usize, what: Violation, trace: Vec<Step> },
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing { states, all, ends } => {
                let all = if *all { "all " } else { "" };
                write!(f, "nothing in {all}{states} states, {ends} of them ends")
            }
            Self::Violation { states, what, trace } => {
                write!(f, "{what:?} after {states} states, by {} steps", trace.len())
            }
        }
    }
}

/// How a state was first reached: from which one, and by which step.
type Origin = (usize, Step);

/// Searches up to `most` states. Where faults are possible, one state in 64 is followed to its end
/// on a fair schedule; where they are not, each state without a next one must be a good end.
pub(crate) fn search(scheme: &Scheme, most: usize) -> Found {
    let first = World::new(scheme);
    // States are remembered by their hash. A collision, which is about one in billions, means that
    // a state is not searched.
    let mut seen = HashSet::from([hash(&first)]);
    let mut origins: Vec<Option<Origin>> = vec![None];
    let mut level = vec![(0, first)];
    let (mut steps, mut ends) = (Vec::new(), 0);
    while !level.is_empty() {
        let mut next = Vec::new();
        for (index, world) in level {
            let violation = |what, last: Option<Step>| {
                let mut trace = trace(&origins, index);
                trace.extend(last);
                Found::Violation { states: origins.len(), what, trace }
            };
            steps.clear();
            world.steps(&mut steps);
            world.looks(scheme, &mut steps);
            if steps.is_empty() {
                ends += 1;
            }
            if let Err(what) = check_end(&world, scheme, steps.is_empty(), index) {
                return violation(what, None);
            }
            world.faults(scheme, &mut steps);
            let mut found = Vec::new();
            for step in &steps {
                let mut world = world.clone();
                if let Err(what) = world.take(*step, scheme) {
                    return violation(what, Some(*step));
                }
                found.push((*step, world));
            }
            for (step, world) in found {
                if origins.len() < most && seen.insert(hash(&world.sorted())) {
                    next.push((origins.len(), world));
                    origins.push(Some((index, step)));
                }
            }
        }
        level = next;
    }
    Found::Nothing { states: origins.len(), all: origins.len() < most, ends }
}

fn check_end(world: &World, scheme: &Scheme, is_end: bool, index: usize) -> Result<(), Violation> {
    if scheme.faults_max > 0 {
        let is_sampled = is_end || index % 64 == 0;
        let mut random = Chance::new(index as u64);
        return match is_sampled {
            true => fair::run(world.clone(), scheme, &mut random, &mut Vec::new()).map(|_| ()),
            false => Ok(()),
        };
    }
    match is_end {
        true if !world.is_over() => Err(Violation::WaitsForEver),
        true if !world.is_clean() => Err(Violation::Residue),
        _ => Ok(()),
    }
}

fn trace(origins: &[Option<Origin>], mut index: usize) -> Vec<Step> {
    let mut steps = Vec::new();
    while let Some((before, step)) = origins[index] {
        steps.push(step);
        index = before;
    }
    steps.reverse();
    steps
}

fn hash(world: &World) -> u64 {
    let mut hasher = DefaultHasher::new();
    world.hash(&mut hasher);
    hasher.finish()
}
