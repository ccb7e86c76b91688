//! Lock names spread over sets of nodes by `examples/sets_of_nodes.rs`: who holds a lock while the
//! list changes, in all histories of a small model; and, by simulation, how full the fullest set
//! is, what a change costs, and how long a set takes that comes back. No server is needed.
//!
//! `src/guide/scale.md` has the figures: `cargo test -p redlatch-models --test sets_of_nodes --
//! --nocapture`.

#![expect(clippy::unwrap_used, reason = "what cannot be computed fails the test")]

#[path = "../../examples/sets_of_nodes.rs"]
#[allow(
    dead_code,
    reason = "its main and its story run in the tests of the examples"
)]
mod sets_of_nodes;

use models::Chance;
use models::explore::{self, Model, Order, hash};
use redlatch::LockClient;
use sets_of_nodes::{Set, Sets, home, weight};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

#[test]
fn the_weights_are_those_that_programs_in_other_languages_compute() {
    assert_eq!(weight("set-1", "orders:42"), 18_374_579_585_856_570_356);
    assert_eq!(weight("set-7", "käse"), 16_186_958_893_138_943_697);
}

/// Sets that nobody connects to.
fn paper(count: usize) -> Vec<Set> {
    let client = LockClient::new(["redis://127.0.0.1:1"]).unwrap();
    (0..count)
        .map(|it| Set {
            id: format!("set-{it}"),
            client: client.clone(),
        })
        .collect()
}

/// A name and its two sets, by the index of the list: before, coming, coming with the lists
/// exchanged (as when a change is taken back), after.
struct Change {
    sets: [Vec<usize>; 4],
    mistake: Option<Mistake>,
}

/// A wrong rule, or a wrong `Sets::of`.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Mistake {
    /// Programs go to the last list while others have the first.
    StepLeftOut,
    /// Only the list that a program has counts, not that of the lock it holds.
    HeldLockForgotten,
    /// A program that is shut out counts no more at once, though its lock has not expired.
    ShutOutAtOnce,
    /// While the list changes, the lock is acquired in the new set only.
    NewSetOnly,
    /// While the list changes, the old set comes first, whichever that is.
    OldSetFirst,
}

const PROGRAMS: usize = 3;

#[derive(Clone, Default, Hash)]
struct Program {
    /// The list that its next lock goes by.
    list: usize,
    /// The list of the lock that it acquires or holds, and in how many sets it has it.
    lock: Option<(usize, usize)>,
    /// No node serves it any more.
    is_shut_out: bool,
}

#[derive(Clone, Debug, PartialEq)]
enum Step {
    Begin(usize),
    Acquire(usize),
    /// Releases the lock, or gives it up.
    Release(usize),
    Move(usize, usize),
    /// The operator deletes the user of a program that cannot be found.
    ShutOut(usize),
    /// Its lock expires.
    Expire(usize),
}

#[derive(Clone, Debug, PartialEq)]
enum Violation {
    TwoHolders,
    EachWaitsForTheOther,
}

impl Change {
    fn new(mistake: Option<Mistake>) -> Self {
        let all = paper(3);
        let index = |set: &Set| all.iter().position(|it| it.id == set.id).unwrap();
        let moves = |name: &String| home(&all, name).id != home(&all[..2], name).id;
        let name = (0..)
            .map(|number| format!("orders:{number}"))
            .find(moves)
            .unwrap();
        let sets = [(2, 2), (2, 3), (3, 2), (3, 3)].map(|(old, new)| {
            let ordered = match mistake {
                Some(Mistake::NewSetOnly) => vec![home(&all[..new], &name)],
                Some(Mistake::OldSetFirst) if old != new => {
                    vec![home(&all[..old], &name), home(&all[..new], &name)]
                }
                _ => Sets {
                    old: all[..old].to_vec(),
                    new: all[..new].to_vec(),
                }
                .of(&name)
                .into_iter()
                .map(|set| all.iter().find(|it| it.id == set.id).unwrap())
                .collect(),
            };
            ordered.into_iter().map(index).collect()
        });
        Self { sets, mistake }
    }

    /// The sets in which a program has the lock that it acquires or holds.
    fn has(&self, program: &Program) -> &[usize] {
        program
            .lock
            .map_or(&[], |(list, count)| &self.sets[list][..count])
    }

    /// The set that it wants next.
    fn wants(&self, program: &Program) -> Option<usize> {
        let (list, count) = program.lock?;
        self.sets[list].get(count).copied()
    }

    fn holds(&self, program: &Program) -> bool {
        program.lock.is_some() && self.wants(program).is_none()
    }

