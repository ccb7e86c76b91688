//! The search through the states of a model, for any kind of state and step, and what tests expect
//! of it.

use std::collections::{HashSet, VecDeque};
use std::fmt;
use std::hash::{BuildHasher, Hash};

use foldhash::quality::FixedState;

/// A scheme of states: what can happen in each, and what must not come of it.
pub trait Model: Sized {
    type World: Clone;
    type Step: Clone + PartialEq + fmt::Debug;
    type Violation: Clone + PartialEq + fmt::Debug;

    /// The state in which each history begins.
    fn first(&mut self) -> Self::World;

    /// Everything that can happen next.
    fn steps(&mut self, world: &Self::World) -> Vec<Self::Step>;

    fn take(&mut self, world: &mut Self::World, step: &Self::Step) -> Result<(), Self::Violation>;

    /// States that are alike have one key.
    fn key(&self, world: &Self::World) -> u64;

    /// What must hold of all that can follow on the state with this number.
    fn check(
        &mut self,
        _world: &Self::World,
        _steps: &[Self::Step],
        _number: usize,
    ) -> Result<(), Self::Violation> {
        Ok(())
    }

    /// Can this happen next?
    fn allows(&mut self, world: &Self::World, step: &Self::Step) -> bool {
        self.steps(world).contains(step)
    }

    /// Fewer steps that break the same promise.
    fn shorter(&mut self, what: &Self::Violation, trace: &[Self::Step]) -> Vec<Self::Step> {
        shorten(self, what, trace, |model, world| {
            let steps = model.steps(world);
            model.check(world, &steps, 0).as_ref() == Err(what)
        })
    }

    /// What this step does in this state, in words.
    fn describe(&mut self, _world: &Self::World, step: &Self::Step) -> String {
        format!("{step:?}")
    }

    /// What the last step has changed, in words.
    fn changes(&mut self, _before: &Self::World, _after: &Self::World) -> Vec<String> {
        Vec::new()
    }
}

/// The result of a search.
#[derive(Debug)]
enum Found<S, V> {
    /// No violation in this many states: all states, or the maximum.
    Nothing { states: usize, all: bool },
    /// A violation after this many states, and the steps to it.
    Violation {
        states: usize,
        what: V,
        trace: Vec<S>,
    },
}

impl<S, V: fmt::Debug> fmt::Display for Found<S, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing { states, all } => {
                write!(
                    f,
                    "nothing in {}{states} states",
                    if *all { "all " } else { "" }
                )
            }
            Self::Violation {
                states,
                what,
                trace,
            } => {
                write!(
                    f,
                    "{what:?} after {states} states, by {} steps",
                    trace.len()
                )
            }
        }
    }
}

/// Which of the states that were found is looked at next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// The first: no way to a violation is shorter than the one that is found.
    Breadth,
    /// The last: a part of all histories that ends early has long ones in it.
    Depth,
}

/// Searches up to `most` states.
fn explore<M: Model>(model: &mut M, most: usize, order: Order) -> Found<M::Step, M::Violation> {
    let first = model.first();
    // States are remembered by their key. A collision, which is about one in billions, means that
    // a state is not searched.
    let mut seen = HashSet::with_hasher(FixedState::default());
    seen.insert(model.key(&first));
    // How each state was first reached: from which one, and by which step.
    let mut origins: Vec<Option<(usize, M::Step)>> = vec![None];
    let mut open = VecDeque::from([(0, first)]);
    let next = |open: &mut VecDeque<_>| match order {
        Order::Breadth => open.pop_front(),
        Order::Depth => open.pop_back(),
    };
    while let Some((number, world)) = next(&mut open) {
        let steps = model.steps(&world);
        let violation = |origins: &[Option<(usize, M::Step)>], what, last: Option<M::Step>| {
            let trace = way(origins, number).into_iter().chain(last).collect();
            Found::Violation {
                states: origins.len(),
                what,
                trace,
            }
        };
        if let Err(what) = model.check(&world, &steps, number) {
            return violation(&origins, what, None);
        }
        for step in steps {
            let mut next = world.clone();
            if let Err(what) = model.take(&mut next, &step) {
                return violation(&origins, what, Some(step));
            }
            if origins.len() < most && seen.insert(model.key(&next)) {
                open.push_back((origins.len(), next));
                origins.push(Some((number, step)));
            }
        }
    }
    Found::Nothing {
        states: origins.len(),
        all: origins.len() < most,
    }
}

