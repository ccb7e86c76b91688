//! All schedules of a transaction, of the library's own steps: a request to take part may come late
//! and twice, a side may die and come back at any step, and a change of the record is heard,
//! unheard, late or never made. A side may be several processes, each of which may stop before any
//! step while the others go on: one takes part, others recover, or all take part. One process may
//! have all sides, and begin it.
//!
//! In every state: no side has committed while another has rolled back, none has committed twice,
//! and nobody was told that it is aborted while a side has committed, or commits later. From every
//! state: each side that is prepared comes to its end alone, and when all have started again, all
//! have ended in the same way, and no record is left.

#![expect(
    clippy::unwrap_used,
    reason = "a record that cannot be made fails the test"
)]

mod mistake;
mod schedules;
mod whole;
mod world;

use mistake::Mistake;
use models::explore::{Model, hash};
use redlatch_registers::transaction::{Disk, JoinStep, TransactionSide};
use whole::{SharedChange, Whole};
use world::{Change, Place, World};

/// What can happen next, to a process.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    Begin,
    /// It is asked to take part.
    Ask(Place),
    StartAgain(Place),
    Crash(Place),
    /// The answer that it waits for is lost. What was sent may take effect anyway.
    LoseAnswer(Place),
    /// It does what is next.
    Go(Place),
    Refuse(Place),
    LosePatience(Place),
    RollBackAlone(Place),
    /// A change that it has sent takes effect, unheard, perhaps long after it has given up.
    Change(Place, Change),
    /// The same, and it hears the answer.
    ChangeAndTell(Place, Change),
    /// A recovery aborts what it has found waiting for a vote.
    AbortUnknown,
    /// The same of the process that has all sides.
    GoWhole,
    RefuseWhole,
    CrashWhole,
    LoseAnswerOfWhole,
    ChangeShared(SharedChange),
    ChangeSharedAndTell(SharedChange),
}

#[derive(Clone)]
struct Search {
    mistake: Mistake,
    /// How many processes each side has.
    processes: Vec<usize>,
    /// How often each side is asked to take part, and dies.
    asks: u8,
    crashes: u8,
    recovers: bool,
    /// Does a participant refuse to prepare what it has committed and forgotten?
    keeps_ids: bool,
    /// Does one process have all sides? It is the first process of each.
    has_whole: bool,
    /// Does the first process of the first side begin it, and join without a look?
    is_begun_by_side: bool,
}

/// Each side is one process.
const ONE_EACH: Search = Search {
    mistake: Mistake::None,
    processes: Vec::new(),
    asks: 2,
    crashes: 1,
    recovers: true,
    keeps_ids: false,
    has_whole: false,
    is_begun_by_side: false,
};

impl Model for Search {
    type World = World;
    type Step = Step;
    type Violation = &'static str;

    fn first(&mut self) -> World {
        World::new(&self.processes)
    }

    fn steps(&mut self, world: &World) -> Vec<Step> {
        if !world.has_begun {
            return vec![Step::Begin];
        }
        let mut steps = Vec::new();
        self.steps_of_whole(world, &mut steps);
        for (index, side) in world.sides.iter().enumerate() {
            for (number, process) in side.processes.iter().enumerate() {
                let at = Place {
                    side: index,
                    process: number,
                };
                self.steps_of(world, at, &mut steps);
                for change in &process.sent {
                    steps.push(Step::Change(at, *change));
                    if process.awaits && awaited(process.joining.as_ref()) == Some(*change) {
                        steps.push(Step::ChangeAndTell(at, *change));
                    }
                }
            }
            if side.processes.len() > 1 && world.waits_for(index) && self.recovers {
                steps.push(Step::AbortUnknown);
            }
        }
        steps
    }

