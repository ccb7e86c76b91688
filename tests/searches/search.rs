//! What the search through all states of a scheme needs, and shorter ways to the same violation.

use crate::fair;
use crate::scheme::Scheme;
use crate::violation::Violation;
use crate::world::{Step, World};
use models::Chance;
use models::explore::{self, Model};

impl Model for Scheme {
    type World = World;
    type Step = Step;
    type Violation = Violation;

    fn first(&mut self) -> World {
        World::new(self)
    }

    fn steps(&mut self, world: &World) -> Vec<Step> {
        let mut steps = Vec::new();
        world.steps(&mut steps);
        world.looks(self, &mut steps);
        world.faults(self, &mut steps);
        steps
    }

    fn take(&mut self, world: &mut World, step: &Step) -> Result<(), Violation> {
        world.take(*step, self)
    }

    fn key(&self, world: &World) -> u64 {
        explore::hash(&world.sorted())
    }

    /// Where faults are possible, one state in 64 is followed to its end on a fair schedule; where
    /// they are not, each state without a next one must be a good end.
    fn check(&mut self, world: &World, steps: &[Step], number: usize) -> Result<(), Violation> {
        let is_end = steps.iter().all(|step| matches!(step, Step::Fault(_)));
        if self.faults_max > 0 {
            let is_sampled = is_end || number % 64 == 0;
            return if is_sampled {
                end(self, world, number as u64).0
            } else {
                Ok(())
            };
        }
        match is_end {
            true if !world.is_over() => Err(Violation::WaitsForEver),
            true if !world.is_clean() => Err(Violation::Residue),
            _ => Ok(()),
        }
    }

    /// With the fair schedule on which it ends so, if it needs one.
    fn shorter(&mut self, what: &Violation, trace: &[Step]) -> Vec<Step> {
        // A history that does not need a fair schedule to its end is easier to follow.
        let needs_end = trace.iter().try_fold(World::new(self), taken(self)).is_ok();
        let mut shorter = explore::shorten(self, what, trace, |scheme, world| {
            needs_end && bad_end(scheme, *what, world).is_some()
        });
        if let Ok(world) = shorter.iter().try_fold(World::new(self), taken(self)) {
            shorter.extend(bad_end(self, *what, &world).unwrap_or_default());
        }
        shorter
    }

    fn describe(&mut self, world: &World, step: &Step) -> String {
        match *step {
            Step::Carry(node, client) => {
                let command = world.sites[node].links[client].commands.first();
                format!(
                    "node {node} carries out {:?}",
                    command.map(|command| command.request)
                )
            }
            Step::Receive(node, client) => {
                let reply = world.sites[node].links[client].replies.first();
                format!("client {client} receives from node {node}: {reply:?}")
            }
            other => format!("{other:?}"),
        }
    }

    fn changes(&mut self, before: &World, after: &World) -> Vec<String> {
        let mut changes = Vec::new();
        for (node, (old, new)) in before.sites.iter().zip(&after.sites).enumerate() {
            if old.node != new.node {
                changes.push(format!("node {node}: {:?}", new.node));
            }
        }
        for (client, (old, new)) in before.clients.iter().zip(&after.clients).enumerate() {
            if old.phase != new.phase {
                changes.push(format!("client {client}: {:?}", new.phase));
            }
        }
        changes
    }
}

/// How the world ends on the fair schedule of this seed, and the steps.
fn end(scheme: &Scheme, world: &World, seed: u64) -> (Result<(), Violation>, Vec<Step>) {
    let mut random = Chance::new(seed);
    let mut steps = Vec::new();
    let ended = fair::run(world.clone(), scheme, &mut random, &mut steps);
    (ended.map(|_| ()), steps)
}

/// How many fair schedules are tried at the end of a history.
const SCHEDULES: u64 = 8;

/// A fair schedule on which the world ends so.
fn bad_end(scheme: &Scheme, what: Violation, world: &World) -> Option<Vec<Step>> {
    let mut ends = (0..SCHEDULES).map(|seed| end(scheme, world, seed));
    ends.find_map(|(ended, steps)| (ended == Err(what)).then_some(steps))
}

/// The world after one more step.
fn taken(scheme: &Scheme) -> impl Fn(World, &Step) -> Result<World, Violation> {
    |mut world, step| world.take(*step, scheme).map(|()| world)
}
