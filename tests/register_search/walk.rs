//! Random walks through histories that are too large for a search, each of which ends with new
//! clients and without faults.

use crate::history::Outcome;
use crate::plan::{Plan, Verb};
use crate::random::Random;
use crate::server::Server;
use crate::step::{Step, Violation};
use crate::world::World;
use std::fmt;

/// After so many rounds of one call, without faults and alone, a client is stuck.
const ROUNDS_MAX: usize = 8;

/// What happened in a number of walks.
#[derive(Debug, Default)]
pub(crate) struct Totals {
    pub(crate) walks: u64,
    pub(crate) steps: u64,
    pub(crate) made: u64,
    pub(crate) saw: u64,
    pub(crate) nothing: u64,
    pub(crate) unknown: u64,
}

impl fmt::Display for Totals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { walks, steps, made, saw, nothing, unknown } = self;
        write!(f, "{walks} walks, {steps} steps; {made} changes, {saw} looks, ")?;
        write!(f, "{nothing} calls without effect, {unknown} whose effect is unknown")
    }
}

impl Totals {
    fn count(&mut self, outcome: &Outcome) {
        match outcome {
            Outcome::Made(_) => self.made += 1,
            Outcome::Saw(_) => self.saw += 1,
            Outcome::Nothing => self.nothing += 1,
            Outcome::Unknown => self.unknown += 1,
        }
    }
}

/// How a walk goes.
struct Pace {
    /// One step in so many is any step at all; the others bring one client on.
    disorder: usize,
    /// One step in so many turns to another client.
    turns: usize,
    /// One round in so many ends with fewer answers than there are.
    losses: usize,
}

impl Pace {
    fn any(random: &mut Random) -> Self {
        Self {
            disorder: 1 + random.below(8),
            turns: 1 + random.below(12),
            losses: 2 + random.below(20),
        }
    }
}

/// Takes a walk, and notes its steps.
pub(crate) fn walk(
    plan: &Plan,
    random: &mut Random,
    server: &mut Server,
    trace: &mut Vec<Step>,
    totals: &mut Totals,
) -> Result<(), Violation> {
    let mut world = World::new(plan, server);
    let pace = Pace::any(random);
    let calls: usize = plan.clients.iter().map(Vec::len).sum();
    let length = 20 + random.below(20 * calls * plan.nodes / 3);
    let mut client = 0;
    totals.walks += 1;
    for _ in 0..length {
        if random.once_in(pace.turns) {
            client = random.below(plan.clients.len());
        }
        let step = match random.once_in(pace.disorder) {
            true => any_step(&world, plan, random, server),
            false => next_step(&world, plan, client, &pace, random),
        };
        let Some(step) = step else {
            client = random.below(plan.clients.len());
            continue;
        };
        trace.push(step);
        totals.steps += 1;
        if let Some(outcome) = world.take(step, plan, server)? {
            totals.count(&outcome);
        }
    }
    end(&world, plan, server)
}

/// What brings a client on.
fn next_step(
    world: &World,
    plan: &Plan,
    client: usize,
    pace: &Pace,
    random: &mut Random,
) -> Option<Step> {
    if world.can_begin(plan, client) {
        return Some(Step::Begin(client));
    }
    let answered = world.answered(client)?;
    let waiting: Vec<usize> = world.unanswered(client)?.collect();
    let is_decided = answered.count_ones() as usize >= world.quorum();
    if waiting.is_empty() || is_decided && random.once_in(2) {
        let heard = match random.once_in(pace.losses) {
            true => answered & random.next() as u8,
            false => answered,
        };
        return Some(Step::Hear(client, heard));
    }
    Some(Step::Arrive(client, random.choose(&waiting)))
}

/// Anything that can happen, most of it seldom without faults.
fn any_step(world: &World, plan: &Plan, random: &mut Random, server: &mut Server) -> Option<Step> {
    let client = random.below(plan.clients.len());
    let node = random.below(plan.nodes);
    match random.below(8) {
        0 => world.can_begin(plan, client).then_some(Step::Begin(client)),
        1 => {
            let answered = world.answered(client)?;
            let is_decided = answered.count_ones() as usize >= world.quorum();
            let heard = if random.once_in(2) { answered } else { answered & random.next() as u8 };
            (is_decided || random.once_in(8)).then_some(Step::Hear(client, heard))
        }
        2 | 3 => {
            let waiting: Vec<usize> = world.unanswered(client)?.collect();
            (!waiting.is_empty()).then(|| Step::Arrive(client, random.choose(&waiting)))
        }
        4 if random.once_in(8) => world.can_lose(node).then_some(Step::Lose(node)),
        _ => {
            let commands = world.sent.iter();
            let late = commands.filter(|command| world.matters(**command, node, server));
            let late: Vec<_> = late.copied().collect();
            (!late.is_empty()).then(|| Step::Again(random.choose(&late), node))
        }
    }
}

/// Faults stop: each majority of the nodes that have kept their keys serves a new client.
pub(crate) fn end(world: &World, plan: &Plan, server: &mut Server) -> Result<(), Violation> {
    let majorities = (0..1_u8 << plan.nodes)
        .filter(|nodes| nodes.count_ones() as usize == world.quorum() && nodes & world.lost() == 0);
    for nodes in majorities {
        for register in 0..plan.registers {
            serve(world.clone(), nodes, register, plan, server)?;
        }
    }
    Ok(())
}

/// A new client reads and changes a register, alone and on these nodes only.
fn serve(
    mut world: World,
    nodes: u8,
    register: u8,
    plan: &Plan,
    server: &mut Server,
) -> Result<(), Violation> {
    let client = world.join(plan.registers);
    let plan = Plan { rounds_max: ROUNDS_MAX, ..plan.clone() };
    for verb in [Verb::Read, Verb::Append, Verb::Append, Verb::Read] {
        let mut ended = world.begin(client, (verb, register), &plan, server)?;
        while let (None, Some(_)) = (&ended, world.answered(client)) {
            for node in (0..plan.nodes).filter(|node| nodes >> node & 1 == 1) {
                world.take(Step::Arrive(client, node), &plan, server)?;
            }
            ended = world.take(Step::Hear(client, nodes), &plan, server)?;
        }
        match (verb.looks(), ended) {
            (true, Some(Outcome::Saw(_))) | (false, Some(Outcome::Made(_))) => {}
            _ => return Err(Violation::Stuck),
        }
    }
    Ok(())
}
