//! A depth-first search through the states of a plan.

use crate::plan::Plan;
use crate::server::Server;
use crate::step::{Step, Violation};
use crate::world::World;
use std::collections::HashSet;

/// The result of a search.
#[derive(Debug)]
pub(crate) enum Found {
    /// No violation in this many states: all states, or the maximum.
    Nothing { states: usize, all: bool },
    /// A violation, and the steps to it.
    Violation { what: Violation, trace: Vec<Step> },
}

/// A state whose next steps are searched.
struct Frame {
    world: World,
    steps: Vec<Step>,
    /// The step that led here.
    last: Option<Step>,
}

/// Searches up to `most` states.
pub(crate) fn search(plan: &Plan, most: usize, server: &mut Server) -> Found {
    let first = World::new(plan, server);
    // States are remembered by their hash. A collision, which is about one in billions, means that
    // a state is not searched.
    let mut seen = HashSet::from([first.hash()]);
    let begun = steps(&first, plan, server);
    let mut path = vec![Frame { world: first, steps: begun, last: None }];
    while let Some(frame) = path.last_mut() {
        let Some(step) = frame.steps.pop() else {
            path.pop();
            continue;
        };
        let mut world = frame.world.clone();
        if let Err(what) = world.take(step, plan, server) {
            let trace = path.iter().filter_map(|frame| frame.last).chain([step]).collect();
            return Found::Violation { what, trace };
        }
        if !seen.insert(world.hash()) {
            continue;
        }
        if seen.len() >= most {
            return Found::Nothing { states: seen.len(), all: false };
        }
        let next = steps(&world, plan, server);
        path.push(Frame { world, steps: next, last: Some(step) });
    }
    Found::Nothing { states: seen.len(), all: true }
}

/// Everything that can happen next.
fn steps(world: &World, plan: &Plan, server: &mut Server) -> Vec<Step> {
    let mut steps = Vec::new();
    for node in (0..plan.nodes).filter(|node| world.can_lose(*node, plan)) {
        steps.push(Step::Lose(node));
    }
    for node in 0..plan.nodes {
        let late = world.sent.to(node).filter(|command| world.matters(*command, node, server));
        steps.extend(late.map(|command| Step::Again(command, node)));
    }
    for (actor, round) in world.rounds.iter().enumerate() {
        if world.can_begin(plan, actor) {
            steps.push(Step::Begin(actor));
        }
        let Some(round) = round else { continue };
        let answered = round.answered();
        let heard = (0..=answered).filter(|heard| heard & !answered == 0);
        steps.extend(heard.map(|heard| Step::Hear(actor, heard)));
        steps.extend(round.unanswered().map(|node| Step::Arrive(actor, node)));
    }
    steps
}
