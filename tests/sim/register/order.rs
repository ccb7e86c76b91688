//! Do the operations of a register have an order? It knows what callers saw, and nothing of the
//! code under test.
//!
//! Values carry all writes since the register was created, and versions grow also over a deletion.
//! So the states of a register that anybody saw have one possible order:
//!
//! ```text
//! absent, a, ab, abc, absent, d, de, ..
//! ```
//!
//! An operation with a known outcome has one place in it: a write and a deletion where they lead
//! to a state, all others in one. Only a register that is absent does not say for the how manieth
//! time: each such operation gets the first place that it can have. What returned before something
//! else was called must not have a later place.

use super::history::{Call, Id, Operation, Outcome, Seen};
use std::collections::BTreeMap;

/// A state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Absent,
    /// After this write.
    Written(Id),
}

/// An operation with its place: twice the number of the state that it leads to, and one more if it
/// has found that state.
#[derive(Clone, Debug)]
struct Placed<'a> {
    place: usize,
    operation: &'a Operation,
}

/// Checks the operations of one register.
pub(crate) fn check(operations: &[&Operation]) -> Result<(), String> {
    let states = states(operations)?;
    check_writes(operations, &states)?;
    let mut placed = Vec::new();
    let mut of_absent = Vec::new();
    for operation in operations {
        match place(operation, &states)? {
            Place::Known(place) => placed.push(Placed { place, operation }),
            Place::Absent => of_absent.push(*operation),
            Place::None => {}
        }
    }
    place_deletions(operations, &states, &mut placed)?;
    place_absent(&of_absent, &states, &mut placed)?;
    for one in &placed {
        let other = placed.iter().find(|other| {
            one.operation.returned < other.operation.called && one.place > other.place
        });
        if let Some(other) = other {
            return Err(format!(
                "{:?} is older than {:?}",
                other.operation, one.operation
            ));
        }
    }
    Ok(())
}

/// The values that an operation has shown, its own among them.
fn shown(operation: &Operation) -> Vec<Seen> {
    match &operation.outcome {
        Outcome::Is(seen) => seen.iter().cloned().collect(),
        Outcome::Made { before, version } => {
            let own = version.map(|version| {
                let mut own = before.clone().unwrap_or(Seen {
                    version,
                    ids: vec![],
                    fence: 0,
                });
                own.ids.push(operation.id);
                let token = if let Call::Fenced(token) = operation.call {
                    token
                } else {
                    0
                };
                Seen {
                    version,
                    fence: own.fence.max(token),
                    ..own
                }
            });
            before.iter().cloned().chain(own).collect()
        }
        _ => Vec::new(),
    }
}

/// All states that anybody saw, in their order.
fn states(operations: &[&Operation]) -> Result<Vec<State>, String> {
    let mut versions: BTreeMap<Id, u64> = BTreeMap::new();
    // By the first write of each.
    let mut creations: BTreeMap<Id, Vec<Id>> = BTreeMap::new();
    for operation in operations {
        for Seen { version, ids, .. } in shown(operation) {
            let (Some(first), Some(last)) = (ids.first(), ids.last()) else {
                return Err(format!("an empty value: {operation:?}"));
            };
            if *versions.entry(*last).or_insert(version) != version {
                return Err(format!("another version of one value: {operation:?}"));
            }
            let known = creations.entry(*first).or_default();
            if !known.starts_with(&ids) && !ids.starts_with(known) {
                return Err(format!("two histories, {known:?}: {operation:?}"));
            }
            if ids.len() > known.len() {
                *known = ids;
            }
        }
    }
    let mut all: Vec<Vec<Id>> = creations.into_values().collect();
    all.sort_by_key(|ids| ids.iter().find_map(|id| versions.get(id)).copied());
    let ids: Vec<Id> = all.concat();
    let mut known = ids.iter().filter_map(|id| versions.get(id));
    if !known.by_ref().is_sorted_by(|one, other| one < other) {
        return Err(format!("versions do not grow: {all:?}, {versions:?}"));
    }
    let mut sorted = ids.clone();
    sorted.sort_unstable();
    if let Some(twice) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(format!("the write {} was made twice: {all:?}", twice[0]));
    }
    let mut states = vec![State::Absent];
    for ids in all {
        states.extend(ids.into_iter().map(State::Written));
        states.push(State::Absent);
    }
    Ok(states)
}