    /// The rule of the page: the first list and the last are never in use at once. A list is in use
    /// while a program has it, or a lock that was acquired with it.
    fn may_move(&self, programs: &[Program], to: usize) -> bool {
        let uses = |program: &Program| {
            let of_lock = program.lock.map(|(list, _)| list);
            let of_lock = of_lock.filter(|_| self.mistake != Some(Mistake::HeldLockForgotten));
            let is_gone = self.mistake == Some(Mistake::ShutOutAtOnce);
            let lists = (!program.is_shut_out)
                .then_some(program.list)
                .into_iter()
                .chain(of_lock);
            let counts = !(program.is_shut_out && is_gone);
            lists
                .filter(move |_| counts)
                .any(|list| list.abs_diff(to) == 3)
        };
        self.mistake == Some(Mistake::StepLeftOut) || !programs.iter().any(uses)
    }
}

impl Model for Change {
    type World = Vec<Program>;
    type Step = Step;
    type Violation = Violation;

    fn first(&mut self) -> Vec<Program> {
        vec![Program::default(); PROGRAMS]
    }

    fn steps(&mut self, world: &Vec<Program>) -> Vec<Step> {
        let mut steps = Vec::new();
        for (number, program) in world.iter().enumerate() {
            if program.is_shut_out {
                steps.extend(program.lock.map(|_| Step::Expire(number)));
                continue;
            }
            steps.push(Step::ShutOut(number));
            match program.lock {
                None => steps.push(Step::Begin(number)),
                Some(_) => steps.push(Step::Release(number)),
            }
            let is_free = |set| !world.iter().any(|other| self.has(other).contains(&set));
            steps.extend(
                self.wants(program)
                    .filter(|set| is_free(*set))
                    .map(|_| Step::Acquire(number)),
            );
            let lists = (0..4).filter(|list| *list != program.list && self.may_move(world, *list));
            steps.extend(lists.map(|list| Step::Move(number, list)));
        }
        steps
    }

    fn take(&mut self, world: &mut Vec<Program>, step: &Step) -> Result<(), Violation> {
        match *step {
            Step::Begin(program) => world[program].lock = Some((world[program].list, 0)),
            Step::Acquire(program) => {
                world[program]
                    .lock
                    .iter_mut()
                    .for_each(|(_, count)| *count += 1);
            }
            Step::Release(program) | Step::Expire(program) => world[program].lock = None,
            Step::Move(program, list) => world[program].list = list,
            Step::ShutOut(program) => world[program].is_shut_out = true,
        }
        if world.iter().filter(|program| self.holds(program)).count() > 1 {
            return Err(Violation::TwoHolders);
        }
        let waits_for = |one: &Program, other: &Program| {
            self.wants(one)
                .is_some_and(|set| self.has(other).contains(&set))
        };
        let both = |one| {
            world
                .iter()
                .any(|it| waits_for(one, it) && waits_for(it, one))
        };
        if world.iter().any(both) {
            Err(Violation::EachWaitsForTheOther)
        } else {
            Ok(())
        }
    }

    fn key(&self, world: &Vec<Program>) -> u64 {
        hash(world)
    }
}

#[test]
fn a_name_that_moves_has_one_holder_in_all_histories_of_three_programs() {
    let states = explore::all_sound("a list changes", &mut Change::new(None), 1_000_000);
    assert_eq!(states, 172_530);
}

#[test]
fn each_part_of_the_rule_is_needed() {
    for (mistake, expected) in [
        (Mistake::StepLeftOut, Violation::TwoHolders),
        (Mistake::HeldLockForgotten, Violation::TwoHolders),
        (Mistake::ShutOutAtOnce, Violation::TwoHolders),
        (Mistake::NewSetOnly, Violation::TwoHolders),
        (Mistake::OldSetFirst, Violation::EachWaitsForTheOther),
    ] {
        let mut change = Change::new(Some(mistake));
        let rule = format!("{mistake:?}");
        let found = explore::broken(&rule, &mut change, 1_000_000, Order::Breadth);
        assert_eq!(found, expected, "{mistake:?}");
    }
}

const SETS: usize = 100;
const CLIENTS: usize = 100_000;
const NAMES: usize = 100_000;

/// The sets of the names `orders:0`, `orders:1`, and so on.
fn homes(sets: &[Set], names: usize) -> Vec<usize> {
    let index: BTreeMap<_, _> = sets
        .iter()
        .zip(0..)
        .map(|(set, index)| (&set.id, index))
        .collect();
    (0..names)
        .map(|name| index[&home(sets, &format!("orders:{name}")).id])
        .collect()
}

