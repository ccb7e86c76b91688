//! All schedules of a transaction, of the library's own steps: a request to take part may come late
//! and twice, a side may die and come back at any step, and a change of the record is heard,
//! unheard, late or never made.
//!
//! In every state: no side has committed while another has rolled back, and none has committed
//! twice. From every state: each side that is prepared comes to its end alone, and when all have
//! started again, all have ended in the same way, and no record is left.

#![expect(clippy::unwrap_used, reason = "a record that cannot be made fails the test")]

mod mistake;
mod world;

use mistake::{MISTAKES, Mistake};
use models::explore::{Found, Model, Order, explore, hash};
use redlatch_registers::transaction::{Disk, JoinStep, TransactionSide};
use world::{Change, World};

/// What can happen next, to the side with this index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Begin,
    /// It is asked to take part.
    Ask(usize),
    StartAgain(usize),
    Crash(usize),
    /// The answer that it waits for is lost. What was sent may take effect anyway.
    LoseAnswer(usize),
    /// It does what is next.
    Go(usize),
    Refuse(usize),
    LosePatience(usize),
    RollBackAlone(usize),
    /// A change that it has sent takes effect, unheard, perhaps long after it has given up.
    Change(usize, Change),
    /// The same, and it hears the answer.
    ChangeAndTell(usize, Change),
}

struct Search {
    mistake: Mistake,
    sides: usize,
    /// How often each side is asked to take part, and dies.
    asks: u8,
    crashes: u8,
}

impl Model for Search {
    type World = World;
    type Step = Step;
    type Violation = &'static str;

    fn first(&mut self) -> World {
        World::new(self.sides)
    }

    fn steps(&mut self, world: &World) -> Vec<Step> {
        if !world.has_begun {
            return vec![Step::Begin];
        }
        let mut steps = Vec::new();
        for (index, side) in world.sides.iter().enumerate() {
            self.steps_of(world, index, &mut steps);
            for change in &side.sent {
                steps.push(Step::Change(index, *change));
                if side.awaits && awaited(side.joining.as_ref()) == Some(*change) {
                    steps.push(Step::ChangeAndTell(index, *change));
                }
            }
        }
        steps
    }

    fn take(&mut self, world: &mut World, step: &Step) -> Result<(), &'static str> {
        let mistake = self.mistake;
        match *step {
            Step::Begin => world.begin(),
            Step::Ask(index) => {
                let side = &mut world.sides[index];
                side.asked += 1;
                side.joining = Some(TransactionSide::join(side.disk));
            }
            Step::StartAgain(index) => world.start_again(index, mistake),
            Step::Crash(index) => {
                let side = &mut world.sides[index];
                (side.joining, side.awaits) = (None, false);
                side.crashes += 1;
            }
            Step::LoseAnswer(index) => {
                let side = &mut world.sides[index];
                side.awaits = false;
                side.joining = side.joining.take().filter(|it| it.step() != JoinStep::Finish);
            }
            Step::Go(index) => world.step(index, mistake),
            Step::Refuse(index) => world.joining(index).refuse(),
            Step::LosePatience(index) => world.joining(index).lose_patience(),
            Step::RollBackAlone(index) => {
                let side = &mut world.sides[index];
                (side.joining, side.disk, side.undone) = (None, Disk::Nothing, 1);
            }
            Step::Change(index, change) => _ = world.arrive(index, change, mistake),
            Step::ChangeAndTell(index, change) => {
                let told = world.arrive(index, change, mistake);
                world.tell(index, told, mistake);
            }
        }
        Ok(())
    }

    fn key(&self, world: &World) -> u64 {
        hash(world)
    }

    fn check(&mut self, world: &World, _: &[Step], _: usize) -> Result<(), &'static str> {
        self.wrong(world).or_else(|| self.wrong_at_the_end(world)).map_or(Ok(()), Err)
    }
}

