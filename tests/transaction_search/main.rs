//! All schedules of a transaction: a request to take part may come late and twice, a side may die
//! and come back at any step, and a change of the record is heard, unheard, late or never made.
//!
//! In every state: no side has committed while another has rolled back, and none has committed
//! twice. From every state: each side that is prepared comes to its end alone, and when all have
//! started again, all have ended in the same way, and no record is left.

#![expect(clippy::unwrap_used, reason = "a record that cannot be made fails the test")]

mod mistake;
mod world;

use std::collections::HashSet;

use redlatch_registers::transaction::{Disk, JoinStep, TransactionSide};

use mistake::{MISTAKES, Mistake};
use world::World;

/// Takes the next states, each by what changes.
type Push<'a> = &'a mut dyn FnMut(&dyn Fn(&mut World));

struct Search {
    mistake: Mistake,
    /// How often each side is asked to take part, and dies.
    asks: u8,
    crashes: u8,
}

impl Search {
    fn successors(&self, world: &World) -> Vec<World> {
        let mut all = Vec::new();
        let mut push = |change: &dyn Fn(&mut World)| {
            let mut next = world.clone();
            change(&mut next);
            all.push(next);
        };
        if !world.has_begun {
            push(&World::begin);
            return all;
        }
        for index in 0..world.sides.len() {
            self.side(world, index, &mut push);
            for (number, change) in world.sides[index].sent.iter().enumerate() {
                let is_awaited = world.sides[index].awaits;
                // Unheard, perhaps long after its sender has given up.
                push(&|next| {
                    next.sides[index].sent.remove(number);
                    next.change(index, *change, self.mistake);
                });
                if is_awaited && self.is_latest(world, index, *change as u8) {
                    push(&|next| {
                        next.sides[index].sent.remove(number);
                        let told = next.change(index, *change, self.mistake);
                        next.tell(index, told, self.mistake);
                    });
                }
            }
        }
        all
    }

    /// Is it the change whose answer the side waits for?
    fn is_latest(&self, world: &World, index: usize, change: u8) -> bool {
        let step = world.sides[index].joining.as_ref().map(TransactionSide::step);
        let awaited = match step {
            Some(JoinStep::Vote) => 0,
            Some(JoinStep::Abort) => 1,
            Some(JoinStep::Finish) => 2,
            _ => return false,
        };
        awaited == change
    }

    /// What one side does.
    fn side(&self, world: &World, index: usize, push: Push<'_>) {
        let (side, mistake) = (&world.sides[index], self.mistake);
        let Some(joining) = &side.joining else {
            if side.asked < self.asks {
                push(&|next| {
                    let side = &mut next.sides[index];
                    side.asked += 1;
                    side.joining = Some(TransactionSide::join(side.disk));
                });
            }
            if side.disk != Disk::Nothing {
                push(&|next| next.start_again(index, mistake));
            }
            return;
        };
        if side.crashes < self.crashes {
            push(&|next| {
                let side = &mut next.sides[index];
                (side.joining, side.awaits) = (None, false);
                side.crashes += 1;
            });
        }
        let step = joining.step();
        if side.awaits {
            // The answer is lost. What was sent may take effect anyway.
            push(&|next| {
                let side = &mut next.sides[index];
                side.awaits = false;
                side.joining = side.joining.take().filter(|it| it.step() != JoinStep::Finish);
            });
            return;
        }
        push(&|next| next.step(index, mistake));
        if step == JoinStep::Prepare {
            push(&|next| next.sides[index].joining.as_mut().expect("it is").refuse());
        }
        if matches!(step, JoinStep::Vote | JoinStep::Wait) {
            if mistake != Mistake::OnlyStarterDecides {
                push(&|next| next.sides[index].joining.as_mut().expect("it is").lose_patience());
            }
            if mistake == Mistake::AbortAlone && step == JoinStep::Wait {
                push(&|next| {
                    let side = &mut next.sides[index];
                    (side.joining, side.disk, side.undone) = (None, Disk::Nothing, 1);
                });
            }
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

    /// How many states there are, and what is wrong in one.
    fn run(&self, sides: usize, limit: usize) -> (usize, Option<&'static str>) {
        let first = World::new(sides);
        let mut seen = HashSet::from([first.clone()]);
        let mut open = vec![first];
        while let Some(world) = open.pop() {
            for next in self.successors(&world) {
                if !seen.insert(next.clone()) {
                    continue;
                }
                if let Some(wrong) = self.wrong(&next).or_else(|| self.wrong_at_the_end(&next)) {
                    return (seen.len(), Some(wrong));
                }
                open.push(next);
            }
            assert!(seen.len() < limit, "more than {limit} states");
        }
        (seen.len(), None)
    }
}

#[test]
fn two_sides_end_in_the_same_way_in_all_schedules() {
    let search = Search { mistake: Mistake::None, asks: 2, crashes: 1 };
    let (states, wrong) = search.run(2, 5_000_000);
    println!("two sides: {states} states, all");
    assert_eq!(wrong, None);
    assert!(states > 10_000, "{states}");
}

#[test]
#[ignore = "it takes long: with --release, and gigabytes of memory"]
fn three_sides_end_in_the_same_way_in_all_schedules() {
    let search = Search { mistake: Mistake::None, asks: 1, crashes: 1 };
    let (states, wrong) = search.run(3, 50_000_000);
    println!("three sides: {states} states, all");
    assert_eq!(wrong, None);
}

#[test]
fn each_mistake_is_found() {
    for (mistake, words) in MISTAKES {
        let sides = if mistake == Mistake::CommitAtMajority { 3 } else { 2 };
        let search = Search { mistake, asks: 2, crashes: 1 };
        let (states, wrong) = search.run(sides, 5_000_000);
        println!("{words}: {states} states, {wrong:?}");
        assert!(wrong.is_some(), "not found: {words}");
    }
}
