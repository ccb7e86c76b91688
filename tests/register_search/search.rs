//! What the search through the states of a plan needs, and shorter ways to the same violation.

use crate::end::end;
use crate::plan::Plan;
use crate::server::Server;
use crate::step::{Step, Violation};
use crate::world::World;
use models::explore::{self, Model};

/// A plan, and what runs the commands of its nodes.
pub(crate) struct Search<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) server: &'a mut Server,
}

impl Model for Search<'_> {
    type World = World;
    type Step = Step;
    type Violation = Violation;

    fn first(&mut self) -> World {
        World::new(self.plan, self.server)
    }

    fn steps(&mut self, world: &World) -> Vec<Step> {
        let plan = self.plan;
        let mut steps = Vec::new();
        for node in (0..plan.nodes).filter(|node| world.can_lose(*node, plan)) {
            steps.push(Step::Lose(node));
        }
        for node in 0..plan.nodes {
            let late = world
                .sent
                .to(node)
                .filter(|it| world.matters(*it, node, self.server));
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

    fn take(&mut self, world: &mut World, step: &Step) -> Result<(), Violation> {
        world.take(*step, self.plan, self.server).map(|_| ())
    }

    fn key(&self, world: &World) -> u64 {
        world.hash()
    }

    fn allows(&mut self, world: &World, step: &Step) -> bool {
        match *step {
            // Only walks take it.
            Step::Restart(node, older) => {
                world.can_lose(node, self.plan) && older < world.older(node)
            }
            _ => self.steps(world).contains(step),
        }
    }
}

/// Leaves out steps as long as what remains leads to the same violation.
pub(crate) fn shrink(
    plan: &Plan,
    what: Violation,
    trace: &[Step],
    server: &mut Server,
) -> Vec<Step> {
    explore::shorten(
        &mut Search { plan, server },
        &what,
        trace,
        |search, world| end(world, plan, search.server) == Err(what),
    )
}
