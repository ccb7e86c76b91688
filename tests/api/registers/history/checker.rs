//! Is a history linearizable? A search in the style of Wing and Gong, with memory, which knows
//! nothing of the library: it has the operations of one register as their callers saw them.
//!
//! - An operation takes effect once, between its call and its return.
//! - One whose error says that it may have happened takes effect once, at any time after its call,
//!   or never. One whose error says that it has not, never.
//! - Each change has a version above those of all changes before it, also over a deletion.
//! - A smaller fencing token overwrites no larger one.

use super::operation::{Call, Id, Operation, Outcome, Seen, appended};
use super::state::{State, current, deleted, fence, is_seen};
use std::collections::{HashMap, HashSet};

/// How many states are searched at most. A history that needs more is refused, not accepted.
const STATES_MAX: usize = 3_000_000;

/// How far a search is: which operations have taken effect, and what the register is then.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Position {
    /// All sure operations below this one, and these.
    base: usize,
    ahead: Vec<usize>,
    state: State,
}

/// Which of the unsure operations have taken effect, in order.
type Applied = Vec<usize>;

/// The positions that were searched, and with which unsure operations.
#[derive(Default)]
struct Visited {
    positions: HashMap<Position, Vec<Applied>>,
    count: usize,
}

impl Visited {
    /// Is this new? It is not if the same position was searched with fewer unsure operations: what
    /// can follow now could follow then.
    fn insert(&mut self, (position, applied): &(Position, Applied)) -> bool {
        let known = self.positions.entry(position.clone()).or_default();
        if known
            .iter()
            .any(|fewer| fewer.iter().all(|it| applied.contains(it)))
        {
            return false;
        }
        known.push(applied.clone());
        self.count += 1;
        true
    }
}

/// The operations of one register.
struct History {
    /// Those that have returned, in the order of their calls.
    sure: Vec<Operation>,
    /// Those that may have happened.
    unsure: Vec<Operation>,
    /// The version of each write, as far as anybody has seen it.
    versions: HashMap<Id, u64>,
}

/// Checks the history of all registers.
pub(crate) fn check(operations: &[Operation]) -> Result<(), String> {
    let registers: HashSet<usize> = operations.iter().map(|it| it.register).collect();
    registers.into_iter().try_for_each(|register| {
        let of_register = operations.iter().filter(|it| it.register == register);
        let history = History::new(of_register.cloned().collect())?;
        history
            .search()
            .map_err(|why| format!("register {register}: {why}"))
    })
}

/// The values that an operation has shown.
fn shown(operation: &Operation) -> Vec<Seen> {
    let call = &operation.call;
    let outcome = &operation.outcome;
    let mut shown: Vec<Seen> = match outcome {
        Outcome::Is(value) | Outcome::Changed { before: value, .. } => {
            value.iter().cloned().collect()
        }
        _ => Vec::new(),
    };
    let own = match (call, outcome) {
        (
            Call::Change(id),
            Outcome::Changed {
                version: Some(version),
                ..
            },
        )
        | (Call::Set { id, .. } | Call::Fenced { id, .. }, Outcome::Set(version)) => {
            Some((*id, *version))
        }
        _ => None,
    };
    shown.extend(own.map(|(id, version)| Seen {
        version,
        ids: vec![id],
        fence: 0,
    }));
    shown
}

impl History {
    fn new(mut operations: Vec<Operation>) -> Result<Self, String> {
        operations.sort_by_key(|operation| operation.called);
        let mut versions = HashMap::new();
        let mut ids = HashSet::new();
        let mut fences = HashSet::new();
        for operation in &operations {
            if let Outcome::Stale(by) = operation.outcome {
                fences.insert(by);
            }
            for seen in shown(operation) {
                let last = *seen.ids.last().expect("a value has an id");
                if *versions.entry(last).or_insert(seen.version) != seen.version {
                    return Err(format!("two versions of the write {last}: {operation:?}"));
                }
                ids.extend(seen.ids);
                fences.insert(seen.fence);
            }
        }
        operations.retain(|operation| operation.outcome != Outcome::Failed);
        let is_unsure = |operation: &Operation| operation.outcome == Outcome::Unsure;
        let (mut unsure, sure): (Vec<_>, Vec<_>) = operations.into_iter().partition(is_unsure);
        // A write that nobody has seen might as well not have happened; a fenced one is seen also
        // by its token. A deletion has no id.
        unsure.retain(|operation| match operation.call {
            Call::Change(id) | Call::Set { id, .. } => ids.contains(&id),
            Call::Read => false,
            Call::Fenced { token, id } => ids.contains(&id) || fences.contains(&token),
            Call::Delete => true,
        });
        Ok(Self {
            sure,
            unsure,
            versions,
        })
    }

    fn search(&self) -> Result<(), String> {
        let start = (Position::default(), Applied::new());
        let mut stack = vec![start];
        let mut visited = Visited::default();
        let mut furthest = Position::default();
        while let Some((position, applied)) = stack.pop() {
            if position.base == self.sure.len() {
                return Ok(());
            }
            if position.base > furthest.base {
                furthest = position.clone();
            }
            if visited.count > STATES_MAX {
                return Err(format!(
                    "more than {STATES_MAX} states, {}",
                    self.story(&furthest)
                ));
            }
            let next = self.next(&position, &applied).into_iter();
            stack.extend(next.filter(|it| visited.insert(it)).collect::<Vec<_>>());
        }
        Err(self.story(&furthest))
    }

