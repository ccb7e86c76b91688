//! The search as a model: its first state, the steps from each, and what may not be.

use crate::client::Client;
use crate::group::Group;
use crate::node::Node;
use crate::scheme::Scheme;
use crate::world::{Step, World};
use models::explore::{Model, hash};

/// Two clients hold the lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TwoHolders;

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
    type Violation = TwoHolders;

    fn first(&mut self) -> World {
        let Scheme {
            groups,
            servers,
            clients,
            faults,
            ..
        } = self.scheme;
        let epoch = u8::from(self.scheme.has_epochs);
        let run = |group| (1 + group * servers) as u8;
        World {
            now: self.scheme.start(),
            groups: (0..groups)
                .map(|group| Group::new(servers, run(group), epoch, &mut self.node))
                .collect(),
            clients: vec![Client::new(groups); clients],
            late: Vec::new(),
            names: run(groups),
            tokens: 0,
            left: faults,
        }
    }

    fn steps(&mut self, world: &World) -> Vec<Step> {
        let mut steps = Vec::new();
        if world.now < self.scheme.start() + self.scheme.ticks {
            steps.push(Step::Tick);
        }
        for group in 0..world.groups.len() {
            world.steps_of_group(group, &mut steps);
        }
        for client in 0..world.clients.len() {
            world.steps_of_client(client, &self.scheme, &mut steps);
        }
        steps.extend((0..world.late.len()).map(Step::Late));
        steps
    }

    fn take(&mut self, world: &mut World, step: &Step) -> Result<(), TwoHolders> {
        world.take(*step, &self.scheme, &mut self.node);
        if world.holders() > 1 {
            Err(TwoHolders)
        } else {
            Ok(())
        }
    }

    /// The order of clients makes no difference.
    fn key(&self, world: &World) -> u64 {
        let mut clients: Vec<u64> = world.clients.iter().map(hash).collect();
        clients.sort_unstable();
        let World {
            now,
            groups,
            late,
            names,
            tokens,
            left,
            ..
        } = world;
        hash(&(now, groups, clients, late, names, tokens, left))
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