    fn take(&mut self, world: &mut World, step: &Step) -> Result<(), &'static str> {
        let mistake = self.mistake;
        match step.clone() {
            Step::Begin => {
                world.begin();
                world.whole = self.has_whole.then(|| Whole::new(world.sides.len()));
                world.is_known_open = self.is_begun_by_side;
                if mistake == Mistake::BegunWithVotes {
                    world.record = None;
                }
            }
            Step::Ask(at) => {
                let is_beginner = (at.side, at.process) == (0, 0);
                let is_known_open = is_beginner && std::mem::take(&mut world.is_known_open);
                let side = &mut world.sides[at.side];
                side.asked += 1;
                let joining = match (is_known_open, side.disk) {
                    (true, Disk::Nothing) => TransactionSide::begun(),
                    (_, disk) => TransactionSide::join(disk),
                };
                side.processes[at.process].joining = Some(joining);
            }
            Step::StartAgain(at) => world.start_again(at, mistake),
            Step::Crash(at) => {
                world.process(at).stop();
                world.sides[at.side].crashes += 1;
            }
            Step::LoseAnswer(at) => {
                let process = world.process(at);
                process.awaits = false;
                process.joining = process
                    .joining
                    .take()
                    .filter(|it| it.step() != JoinStep::Finish);
            }
            Step::Go(at) => world.step(at, mistake, self.keeps_ids),
            Step::Refuse(at) => world.refuse(at, mistake),
            Step::LosePatience(at) => world.joining(at).lose_patience(),
            Step::RollBackAlone(at) => {
                world.process(at).joining = None;
                let side = &mut world.sides[at.side];
                side.disk = Disk::Nothing;
                side.undone = 1;
            }
            Step::Change(at, change) => _ = world.arrive(at, change, mistake),
            Step::ChangeAndTell(at, change) => {
                let told = world.arrive(at, change, mistake);
                world.tell(at, told, mistake);
            }
            Step::AbortUnknown => world.abort(),
            Step::GoWhole => world.step_whole(mistake),
            Step::RefuseWhole => world.whole.as_mut().expect("it runs").refuse(),
            Step::CrashWhole => world.whole = None,
            Step::LoseAnswerOfWhole => world.whole.as_mut().expect("it runs").lose_answer(),
            Step::ChangeShared(change) => world.arrive_shared(&change, false, mistake),
            Step::ChangeSharedAndTell(change) => world.arrive_shared(&change, true, mistake),
        }
        Ok(())
    }

    fn key(&self, world: &World) -> u64 {
        hash(world)
    }

    fn check(&mut self, world: &World, _: &[Step], _: usize) -> Result<(), &'static str> {
        let at_the_end = || {
            self.recovers
                .then(|| self.wrong_at_the_end(world))
                .flatten()
        };
        self.wrong(world).or_else(at_the_end).map_or(Ok(()), Err)
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
    /// What one process does.
    fn steps_of(&self, world: &World, at: Place, steps: &mut Vec<Step>) {
        let side = &world.sides[at.side];
        let process = &side.processes[at.process];
        let Some(joining) = &process.joining else {
            if at.process == 0 && world.whole.is_some() {
                return;
            }
            steps.extend((side.asked < self.asks).then_some(Step::Ask(at)));
            let recovers = self.recovers && side.disk != Disk::Nothing;
            steps.extend(recovers.then_some(Step::StartAgain(at)));
            return;
        };
        steps.extend((side.crashes < self.crashes).then_some(Step::Crash(at)));
        if process.awaits {
            return steps.push(Step::LoseAnswer(at));
        }
        steps.push(Step::Go(at));
        match joining.step() {
            JoinStep::Prepare => steps.push(Step::Refuse(at)),
            step @ (JoinStep::Vote | JoinStep::Wait) => {
                if self.mistake != Mistake::OnlyStarterDecides {
                    steps.push(Step::LosePatience(at));
                }
                if self.mistake == Mistake::AbortAlone && step == JoinStep::Wait {
                    steps.push(Step::RollBackAlone(at));
                }
            }
            _ => {}
        }
    }

    /// What the process does that has all sides, and what becomes of what it has sent.
    fn steps_of_whole(&self, world: &World, steps: &mut Vec<Step>) {
        for change in &world.shared {
            steps.push(Step::ChangeShared(change.clone()));
        }
        let Some(whole) = &world.whole else {
            return;
        };
        steps.push(Step::CrashWhole);
        match &whole.awaited {
            Some(change) => {
                steps.push(Step::LoseAnswerOfWhole);
                if world.shared.contains(change) {
                    steps.push(Step::ChangeSharedAndTell(change.clone()));
                }
            }
            None => {
                steps.push(Step::GoWhole);
                if whole.may_refuse() {
                    steps.push(Step::RefuseWhole);
                }
            }
        }
    }

    fn wrong(&self, world: &World) -> Option<&'static str> {
        let is_applied = world.sides.iter().any(|side| side.applied > 0);
        if is_applied
            && world
                .sides
                .iter()
                .any(|side| side.undone > 0 && side.applied == 0)
        {
            return Some("one has committed, another has rolled back");
        }
        if world.sides.iter().any(|side| side.applied > 1) {
            return Some("committed twice");
        }
        if world.is_told_wrong() {
            return Some("told as aborted, and committed");
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
            if all.waits_for(index) {
                all.abort();
            }
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