/// Searches up to `most` states, of which none may break a promise. Returns how many there were.
#[track_caller]
pub fn sound<M: Model>(name: &str, model: &mut M, most: usize, order: Order) -> usize {
    let found = explore(model, most, order);
    eprintln!("{name}: {found}");
    match found {
        Found::Nothing { states, .. } => states,
        Found::Violation { what, trace, .. } => {
            panic!("{name}: {what:?}\n{}", story(model, &what, &trace))
        }
    }
}

/// The same of all states, which must be fewer.
#[track_caller]
pub fn all_sound<M: Model>(name: &str, model: &mut M, most: usize) -> usize {
    let states = sound(name, model, most, Order::Depth);
    assert!(states < most, "{name}: it does not end");
    states
}

/// Searches until a promise is broken, as it must be, in up to `most` states.
#[track_caller]
pub fn broken<M: Model>(rule: &str, model: &mut M, most: usize, order: Order) -> M::Violation {
    let found = explore(model, most, order);
    eprintln!("{rule}: {found}");
    match found {
        Found::Nothing { .. } => panic!("{rule}: {found}"),
        Found::Violation { what, .. } => what,
    }
}

/// The steps to a broken promise, as few as possible, in words.
pub fn story<M: Model>(model: &mut M, what: &M::Violation, trace: &[M::Step]) -> String {
    let shorter = model.shorter(what, trace);
    tell(model, &shorter)
}

/// These steps, and what each of them has changed.
pub fn tell<M: Model>(model: &mut M, trace: &[M::Step]) -> String {
    let mut world = model.first();
    let mut story = String::new();
    for step in trace {
        let before = world.clone();
        story += &format!("  {}\n", model.describe(&before, step));
        let taken = model.take(&mut world, step);
        for change in model.changes(&before, &world) {
            story += &format!("      {change}\n");
        }
        if let Err(what) = taken {
            story += &format!("  {what:?}\n");
        }
    }
    story
}

/// The steps to a state.
fn way<S: Clone>(origins: &[Option<(usize, S)>], mut number: usize) -> Vec<S> {
    let mut steps = Vec::new();
    while let Some((before, step)) = &origins[number] {
        steps.push(step.clone());
        number = *before;
    }
    steps.reverse();
    steps
}

pub fn hash(world: &impl Hash) -> u64 {
    FixedState::default().hash_one(world)
}

/// Leaves out steps as long as what remains leads to the same violation: by a step, or because the
/// state that they lead to `ends_so`.
pub fn shorten<M: Model>(
    model: &mut M,
    what: &M::Violation,
    trace: &[M::Step],
    mut ends_so: impl FnMut(&mut M, &M::World) -> bool,
) -> Vec<M::Step> {
    ways(trace, |steps| {
        let mut world = model.first();
        let mut taken = Vec::new();
        for step in steps {
            if !model.allows(&world, step) {
                continue;
            }
            taken.push(step.clone());
            if let Err(found) = model.take(&mut world, step) {
                return (found == *what).then_some(taken);
            }
        }
        ends_so(model, &world).then_some(taken)
    })
}

/// Leaves out steps as long as what remains still leads there: `repeat` takes the steps that are
/// possible, and returns them if it does.
fn ways<S: Clone>(trace: &[S], mut repeat: impl FnMut(&[S]) -> Option<Vec<S>>) -> Vec<S> {
    let mut best = repeat(trace).unwrap_or_else(|| trace.to_vec());
    let mut length = usize::MAX;
    while best.len() < length {
        length = best.len();
        for size in [16, 8, 4, 2, 1] {
            let mut last = best.len();
            while last >= size {
                let mut shorter = best.clone();
                shorter.drain(last - size..last);
                if let Some(found) = repeat(&shorter) {
                    best = found;
                }
                last = (last - 1).min(best.len());
            }
        }
    }
    best
}
