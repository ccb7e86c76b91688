//! The end of each walk: faults stop.

use crate::actor::Actor;
use crate::history::Outcome;
use crate::plan::{Plan, Verb};
use crate::round::Round;
use crate::server::Server;
use crate::step::{Step, Violation};
use crate::world::World;
use redlatch_registers::MembershipView;

/// After this many rounds of one call, without faults and alone, a client is stuck.
const ROUNDS_MAX: usize = 12;

/// The same of a repairer.
const REPAIR_ROUNDS_MAX: usize = 400;

/// Faults stop: each majority of the nodes that have votes serves a new client. If a majority has
/// forgotten nothing, a repairer gives all nodes their votes, and each majority serves.
pub(crate) fn end(world: &World, plan: &Plan, server: &mut Server) -> Result<(), Violation> {
    let voters = voters(world, plan, server);
    serve_all(world, voters, plan, server)?;
    if plan.repairers.is_empty() {
        return Ok(());
    }
    let majority = plan.nodes / 2 + 1;
    let kept = plan.nodes - world.lost.count_ones() as usize;
    if kept < majority && (voters.count_ones() as usize) < majority {
        return Ok(());
    }
    let mut world = world.clone();
    let all = ((1_u16 << plan.nodes) - 1) as u8;
    repair(&mut world, plan, server)?;
    if self::voters(&world, plan, server) != all {
        return Err(Violation::Unrepaired);
    }
    serve_all(&world, all, plan, server)
}

/// The nodes that have votes, as one finds out who looks at all marks, as bits.
fn voters(world: &World, plan: &Plan, server: &Server) -> u8 {
    let looks = world.nodes.iter().enumerate();
    let seen = looks
        .map(|(index, node)| server.look(index, *node))
        .collect();
    let Ok(view) = MembershipView::new(seen, plan.nodes) else {
        return 0;
    };
    let epoch = view.epoch();
    let renewals = view.renewals(epoch, |_| Some(false)).into_iter();
    let renewed = renewals.filter(|(seen, new)| new.epoch == *epoch && *new.run_id == *seen.run_id);
    let voters = view
        .voters(epoch)
        .iter()
        .chain(renewed.map(|(seen, _)| seen.node));
    voters.fold(0, |bits, node| bits | 1 << node.index())
}

/// A new repairer gives all nodes their votes, alone and without faults.
fn repair(world: &mut World, plan: &Plan, server: &mut Server) -> Result<(), Violation> {
    let repairer = world.join(Actor::repairer(world.actors.len(), plan));
    let plan = Plan {
        rounds_max: REPAIR_ROUNDS_MAX,
        mistake: None,
        ..plan.clone()
    };
    world.take(Step::Begin(repairer), &plan, server)?;
    while world.rounds[repairer].is_some() {
        let all = ((1_u16 << plan.nodes) - 1) as u8;
        round(world, repairer, all, &plan, server)?;
    }
    Ok(())
}

/// These nodes carry out what an actor asks, and it hears them.
fn round(
    world: &mut World,
    actor: usize,
    nodes: u8,
    plan: &Plan,
    server: &mut Server,
) -> Result<Option<Outcome>, Violation> {
    let asked: Vec<usize> = world.rounds[actor]
        .iter()
        .flat_map(Round::unanswered)
        .collect();
    for node in asked.into_iter().filter(|node| nodes >> node & 1 == 1) {
        world.take(Step::Arrive(actor, node), plan, server)?;
    }
    world.take(Step::Hear(actor, nodes), plan, server)
}

/// Each majority of these nodes serves a new client.
fn serve_all(world: &World, voters: u8, plan: &Plan, server: &mut Server) -> Result<(), Violation> {
    let majority = plan.nodes / 2 + 1;
    let majorities = (0..1_u8 << plan.nodes)
        .filter(|nodes| nodes.count_ones() as usize == majority && nodes & !voters == 0);
    for nodes in majorities {
        for register in 0..plan.registers {
            serve(world.clone(), nodes, register, plan, server)?;
        }
    }
    Ok(())
}

/// A new client reads and changes a register, alone and on these nodes only.
fn serve(
    mut world: World,
    nodes: u8,
    register: u8,
    plan: &Plan,
    server: &mut Server,
) -> Result<(), Violation> {
    let client = world.join(Actor::client(world.actors.len(), plan, false));
    let plan = Plan {
        rounds_max: ROUNDS_MAX,
        ..plan.clone()
    };
    for verb in [Verb::Read, Verb::Append, Verb::Append, Verb::Read] {
        let mut ended = world.begin(client, (verb, register), &plan, server)?;
        while let (None, Some(_)) = (&ended, &world.rounds[client]) {
            ended = round(&mut world, client, nodes, &plan, server)?;
        }
        match (verb.looks(), ended) {
            (true, Some(Outcome::Saw(_))) | (false, Some(Outcome::Made(_))) => {}
            _ => return Err(Violation::Stuck),
        }
    }
    Ok(())
}
