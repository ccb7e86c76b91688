//! The state of a register between two operations of a history.

use super::operation::{Id, Seen};

/// The register between two operations.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct State {
    /// The ids and the fence of the value.
    pub(crate) value: Option<(Vec<Id>, u64)>,
    /// The version of the value, if anybody has seen it.
    pub(crate) version: Option<u64>,
    /// The highest version so far.
    pub(crate) top: u64,
}

pub(crate) fn fence(state: &State) -> u64 {
    state.value.as_ref().map_or(0, |(_, fence)| *fence)
}

/// The version as a caller of compare-and-set knows it. `None`: nobody has ever seen it.
pub(crate) fn current(state: &State) -> Option<Option<u64>> {
    if state.value.is_none() {
        Some(None)
    } else {
        state.version.map(Some)
    }
}

pub(crate) fn is_seen(state: &State, seen: Option<&Seen>) -> bool {
    match (&state.value, seen) {
        (None, None) => true,
        (Some((ids, fence)), Some(seen)) => {
            *ids == seen.ids && *fence == seen.fence && state.version == Some(seen.version)
        }
        _ => false,
    }
}

pub(crate) fn deleted(state: &State) -> State {
    State {
        value: None,
        version: None,
        top: state.top,
    }
}
