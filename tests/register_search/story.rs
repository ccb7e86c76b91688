//! A history in words.

use crate::plan::Plan;
use crate::server::Server;
use crate::step::Step;
use crate::world::World;

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
