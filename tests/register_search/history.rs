//! The history of a register, and whether it has a linearization: an order of its calls, each at a
//! moment between its beginning and its end, in which each saw what the one before had left.
//!
//! This knows nothing of ballots, nodes and rounds. A change is what its caller was told that it
//! is: it was called with a value, has returned another one, and that got a version. A change
//! without a known outcome has happened once, happens later, or never. Versions must grow from one
//! change to the next, also over deletions.
//!
//! It goes along with the history: [`History`] is the set of all states in which the register may
//! be by now. A change that is under way is carried out only when a result needs it, so the set is
//! small; if it becomes empty, there is no linearization.

use std::collections::{BTreeMap, BTreeSet};

/// A call of a client.
pub(crate) type Call = u8;

/// A value, with its version. `None`: there is none.
pub(crate) type Value = Option<(u64, Vec<u8>)>;

/// What a change does, if it happens.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Effect {
    pub(crate) before: Value,
    pub(crate) after: Value,
}

/// The result of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It had this one of its effects.
    Made(usize),
    /// It had no effect, and this was the value.
    Saw(Value),
    /// It had no effect and will have none.
    Nothing,
    /// It had one of its effects, or will have one, or will not.
    Unknown,
}

/// No order of the calls explains the result of this one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Contradiction(pub(crate) Call);

/// A call that may have an effect still.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Open {
    effects: Vec<Effect>,
    /// May its result be what it saw?
    looks: bool,
}

/// How far a call is.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Progress {
    /// It had no effect so far, and these values were there since it began.
    Seeing(BTreeSet<Value>),
    Made(usize),
}

/// A state in which the register may be.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct State {
    value: Value,
    /// The largest version so far.
    version: u64,
    calls: BTreeMap<Call, Progress>,
}

/// What has happened to a register.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct History {
    open: BTreeMap<Call, Open>,
    states: BTreeSet<State>,
}

impl History {
    pub(crate) fn new() -> Self {
        let state = State {
            value: None,
            version: 0,
            calls: BTreeMap::new(),
        };
        Self {
            open: BTreeMap::new(),
            states: BTreeSet::from([state]),
        }
    }

    /// A call begins. `looks`: its result may be what it saw.
    pub(crate) fn begin(&mut self, call: Call, looks: bool) {
        self.open.insert(
            call,
            Open {
                effects: Vec::new(),
                looks,
            },
        );
        let begun = |mut state: State| {
            let seen = looks.then(|| state.value.clone());
            state
                .calls
                .insert(call, Progress::Seeing(seen.into_iter().collect()));
            state
        };
        self.states = std::mem::take(&mut self.states)
            .into_iter()
            .map(begun)
            .collect();
    }

    /// From now on the call may have this effect.
    pub(crate) fn may(&mut self, call: Call, effect: Effect) {
        self.open
            .get_mut(&call)
            .expect("it is under way")
            .effects
            .push(effect);
    }

    /// A call has ended.
    pub(crate) fn end(&mut self, call: Call, outcome: &Outcome) -> Result<(), Contradiction> {
        let open = self.open.get_mut(&call).expect("it is under way");
        if *outcome == Outcome::Unknown && !open.effects.is_empty() {
            open.looks = false;
            self.states = std::mem::take(&mut self.states)
                .into_iter()
                .map(|mut state| {
                    let progress = state.calls.entry(call);
                    progress.and_modify(|progress| {
                        if let Progress::Seeing(seen) = progress {
                            seen.clear();
                        }
                    });
                    state
                })
                .collect();
            return Ok(());
        }
        let mut states = BTreeSet::new();
        for state in std::mem::take(&mut self.states) {
            self.explain(state, call, outcome, &mut states);
        }
        self.open.remove(&call);
        self.states = states;
        if self.states.is_empty() {
            Err(Contradiction(call))
        } else {
            Ok(())
        }
    }

    /// The states that explain the outcome: this one, or those after other changes that are under
    /// way. Changes that are not needed stay under way.
    fn explain(&self, state: State, call: Call, outcome: &Outcome, out: &mut BTreeSet<State>) {
        let is_explained = match (&state.calls[&call], outcome) {
            (Progress::Made(one), Outcome::Made(other)) => one == other,
            (Progress::Seeing(_), Outcome::Nothing | Outcome::Unknown) => true,
            (Progress::Seeing(seen), Outcome::Saw(value)) => seen.contains(value),
            (Progress::Seeing(_), Outcome::Made(_)) => false,
            (Progress::Made(_), _) => return,
        };
        if is_explained {
            let mut state = state;
            state.calls.remove(&call);
            out.insert(state);
        } else if !matches!(state.calls[&call], Progress::Made(_)) {
            for next in self.next(&state) {
                self.explain(next, call, outcome, out);
            }
        }
    }

    /// The states after one more change.
    fn next<'a>(&'a self, state: &'a State) -> impl Iterator<Item = State> + 'a {
        let waiting = self
            .open
            .iter()
            .filter(|(call, _)| matches!(state.calls.get(call), Some(Progress::Seeing(_))));
        let effects = waiting.flat_map(|(call, open)| {
            open.effects
                .iter()
                .enumerate()
                .map(move |(index, effect)| (*call, index, effect))
        });
        let possible = effects.filter(|(_, _, effect)| {
            let grows = effect
                .after
                .as_ref()
                .is_none_or(|(version, _)| *version > state.version);
            effect.before == state.value && grows
        });
        possible.map(|(call, index, effect)| {
            let mut next = state.clone();
            next.value.clone_from(&effect.after);
            next.version = effect
                .after
                .as_ref()
                .map_or(state.version, |(version, _)| *version);
            next.calls.insert(call, Progress::Made(index));
            for (call, progress) in &mut next.calls {
                if let Progress::Seeing(seen) = progress {
                    if self.open.get(call).is_some_and(|open| open.looks) {
                        seen.insert(effect.after.clone());
                    }
                }
            }
            next
        })
    }
}
