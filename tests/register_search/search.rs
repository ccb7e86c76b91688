//! What the search through the states of a plan needs, and shorter ways to the same violation.

use crate::end::end;
use crate::history::Outcome;
use crate::plan::Plan;
use crate::server::Server;
use crate::step::{Step, Violation};
use crate::world::World;
use models::Change;
use models::explore::{self, Model};

/// A plan, and what runs the commands of its nodes.
pub(crate) struct Search {
    pub(crate) plan: Plan,
    pub(crate) server: Server,
    /// Of the last step, if a call has ended with it.
    outcome: Option<Outcome>,
}

impl Search {
    /// With nodes that have these mistakes.
    pub(crate) fn new(plan: Plan, changes: &[Change]) -> Self {
        Self {
            plan,
            server: Server::new(changes),
            outcome: None,
        }
    }
}

impl Model for Search {
    type World = World;
    type Step = Step;
    type Violation = Violation;

    fn first(&mut self) -> World {
        World::new(&self.plan, &mut self.server)
    }

    fn steps(&mut self, world: &World) -> Vec<Step> {
        let plan = &self.plan;
        let mut steps = Vec::new();
        for node in (0..plan.nodes).filter(|node| world.can_lose(*node, plan)) {
            steps.push(Step::Lose(node));
        }
        for node in 0..plan.nodes {
            let late = world
                .sent
                .to(node)
                .filter(|it| world.matters(*it, node, &mut self.server));
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
        self.outcome = world.take(*step, &self.plan, &mut self.server)?;
        Ok(())
    }

    fn key(&self, world: &World) -> u64 {
        world.hash()
    }

    fn allows(&mut self, world: &World, step: &Step) -> bool {
        match *step {
            // Only walks take it.
            Step::Restart(node, older) => {
                world.can_lose(node, &self.plan) && older < world.older(node)
            }
            _ => self.steps(world).contains(step),
        }
    }

    fn shorter(&mut self, what: &Violation, trace: &[Step]) -> Vec<Step> {
        explore::shorten(self, what, trace, |search, world| {
            end(world, &search.plan, &mut search.server) == Err(*what)
        })
    }

    fn describe(&mut self, world: &World, step: &Step) -> String {
        let concerned = match *step {
            Step::Begin(actor) => format!("{:?}", world.next_call(&self.plan, actor)),
            Step::Again(command, _) => format!("{:?}", self.server.asked(command)),
            Step::Arrive(actor, node) => {
                let asked = world.asked(actor, node, &self.server);
                asked.map_or("its names".to_owned(), |asked| format!("{asked:?}"))
            }
            _ => return format!("{step:?}"),
        };
        format!("{step:?}: {concerned}")
    }

    fn changes(&mut self, before: &World, after: &World) -> Vec<String> {
        let nodes = before.nodes.iter().zip(&after.nodes).enumerate();
        let mut changes: Vec<String> = nodes
            .filter(|(_, (old, new))| old != new)
            .map(|(node, (_, new))| format!("node {node}: {}", self.server.tell(*new)))
            .collect();
        changes.extend(self.outcome.take().map(|outcome| format!("{outcome:?}")));
        changes
    }
}
