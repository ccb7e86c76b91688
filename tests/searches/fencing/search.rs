//! A breadth-first search through all states.

use super::world::{Scheme, World};
use std::collections::{HashSet, VecDeque};
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};

/// The result of a search.
pub(crate) enum Found {
    /// No violation in this many states: all states, or the maximum.
    Nothing { states: usize, all: bool },
    /// A violation after this many states.
    Violation { states: usize, what: String },
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing { states, all: true } => write!(f, "nothing in all {states} states"),
            Self::Nothing { states, all: false } => write!(f, "nothing in {states} states"),
            Self::Violation { states, what } => write!(f, "after {states} states: {what}"),
        }
    }
}

/// Searches up to `most` states.
pub(crate) fn search(scheme: Scheme, most: usize) -> Found {
    // States are remembered by their hash. A collision, which is about one in billions, means that
    // a state is not searched.
    let mut seen = HashSet::new();
    let mut queue = VecDeque::from([World::default()]);
    let mut found = Vec::new();
    while let Some(world) = queue.pop_front() {
        let states = seen.len();
        if let Err(what) = world.next(scheme, &mut found) {
            return Found::Violation { states, what };
        }
        for next in found.drain(..) {
            if seen.len() < most && seen.insert(hash(&next)) {
                queue.push_back(next);
            }
        }
    }
    Found::Nothing { states: seen.len(), all: seen.len() < most }
}

fn hash(world: &World) -> u64 {
    let mut hasher = DefaultHasher::new();
    world.hash(&mut hasher);
    hasher.finish()
}