/// The load of the fullest set by the mean, if a name has this load.
fn fullest(homes: &[usize], load: impl Fn(usize) -> f64) -> f64 {
    let mut loads = vec![0.0; SETS];
    homes
        .iter()
        .enumerate()
        .for_each(|(name, home)| loads[*home] += load(name));
    loads.iter().copied().fold(0.0, f64::max) * SETS as f64 / loads.iter().sum::<f64>()
}

#[test]
fn names_are_spread_evenly_and_a_set_more_moves_its_share() {
    let sets = paper(SETS + 1);
    let before = homes(&sets[..SETS], NAMES);
    let after = homes(&sets, NAMES);
    for (names, most) in [(1_000, 2.5), (10_000, 1.4), (NAMES, 1.12)] {
        let even = fullest(&before[..names], |_| 1.0);
        println!("{names} names: the fullest of {SETS} sets has {even:.2} of the mean");
        assert!(even < most, "{even}");
    }
    for skew in [0.5, 1.0] {
        let load = |name: usize| (name as f64 + 1.0).powf(-skew);
        let hottest = 100.0 / (0..NAMES).map(load).sum::<f64>();
        let skewed = fullest(&before, load);
        println!(
            "Zipf {skew}: the fullest has {skewed:.2}, the hottest name {hottest:.2} % of all"
        );
        assert!(
            skewed >= hottest * SETS as f64 / 100.0,
            "a name is in one set"
        );
    }
    let moved: Vec<_> = before
        .iter()
        .zip(&after)
        .filter(|(old, new)| old != new)
        .collect();
    println!(
        "a set more moves {:.2} % of the names",
        moved.len() as f64 * 100.0 / NAMES as f64
    );
    // Removing that set moves the same names back.
    assert!(
        moved.iter().all(|(_, new)| **new == SETS),
        "all of them to the new set"
    );
    assert!(
        (800..1_200).contains(&moved.len()),
        "{} of {NAMES}",
        moved.len()
    );
}

/// Clients that each use this many names, chosen at random: how many of them use each set.
fn users(homes: &[usize], names_each: usize, chance: &mut Chance) -> Vec<usize> {
    // The last client that was counted for each set.
    let mut users = vec![0; SETS + 1];
    let mut last = vec![CLIENTS; SETS + 1];
    for client in 0..CLIENTS {
        for set in (0..names_each).map(|_| chance.pick(homes)) {
            users[set] += usize::from(last[set] != client);
            last[set] = client;
        }
    }
    users
}

/// What a node takes for a connection and the first pair on it, in microseconds: measured with
/// processes of one client each.
const SERVICE: u64 = 190;

/// The longest pause before a client connects again, and when the kernel asks again for a
/// connection for which the node had no place, in microseconds.
const PAUSE: usize = 500_000;
const RETRANSMISSION: u64 = 1_000_000;

/// How many connections may wait for a node (`tcp-backlog`).
const BACKLOG: u64 = 511;

/// Seconds until a node that can be reached again has served each of these clients, all of which
/// want a lock.
fn recovery(clients: usize, chance: &mut Chance) -> f64 {
    let mut arrivals: BinaryHeap<_> = (0..clients)
        .map(|_| Reverse(chance.below(PAUSE) as u64))
        .collect();
    let mut free_at = 0;
    while let Some(Reverse(arrival)) = arrivals.pop() {
        if free_at > arrival + BACKLOG * SERVICE {
            arrivals.push(Reverse(
                arrival + RETRANSMISSION + chance.below(PAUSE) as u64,
            ));
        } else {
            free_at = arrival.max(free_at) + SERVICE;
        }
    }
    free_at as f64 / 1e6
}

#[test]
fn a_set_that_is_down_or_new_concerns_those_who_use_its_names() {
    let sets = paper(SETS + 1);
    let mut chance = Chance::new(1);
    let before = homes(&sets[..SETS], NAMES);
    let after = homes(&sets, NAMES);
    for names_each in [1, 10, 100] {
        let most = users(&before, names_each, &mut chance)
            .into_iter()
            .max()
            .unwrap();
        let seconds = recovery(most, &mut chance);
        println!(
            "{CLIENTS} clients with {names_each} names each: the fullest set has {most} of them, \
             and has served all of them {seconds:.1} s after it is back; a set more gets {}",
            users(&after, names_each, &mut chance)[SETS],
        );
        assert!(most <= CLIENTS && seconds * 1e6 >= (most as u64 * SERVICE) as f64);
    }
}
