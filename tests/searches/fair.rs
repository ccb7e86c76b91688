//! What follows when faults stop: every waiter must be served, and shares must be held together.

use crate::client::{Client, Phase};
use crate::node::{End, Key, Share, Waiter};
use crate::pace::Pace;
use crate::schedule;
use crate::scheme::Scheme;
use crate::violation::Violation;
use crate::want::Want;
use crate::world::{Site, Step, World};
use models::Chance;

/// How often time passes before somebody counts as waiting for a share that excludes nobody.
const PERIODS_MAX: u32 = 20;

/// How often waiters look and holders renew before anything expires.
const CALM: u32 = 8;

/// How many steps there are at most before time passes although something is under way.
const STEPS_MAX: u32 = 500;

/// Follows the world to its end on a fair schedule. Returns how often time had to pass.
pub(crate) fn run(
    world: World,
    scheme: &Scheme,
    random: &mut Chance,
    trace: &mut Vec<Step>,
) -> Result<u32, Violation> {
    let length = trace.len();
    // Those who cannot take their turn keep others waiting for a while.
    let are_prompt = world
        .clients
        .iter()
        .all(|client| client.pace == Pace::Prompt);
    if are_prompt && scheme.has_shares() {
        keep_shares(world.clone(), scheme, random, trace)?;
        trace.truncate(length);
    }
    schedule::run(world, scheme, random, trace)
}

/// Holders of shares do not release, and nobody else begins. Then those must be served with whom
/// these can share.
fn keep_shares(
    mut world: World,
    scheme: &Scheme,
    random: &mut Chance,
    trace: &mut Vec<Step>,
) -> Result<(), Violation> {
    world.faults_left = 0;
    world.looks_left = scheme.looks_at_end();
    let mut steps = Vec::new();
    let mut take = |world: &mut World, step: Step| {
        trace.push(step);
        world.take(step, scheme)
    };
    for step in schedule::stopped_faults(&world, random) {
        take(&mut world, step)?;
    }
    for period in 0..PERIODS_MAX {
        for count in 0..=STEPS_MAX {
            // Attempts fail again and again, and looks and renewals do not help.
            if count == STEPS_MAX && period >= CALM && is_slot_free(&world, scheme) {
                return Err(Violation::WaitsForShares);
            }
            steps.clear();
            world.steps(&mut steps);
            steps.retain(|step| !is_kept(&world, *step, scheme));
            if steps.is_empty() {
                break;
            }
            take(&mut world, random.pick(&steps))?;
        }
        if scheme.has_time() && period >= CALM {
            for step in schedule::expiries(&world, random, period) {
                take(&mut world, step)?;
            }
        }
        let votes = |site: &&Site| !site.is_down && site.forgotten.is_empty();
        let can_vote = world.sites.iter().filter(votes).count() >= scheme.quorum();
        if !can_vote || !waits_for_shares(&world) {
            return Ok(());
        }
        steps.clear();
        world.looks(scheme, &mut steps);
        if !scheme.extends_at_end {
            steps.retain(|step| is_look_of_waiter(&world, *step));
        }
        for step in steps.clone() {
            take(&mut world, step)?;
        }
    }
    Err(Violation::WaitsForShares)
}

fn is_kept(world: &World, step: Step, scheme: &Scheme) -> bool {
    match step {
        // A holder that makes no call reads no answers.
        Step::Receive(_, client) => !scheme.extends_at_end && world.clients[client].holds(),
        Step::Begin(_) => true,
        Step::Release(client) => {
            let state = &world.clients[client];
            state.want.is_share() && state.phase == Phase::Holding
        }
        _ => false,
    }
}

fn is_look_of_waiter(world: &World, step: Step) -> bool {
    matches!(step, Step::Look(client) if world.clients[client].phase.is_queued())
}

fn first_waiter(world: &World) -> Option<&Client> {
    let waiters = world
        .clients
        .iter()
        .filter(|client| client.phase.is_queued());
    waiters.min_by_key(|client| (client.number, client.id))
}

/// Is there a waiter whom no holder excludes, and nobody before it in the queue?
fn waits_for_shares(world: &World) -> bool {
    let Some(first) = first_waiter(world) else {
        return false;
    };
    let holders = || world.clients.iter().filter(|client| client.holds());
    match first.want {
        Want::Exclusive | Want::Second | Want::Both => holders().count() == 0,
        Want::Reader => holders().all(|holder| holder.want == Want::Reader),
        Want::Permit(permits) => {
            holders().all(|holder| holder.want == first.want)
                && holders().filter(|holder| holder.want == first.want).count() < permits.into()
        }
    }
}

/// Does somebody try in vain to take a permit, although the same slot is free on a majority?
fn is_slot_free(world: &World, scheme: &Scheme) -> bool {
    let Some(first) = first_waiter(world) else {
        return false;
    };
    let Want::Permit(permits) = first.want else {
        return false;
    };
    let is_free = |site: &&Site, slot: u8| {
        let node = &site.node.locks[0];
        let is_attempt = |share: &Share| {
            // A share that was given to a waiter in its turn, which it may still withdraw.
            let owner = &world.clients[usize::from(share.token.client)];
            owner.token == share.token && owner.phase.is_queued()
        };
        // Shares of the dead count until they end.
        let given = node
            .holders
            .iter()
            .filter(|share| share.end != End::Over && !is_attempt(share));
        let given: Vec<u8> = given.filter_map(|share| share.slot).collect();
        let lives = |waiter: &Waiter| !waiter.has_lease() || world.is_waiting(waiter.id);
        let is_open = !site.is_down
            && site.forgotten.is_empty()
            && !matches!(node.key, Key::Held(_))
            && node.queue.iter().all(lives);
        // Where it has no place, or took its turn, it gets one at its next look.
        let is_there = node.queue.iter().any(|waiter| waiter.id == first.id)
            || node.holders.iter().any(|share| share.token == first.token);
        is_open && is_there && !given.contains(&slot) && given.len() < permits.into()
    };
    let count = |slot| {
        world
            .sites
            .iter()
            .filter(|site| is_free(site, slot))
            .count()
    };
    (0..permits).any(|slot| count(slot) >= scheme.quorum())
}
