//! What follows when faults stop: a fair schedule, on which every living waiter must be served.
//!
//! Every message arrives, in random order, and holders release. When nothing is under way, time
//! passes: tokens, leases and reservations run out that nobody renews, and each waiter looks. In
//! histories without faults, nothing needs to run out.

use crate::fault::Fault;
use crate::node::Key;
use crate::random::Random;
use crate::scheme::Scheme;
use crate::violation::Violation;
use crate::world::{Site, Step, World};

/// How often time passes before a waiter counts as waiting for ever.
const PERIODS_MAX: u32 = 100;

/// How many steps there are at most before nothing is under way, or time passes nevertheless.
pub(crate) const STEPS_MAX: u32 = 2_000;

/// Follows the world to its end. Returns how often time had to pass.
pub(crate) fn run(
    mut world: World,
    scheme: &Scheme,
    random: &mut Random,
    trace: &mut Vec<Step>,
) -> Result<u32, Violation> {
    let has_faults = scheme.faults_max > 0;
    world.faults_left = 0;
    world.looks_left = scheme.looks_at_end();
    let mut steps = Vec::new();
    let mut take = |world: &mut World, step: Step| {
        trace.push(step);
        world.take(step, scheme)
    };
    for step in stopped_faults(&world, random) {
        take(&mut world, step)?;
    }
    for period in 0..PERIODS_MAX {
        for count in 0.. {
            steps.clear();
            world.steps(&mut steps);
            if steps.is_empty() {
                break;
            }
            if count == STEPS_MAX {
                if scheme.may_spin() {
                    break;
                }
                return Err(Violation::WaitsForEver);
            }
            take(&mut world, random.choose(&steps))?;
        }
        if has_faults {
            for step in expiries(&world, random) {
                take(&mut world, step)?;
            }
        }
        if world.is_over() {
            let is_clean = world.is_clean() || has_faults && !has_waiters(&world);
            return if is_clean { Ok(period) } else { Err(Violation::Residue) };
        }
        steps.clear();
        world.looks(&mut steps);
        for step in steps.clone() {
            take(&mut world, step)?;
        }
    }
    Err(Violation::WaitsForEver)
}

/// Nodes that are down come up or stay down, and late commands arrive or do not.
pub(crate) fn stopped_faults(world: &World, random: &mut Random) -> Vec<Step> {
    let mut faults = Vec::new();
    for (node, site) in world.sites.iter().enumerate() {
        if site.node.is_down && random.once_in(2) {
            faults.push(Fault::ComeUp(node));
        }
        for (client, link) in site.links.iter().enumerate() {
            // The first one always, as those behind move up.
            faults.extend(link.late.iter().map(|_| match random.once_in(2) {
                true => Fault::Late { node, client, index: 0, again: false },
                false => Fault::Never { node, client, index: 0 },
            }));
        }
    }
    faults.into_iter().map(Step::Fault).collect()
}

/// What runs out because nobody renews it; and a reservation now and then, as its owner may be far
/// back in line elsewhere, and looks rarely.
pub(crate) fn expiries(world: &World, random: &mut Random) -> Vec<Step> {
    let mut faults = Vec::new();
    for (node, site) in world.sites.iter().enumerate() {
        for token in site.node.tokens() {
            if world.has_ended(token) {
                faults.push(Fault::EndToken(node, token));
            }
        }
        if let Key::Reserved(id) = site.node.key {
            if !world.is_waiting(id) || random.once_in(8) {
                faults.push(Fault::EndReservation(node));
            }
        }
        for (place, waiter) in site.node.queue.iter().enumerate() {
            if waiter.has_lease && !world.is_waiting(waiter.id) {
                faults.push(Fault::EndLease(node, place));
            }
        }
        if site.node.forgotten.iter().all(|token| world.has_ended(*token)) {
            faults.push(Fault::EndQuarantine(node));
        }
    }
    faults.into_iter().map(Step::Fault).collect()
}

/// A queue ends with its last lease.
fn has_waiters(world: &World) -> bool {
    let keeps = |site: &Site| {
        site.node.key != Key::Free || site.node.queue.iter().any(|waiter| waiter.has_lease)
    };
    world.sites.iter().any(keeps)
}