/// Only what may have been written is in a value, with the largest token of those who wrote it.
fn check_writes(operations: &[&Operation], states: &[State]) -> Result<(), String> {
    let mut fences: BTreeMap<Id, u64> = BTreeMap::new();
    let mut fence = 0;
    for state in states {
        let State::Written(id) = state else {
            fence = 0;
            continue;
        };
        let writer = operations.iter().find(|it| it.id == *id);
        let Some(writer) = writer else {
            return Err(format!("a value from nowhere: {id}"));
        };
        let is_write = matches!(writer.call, Call::Append | Call::Set(_) | Call::Fenced(_));
        let may_be_made = matches!(writer.outcome, Outcome::Made { .. } | Outcome::Unsure);
        if !is_write || !may_be_made {
            return Err(format!("it was made: {writer:?}"));
        }
        if let Call::Fenced(token) = writer.call {
            if token < fence {
                return Err(format!(
                    "a larger token, {fence}, has written before {writer:?}"
                ));
            }
            fence = token;
        }
        fences.insert(*id, fence);
    }
    for operation in operations {
        for seen in shown(operation) {
            if seen.ids.last().and_then(|last| fences.get(last)) != Some(&seen.fence) {
                return Err(format!("{seen:?} has another token: {operation:?}"));
            }
        }
        let fits = match (operation.call, &operation.outcome) {
            (Call::Set(seen), Outcome::Made { before, .. }) => {
                seen == before.as_ref().map(|before| before.version)
            }
            (Call::Set(seen), Outcome::Is(other)) => {
                seen != other.as_ref().map(|other| other.version)
            }
            (Call::Fenced(token), Outcome::Is(other)) => {
                other.as_ref().is_some_and(|other| other.fence > token)
            }
            _ => true,
        };
        if !fits {
            return Err(format!("the outcome does not fit: {operation:?}"));
        }
    }
    Ok(())
}

/// Where an operation stands.
enum Place {
    Known(usize),
    /// In one of the states without a value.
    Absent,
    /// It has no effect that anybody saw.
    None,
}

fn place(operation: &Operation, states: &[State]) -> Result<Place, String> {
    let number = |id: Id| states.iter().position(|state| *state == State::Written(id));
    let last = |seen: &Seen| seen.ids.last().and_then(|last| number(*last));
    let known = |place: Option<usize>| place.map_or(Place::None, Place::Known);
    Ok(match (&operation.outcome, operation.call) {
        (Outcome::Is(Some(seen)), _) => known(last(seen).map(|state| 2 * state + 1)),
        (Outcome::Is(None), _) => Place::Absent,
        (
            Outcome::Made {
                before: None,
                version: None,
            },
            _,
        ) => Place::Absent,
        (
            Outcome::Made {
                before: Some(before),
                version: None,
            },
            _,
        ) => {
            let state = last(before).map_or(0, |state| state + 1);
            if states[state] != State::Absent {
                return Err(format!("a value outlives its deletion: {operation:?}"));
            }
            Place::Known(2 * state)
        }
        (Outcome::Made { .. }, _) => known(number(operation.id).map(|state| 2 * state)),
        (Outcome::Unsure, Call::Append | Call::Set(_) | Call::Fenced(_)) => {
            known(number(operation.id).map(|state| 2 * state))
        }
        _ => Place::None,
    })
}

/// Each deletion that nobody is sure to have made was made by somebody who is not sure. They are
/// alike, so the one that was called first made the first.
fn place_deletions<'a>(
    operations: &[&'a Operation],
    states: &[State],
    placed: &mut Vec<Placed<'a>>,
) -> Result<(), String> {
    let is_unsure = |it: &&&Operation| it.call == Call::Delete && it.outcome == Outcome::Unsure;
    let mut unsure: Vec<&Operation> = operations.iter().filter(is_unsure).copied().collect();
    unsure.sort_by_key(|it| it.called);
    let mut unsure = unsure.into_iter();
    for (number, state) in states.iter().enumerate().skip(1) {
        if *state != State::Absent {
            continue;
        }
        let place = 2 * number;
        let deletions: Vec<&Placed<'_>> = placed.iter().filter(|it| it.place == place).collect();
        match (&deletions[..], unsure.len()) {
            ([_], _) => {}
            ([], 1..) => {
                placed.extend(unsure.next().map(|operation| Placed { place, operation }));
            }
            // The last value need not have been deleted.
            ([], 0) if number == states.len() - 1 => {}
            ([], 0) => return Err(format!("deleted by nobody, state {number} of {states:?}")),
            _ => return Err(format!("deleted twice: {deletions:?}")),
        }
    }
    Ok(())
}

/// Operations that found no value, in the order of their calls, each in the first state in which it
/// can have been.
fn place_absent<'a>(
    of_absent: &[&'a Operation],
    states: &[State],
    placed: &mut Vec<Placed<'a>>,
) -> Result<(), String> {
    let is_deleted = |number: usize, placed: &[Placed<'_>]| {
        number == 0 || placed.iter().any(|it| it.place == 2 * number)
    };
    for operation in of_absent {
        let before = placed
            .iter()
            .filter(|it| it.operation.returned < operation.called);
        let least = before.map(|it| it.place).max().unwrap_or(0);
        let after = placed
            .iter()
            .filter(|it| it.operation.called > operation.returned);
        let most = after.map(|it| it.place).min().unwrap_or(usize::MAX);
        let place = (0..states.len()).find(|number| {
            let is_in_time = (least..=most).contains(&(2 * number + 1));
            states[*number] == State::Absent && is_in_time && is_deleted(*number, placed)
        });
        match place {
            Some(number) => placed.push(Placed {
                place: 2 * number + 1,
                operation,
            }),
            None => return Err(format!("the register was not absent: {operation:?}")),
        }
    }
    Ok(())
}