/// The change whose answer a side waits for.
fn awaited(joining: Option<&TransactionSide>) -> Option<Change> {
    match joining?.step() {
        JoinStep::Vote => Some(Change::Vote),
        JoinStep::Abort => Some(Change::Abort),
        JoinStep::Finish => Some(Change::Finish),
        _ => None,
    }
}

impl Search {
    /// What one side does.
    fn steps_of(&self, world: &World, index: usize, steps: &mut Vec<Step>) {
        let side = &world.sides[index];
        let Some(joining) = &side.joining else {
            steps.extend((side.asked < self.asks).then_some(Step::Ask(index)));
            steps.extend((side.disk != Disk::Nothing).then_some(Step::StartAgain(index)));
            return;
        };
        steps.extend((side.crashes < self.crashes).then_some(Step::Crash(index)));
        if side.awaits {
            return steps.push(Step::LoseAnswer(index));
        }
        steps.push(Step::Go(index));
        match joining.step() {
            JoinStep::Prepare => steps.push(Step::Refuse(index)),
            step @ (JoinStep::Vote | JoinStep::Wait) => {
                if self.mistake != Mistake::OnlyStarterDecides {
                    steps.push(Step::LosePatience(index));
                }
                if self.mistake == Mistake::AbortAlone && step == JoinStep::Wait {
                    steps.push(Step::RollBackAlone(index));
                }
            }
            _ => {}
        }
    }

    fn wrong(&self, world: &World) -> Option<&'static str> {
        let is_applied = world.sides.iter().any(|side| side.applied > 0);
        if is_applied && world.sides.iter().any(|side| side.undone > 0 && side.applied == 0) {
            return Some("one has committed, another has rolled back");
        }
        if world.sides.iter().any(|side| side.applied > 1) {
            return Some("committed twice");
        }
        world.wrong
    }

    /// Does each side come to its end alone, and do all end in the same way?
    fn wrong_at_the_end(&self, world: &World) -> Option<&'static str> {
        let mut all = world.clone();
        for index in 0..world.sides.len() {
            if !world.clone().recover_alone(index, self.mistake) {
                return Some("a side cannot learn the decision");
            }
            all.recover_alone(index, self.mistake);
            all.abort_unknown(index);
        }
        // Who came first could only vote, or was about to finish.
        let applied = all.sides.iter().filter(|side| side.applied > 0).count();
        if applied > 0 && applied < all.sides.len() {
            return Some("one has committed, another never does");
        }
        if all.sides.iter().any(|side| side.disk != Disk::Nothing) {
            return Some("a side stays prepared");
        }
        if all.record.is_some() {
            return Some("the record stays for ever");
        }
        self.wrong(&all)
    }
}

/// Searches all states, and prints what was found under this name.
fn search(name: &str, mut search: Search, most: usize) -> Found<Step, &'static str> {
    let found = explore(&mut search, most, Order::Depth);
    eprintln!("{name}: {found}");
    found
}

#[test]
fn two_sides_end_in_the_same_way_in_all_schedules() {
    let sound = Search { mistake: Mistake::None, sides: 2, asks: 2, crashes: 1 };
    let found = search("two sides", sound, 5_000_000);
    assert!(matches!(found, Found::Nothing { all: true, states: 10_001.. }), "{found:?}");
}

#[test]
#[ignore = "it takes half a minute"]
fn three_sides_end_in_the_same_way_in_all_schedules() {
    let sound = Search { mistake: Mistake::None, sides: 3, asks: 1, crashes: 1 };
    let found = search("three sides", sound, 50_000_000);
    assert!(matches!(found, Found::Nothing { all: true, .. }), "{found:?}");
}

#[test]
fn each_mistake_is_found() {
    for (mistake, words) in MISTAKES {
        let sides = if mistake == Mistake::CommitAtMajority { 3 } else { 2 };
        let found = search(words, Search { mistake, sides, asks: 2, crashes: 1 }, 5_000_000);
        assert!(matches!(found, Found::Violation { .. }), "not found: {words}");
    }
}
