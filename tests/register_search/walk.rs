//! Random walks through histories that are too large for a search, each of which ends with new
//! clients and without faults.

use crate::end::end;
use crate::history::Outcome;
use crate::plan::Plan;
use crate::search::Search;
use crate::server::Server;
use crate::step::{Step, Violation};
use crate::world::World;
use models::explore;
use models::walk::Walker;
use models::{Chance, Change};
use std::fmt;

/// What happened in a number of walks.
#[derive(Debug, Default)]
pub(crate) struct Totals {
    pub(crate) walks: u64,
    pub(crate) steps: u64,
    pub(crate) made: u64,
    pub(crate) saw: u64,
    pub(crate) nothing: u64,
    pub(crate) unknown: u64,
    /// How many nodes were given a vote.
    pub(crate) repairs: u64,
}

impl fmt::Display for Totals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            walks,
            steps,
            made,
            saw,
            nothing,
            unknown,
            repairs,
        } = self;
        write!(
            f,
            "{walks} walks, {steps} steps; {made} changes, {saw} looks, "
        )?;
        write!(
            f,
            "{nothing} calls without effect, {unknown} whose effect is unknown, {repairs} repairs"
        )
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
    /// One step in this many is any step at all; the others bring one client on.
    disorder: usize,
    /// One step in this many turns to another client.
    turns: usize,
    /// One round in this many ends with fewer answers than there are.
    losses: usize,
}

impl Pace {
    fn any(plan: &Plan, random: &mut Chance) -> Self {
        // A repair takes many rounds, and most of them must be heard.
        let longer = if plan.repairers.is_empty() { 1 } else { 4 };
        Self {
            disorder: longer + random.below(8 * longer),
            turns: longer + random.below(12 * longer * longer),
            losses: 2 * longer + random.below(20 * longer),
        }
    }
}

/// So many transitions are remembered from one walk to the next.
const SEEN_MAX: usize = 500_000;

/// Walks, each through histories of the plan that is drawn for it.
pub(crate) struct Walks<D> {
    draw: D,
    changes: Vec<Change>,
    search: Search,
    /// The steps of the last walk.
    trace: Vec<Step>,
}

impl<D: Fn(&mut Chance) -> Plan> Walks<D> {
    /// With nodes that have these mistakes.
    pub(crate) fn new(draw: D, changes: Vec<Change>) -> Self {
        Self {
            draw,
            search: Search::new(Plan::new(&[]), &changes),
            changes,
            trace: Vec::new(),
        }
    }
}

impl<D: Fn(&mut Chance) -> Plan> Walker for Walks<D> {
    type Violation = Violation;
    type Totals = Totals;

    fn walk(&mut self, random: &mut Chance, totals: &mut Totals) -> Result<(), Violation> {
        let Search { plan, server, .. } = &mut self.search;
        if server.seen() > SEEN_MAX {
            *server = Server::new(&self.changes);
        }
        *plan = (self.draw)(random);
        self.trace.clear();
        walk(plan, random, server, &mut self.trace, totals)
    }

    fn tell(&mut self, what: &Violation) -> String {
        let story = explore::story(&mut self.search, what, &self.trace);
        format!("{:?}\n{story}", self.search.plan)
    }
}

/// Takes a walk, and notes its steps.
fn walk(
    plan: &Plan,
    random: &mut Chance,
    server: &mut Server,
    trace: &mut Vec<Step>,
    totals: &mut Totals,
) -> Result<(), Violation> {
    let mut world = World::new(plan, server);
    let pace = Pace::any(plan, random);
    let calls: usize = plan.clients.iter().map(Vec::len).sum();
    // A repair takes many rounds, most of them with one node.
    let begin = 20 + 120 * plan.repairers.len();
    let length = begin + random.below((20 * calls + begin) * plan.nodes / 3);
    let mut actor = 0;
    totals.walks += 1;
    for _ in 0..length {
        if random.one_in(pace.turns) {
            actor = any_actor(plan, random);
        }
        let step = match random.one_in(pace.disorder) {
            true => any_step(&world, plan, random, server),
            false => next_step(&world, plan, actor, &pace, random),
        };
        let Some(step) = step else {
            actor = any_actor(plan, random);
            continue;
        };
        trace.push(step);
        totals.steps += 1;
        if let Some(outcome) = world.take(step, plan, server)? {
            totals.count(&outcome);
        }
    }
    totals.repairs += world.repairs();
    end(&world, plan, server)
}

/// A client, or a repairer as often as not.
fn any_actor(plan: &Plan, random: &mut Chance) -> usize {
    let clients = plan.clients.len();
    match plan.repairers.len() {
        repairers @ 1.. if random.one_in(2) => clients + random.below(repairers),
        _ => random.below(clients),
    }
}

/// What brings an actor on.
fn next_step(
    world: &World,
    plan: &Plan,
    actor: usize,
    pace: &Pace,
    random: &mut Chance,
) -> Option<Step> {
    if world.can_begin(plan, actor) {
        return Some(Step::Begin(actor));
    }
    let round = world.rounds[actor].as_ref()?;
    let waiting: Vec<usize> = round.unanswered().collect();
    if waiting.is_empty() || round.is_decided() && random.one_in(2) {
        let heard = match random.one_in(pace.losses) {
            true => round.answered() & random.number() as u8,
            false => round.answered(),
        };
        return Some(Step::Hear(actor, heard));
    }
    Some(Step::Arrive(actor, random.pick(&waiting)))
}

/// Anything that can happen, most of it seldom without faults.
fn any_step(world: &World, plan: &Plan, random: &mut Chance, server: &mut Server) -> Option<Step> {
    let actor = any_actor(plan, random);
    // What happens twice to one node is worse than what happens to two.
    let node = match world.lost {
        lost @ 1.. if !plan.repairers.is_empty() && random.one_in(2) => {
            lost.trailing_zeros() as usize
        }
        _ => random.below(plan.nodes),
    };
    match random.below(8) {
        0 => world.can_begin(plan, actor).then_some(Step::Begin(actor)),
        1 => {
            let round = world.rounds[actor].as_ref()?;
            let answered = round.answered();
            let heard = if random.one_in(2) {
                answered
            } else {
                answered & random.number() as u8
            };
            (round.is_decided() || random.one_in(8)).then_some(Step::Hear(actor, heard))
        }
        2 | 3 => {
            let waiting: Vec<usize> = world.rounds[actor].as_ref()?.unanswered().collect();
            (!waiting.is_empty()).then(|| Step::Arrive(actor, random.pick(&waiting)))
        }
        4 if plan.repairers.is_empty() && random.one_in(8) || !plan.repairers.is_empty() => world
            .can_lose(node, plan)
            .then(|| match plan.comes_back_older && !random.one_in(3) {
                true => Step::Restart(node, random.below(world.older(node))),
                false => Step::Lose(node),
            }),
        _ => {
            let late = world.sent.to(node);
            let late: Vec<_> = late.filter(|it| world.matters(*it, node, server)).collect();
            (!late.is_empty()).then(|| Step::Again(random.pick(&late), node))
        }
    }
}