    /// The positions after one more operation, the likeliest last.
    fn next(&self, position: &Position, applied: &Applied) -> Vec<(Position, Applied)> {
        let (open, until) = self.open(position);
        let mut all = Vec::new();
        let mut has_deleted = false;
        for (index, operation) in self.unsure.iter().enumerate() {
            // Deletions are alike, so the one that was called first is the first to take effect.
            let is_other_deletion = operation.call == Call::Delete && has_deleted;
            if applied.contains(&index) || operation.called > until || is_other_deletion {
                continue;
            }
            has_deleted |= operation.call == Call::Delete;
            if let Some(state) = self.unsure_effect(&position.state, operation) {
                let mut applied = applied.clone();
                applied.push(index);
                applied.sort_unstable();
                all.push((
                    Position {
                        state,
                        ..position.clone()
                    },
                    applied,
                ));
            }
        }
        for index in open.into_iter().rev() {
            if let Some(state) = self.effect(&position.state, &self.sure[index]) {
                let mut after = Position {
                    state,
                    ..position.clone()
                };
                after.ahead.push(index);
                after.ahead.sort_unstable();
                while after.ahead.first() == Some(&after.base) {
                    after.base += 1;
                    after.ahead.remove(0);
                }
                all.push((after, applied.clone()));
            }
        }
        all
    }

    /// The sure operations that can be next, and the first return among them: what was called later
    /// than that cannot.
    fn open(&self, position: &Position) -> (Vec<usize>, u64) {
        let mut until = u64::MAX;
        let mut open = Vec::new();
        for (index, operation) in self.sure.iter().enumerate().skip(position.base) {
            if operation.called > until {
                break;
            }
            if !position.ahead.contains(&index) {
                until = until.min(operation.returned);
                open.push(index);
            }
        }
        open.retain(|index| self.sure[*index].called <= until);
        (open, until)
    }

    /// The state after this operation, if its outcome fits.
    fn effect(&self, state: &State, operation: &Operation) -> Option<State> {
        match (&operation.call, &operation.outcome) {
            (Call::Read, Outcome::Is(seen)) => is_seen(state, seen.as_ref()).then(|| state.clone()),
            (
                Call::Change(id),
                Outcome::Changed {
                    version: Some(_),
                    before,
                },
            ) => is_seen(state, before.as_ref()).then(|| self.changed(state, *id))?,
            (
                Call::Delete,
                Outcome::Changed {
                    version: None,
                    before,
                },
            ) => is_seen(state, before.as_ref()).then(|| deleted(state)),
            (Call::Set { seen, id }, Outcome::Set(_)) => {
                (*seen == current(state)?).then(|| self.replaced(state, *id, None))?
            }
            (Call::Set { seen, .. }, Outcome::Is(other)) => {
                let is_refused = is_seen(state, other.as_ref())
                    && *seen != other.as_ref().map(|other| other.version);
                is_refused.then(|| state.clone())
            }
            (Call::Fenced { token, id }, Outcome::Set(_)) => {
                (fence(state) <= *token).then(|| self.replaced(state, *id, Some(*token)))?
            }
            (Call::Fenced { token, .. }, Outcome::Stale(by)) => {
                (fence(state) == *by && by > token).then(|| state.clone())
            }
            _ => None,
        }
    }

    /// The state after an operation of which nobody knows whether it happened, if it can have an
    /// effect.
    fn unsure_effect(&self, state: &State, operation: &Operation) -> Option<State> {
        match operation.call {
            Call::Change(id) => self.changed(state, id),
            Call::Set { seen, id } if seen == current(state)? => self.replaced(state, id, None),
            Call::Fenced { token, id } if fence(state) <= token => {
                self.replaced(state, id, Some(token))
            }
            Call::Delete if state.value.is_some() => Some(deleted(state)),
            _ => None,
        }
    }

    fn changed(&self, state: &State, id: Id) -> Option<State> {
        let ids = appended(state.value.as_ref().map(|(ids, _)| &ids[..]), id);
        self.put(state, ids, fence(state))
    }

    fn replaced(&self, state: &State, id: Id, token: Option<u64>) -> Option<State> {
        self.put(state, vec![id], fence(state).max(token.unwrap_or(0)))
    }

    /// The state with another value, unless its version is no higher than one before.
    fn put(&self, state: &State, ids: Vec<Id>, fence: u64) -> Option<State> {
        let version = ids.last().and_then(|last| self.versions.get(last)).copied();
        let is_higher = version.is_none_or(|version| version > state.top);
        let top = version.unwrap_or(state.top);
        is_higher.then_some(State {
            value: Some((ids, fence)),
            version,
            top,
        })
    }

    /// How far the search came, for a reader.
    fn story(&self, furthest: &Position) -> String {
        let from = furthest.base.saturating_sub(6);
        let lines = self.sure.iter().enumerate().skip(from).take(24);
        let lines = lines.map(|(index, operation)| {
            let is_done = index < furthest.base || furthest.ahead.contains(&index);
            format!("  {} {operation:?}", if is_done { "done" } else { "    " })
        });
        let near = |it: &&Operation| {
            self.sure
                .get(furthest.base)
                .is_none_or(|next| it.called < next.returned)
        };
        let unsure = self.unsure.iter().filter(near).rev().take(8);
        let unsure = unsure.map(|operation| format!("  unsure {operation:?}"));
        let lines: Vec<String> = lines.chain(unsure).collect();
        let count = self.sure.len();
        format!(
            "not linearizable: {} of {count} operations, then {:?}\n{}",
            furthest.base,
            furthest.state,
            lines.join("\n")
        )
    }
}
