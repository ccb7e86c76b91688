//! A history in words, and shorter ones with the same violation.

use crate::plan::Plan;
use crate::server::Server;
use crate::shorter;
use crate::step::{Step, Violation};
use crate::walk;
use crate::world::World;

/// Describes the steps, and what each of them has changed.
pub(crate) fn tell(plan: &Plan, trace: &[Step], server: &mut Server) -> String {
    let mut world = World::new(plan, server);
    let mut story = format!("{plan:?}\n");
    for step in trace {
        story += &format!("  {step:?}");
        match *step {
            Step::Begin(client) => story += &format!(": {:?}", world.next_call(plan, client)),
            Step::Again(command, _) => story += &format!(": {:?}", server.asked(command)),
            Step::Arrive(client, _) => story += &format!(": {:?}", world.asked(client, server)),
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
    shorter::ways(trace, |steps| repeat(plan, what, steps, server))
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
    (walk::end(&world, plan, server) == Err(what)).then_some(taken)
}

fn is_possible(world: &World, step: Step, plan: &Plan, server: &mut Server) -> bool {
    match step {
        Step::Begin(client) => world.can_begin(plan, client),
        Step::Arrive(client, node) => {
            world.unanswered(client).is_some_and(|mut nodes| nodes.any(|it| it == node))
        }
        Step::Again(command, node) => {
            world.sent.contains(&command) && world.matters(command, node, server)
        }
        Step::Hear(client, heard) => {
            world.answered(client).is_some_and(|answered| heard & !answered == 0)
        }
        Step::Lose(node) => world.can_lose(node),
    }
}
