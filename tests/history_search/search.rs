//! The search as a model: its first state, the steps from each, and what may not be.

use crate::node::Node;
use crate::scheme::Scheme;
use crate::world::{Step, Violation, World};
use models::explore::{Model, hash};

/// A scheme, and what runs the commands of its servers.
pub(crate) struct Search {
    pub(crate) scheme: Scheme,
    pub(crate) node: Node,
}

impl Search {
    pub(crate) fn new(scheme: Scheme) -> Self {
        Self {
            scheme,
            node: Node::new(&scheme),
        }
    }
}

impl Model for Search {
    type World = World;
    type Step = Step;
    type Violation = Violation;

    fn first(&mut self) -> World {
        World::new(&self.scheme, &mut self.node)
    }

    fn steps(&mut self, world: &World) -> Vec<Step> {
        world.steps(&self.scheme)
    }

    fn take(&mut self, world: &mut World, step: &Step) -> Result<(), Violation> {
        world.take(*step, &self.scheme, &mut self.node)
    }

    fn key(&self, world: &World) -> u64 {
        hash(&format!("{world:?}"))
    }

    fn describe(&mut self, world: &World, step: &Step) -> String {
        format!("{} {step:?}", world.now)
    }

    fn changes(&mut self, before: &World, after: &World) -> Vec<String> {
        let holders = after.holders();
        let has_changed = before.holders() != holders;
        has_changed
            .then(|| format!("{holders} holders"))
            .into_iter()
            .collect()
    }
}
