//! A history in words, and shorter ones with the same violation.

use crate::end::end;
use crate::plan::Plan;
use crate::server::Server;
use crate::step::{Step, Violation};
use crate::world::World;
use models::ways;

/// Describes the steps, and what each of them has changed.
pub(crate) fn tell(plan: &Plan, trace: &[Step], server: &mut Server) -> String {
    let mut world = World::new(plan, server);
    let mut story = format!("{plan:?}\n");
    for step in trace {
        story += &format!("  {step:?}");
        match *step {
            Step::Begin(actor) => story += &format!(": {:?}", world.next_call(plan, actor)),
            Step::Again(command, _) => story += &format!(": {:?}", server.asked(command)),
            Step::Arrive(actor, node) => {
                let asked = world.asked(actor, node, server);
                story += &asked.map_or(": its names".to_owned(), |asked| format!(": {asked:?}"));
            }
            _ => {}
        }
        let before = world.clone();
        let taken = world.take(*step, plan, server);
        for (node, (old, new)) in before.nodes.iter().zip(&world.nodes).enumerate() {
            if old != new {
                story += &format!("\n      node {node}: {}", server.tell(*new));
            }
        }
        if let Ok(Some(outcome)) = &taken {
            story += &format!("\n      {outcome:?}");
        }
        story += "\n";
        if let Err(what) = taken {
            story += &format!("  {what:?}\n");
            break;
        }
    }
    story
}

/// Leaves out steps as long as what remains leads to the same violation.
pub(crate) fn shrink(
    plan: &Plan,
    what: Violation,
    trace: &[Step],
    server: &mut Server,
) -> Vec<Step> {
    ways(trace, |steps| repeat(plan, what, steps, server))
}

/// Takes the steps, without those that are not possible any more. Returns those that were taken if
/// they lead to the violation.
fn repeat(plan: &Plan, what: Violation, trace: &[Step], server: &mut Server) -> Option<Vec<Step>> {
    let mut world = World::new(plan, server);
    let mut taken = Vec::new();
    for step in trace {
        if !is_possible(&world, *step, plan, server) {
            continue;
        }
        taken.push(*step);
        if let Err(found) = world.take(*step, plan, server) {
            return (found == what).then_some(taken);
        }
    }
    (end(&world, plan, server) == Err(what)).then_some(taken)
}

fn is_possible(world: &World, step: Step, plan: &Plan, server: &mut Server) -> bool {
    let round = |actor: usize| world.rounds[actor].as_ref();
    match step {
        Step::Begin(actor) => world.can_begin(plan, actor),
        Step::Arrive(actor, node) => {
            round(actor).is_some_and(|round| round.unanswered().any(|it| it == node))
        }
        Step::Again(command, node) => {
            world.sent.to(node).any(|it| it == command) && world.matters(command, node, server)
        }
        Step::Hear(actor, heard) => {
            round(actor).is_some_and(|round| heard & !round.answered() == 0)
        }
        Step::Lose(node) => world.can_lose(node, plan),
        Step::Restart(node, older) => world.can_lose(node, plan) && older < world.older(node),
    }
}
