//! What follows when faults stop: a fair schedule, on which every living waiter must be served.
//!
//! Every message arrives, in random order, and holders release. When nothing is under way, time
//! passes, as much as a claim may take: a reservation that was not claimed is over then, tokens run
//! out that nobody renews, and those waiters look that were called on to do so or know when the key
//! ends. The others look after a while, when their entries are to be renewed, and those of the dead
//! end a little later. In histories without faults, nothing needs to run out.
//!
//! The lock must not lie free for long: for two of these periods, and one for each waiter that
//! stands in the queue and cannot take it.

use crate::client::{Client, IN_FRONT, Phase};
use crate::fault::Fault;
use crate::kind::Kind;
use crate::node::{CLAIM, PART, Waiter};
use crate::pace::Pace;
use crate::request::Word;
use crate::scheme::Scheme;
use crate::violation::Violation;
use crate::world::{Site, Step, World};
use models::Chance;

/// How often time passes before a waiter counts as waiting for ever.
const PERIODS_MAX: u32 = 400;

/// After how many periods a waiter renews its entry.
const INTERVAL: u32 = 7;

/// After how many periods a waiter asks again that too few nodes have answered.
const PAUSE: u32 = 4;

/// How many periods the entry of a waiter is kept that does not renew it.
pub(crate) const LEASE: u32 = 10;

/// The number of a period in which everything ends that may.
pub(crate) const ALL: u32 = u32::MAX;

/// How many steps there are at most before nothing is under way, or time passes nevertheless.
pub(crate) const STEPS_MAX: u32 = 2_000;

/// For how many periods the lock may lie free if everybody can take it.
const FREE_MAX: u32 = 2;

/// Follows the world to its end. Returns how often time had to pass.
pub(crate) fn run(
    mut world: World,
    scheme: &Scheme,
    random: &mut Chance,
    trace: &mut Vec<Step>,
) -> Result<u32, Violation> {
    world.faults_left = 0;
    world.looks_left = scheme.looks_at_end();
    let mut looked = vec![0; scheme.clients];
    let free_max = free_max(&world, scheme);
    let mut free_for = 0;
    let stopped = stopped_faults(&world, random);
    take_all(&mut world, scheme, stopped, trace)?;
    for period in 0..PERIODS_MAX {
        let was_held = arrive(&mut world, scheme, random, trace)?;
        let is_over = world.is_over();
        if is_over {
            let stops = stops(&world);
            take_all(&mut world, scheme, stops, trace)?;
            arrive(&mut world, scheme, random, trace)?;
        }
        free_for = if world.lies_free() && !was_held {
            free_for + 1
        } else {
            0
        };
        if free_for > free_max && scheme.has_time() && !scheme.may_spin() {
            return Err(Violation::LiesFree);
        }
        let mut ends = Vec::new();
        if scheme.has_time() {
            ends = expiries(&world, random, if is_over { ALL } else { period });
            let timeouts = timeouts(&world);
            take_all(&mut world, scheme, timeouts, trace)?;
            take_all(&mut world, scheme, ends.clone(), trace)?;
        }
        if is_over {
            let is_clean = world.is_clean() || scheme.has_time() && !has_waiters(&world);
            return if is_clean {
                Ok(period)
            } else {
                Err(Violation::Residue)
            };
        }
        let ends_token = ends
            .iter()
            .any(|step| matches!(step, Step::Fault(Fault::EndToken(..))));
        let mut looks = Vec::new();
        world.looks(scheme, &mut looks);
        looks.retain(|step| {
            let Step::Look(client) = *step else {
                return false;
            };
            let waited = period + 1 - looked[client];
            let looks = match world.clients[client].pace {
                Pace::Minority => waited >= PAUSE,
                _ if scheme.is_mute || !scheme.has_time() || waited >= INTERVAL => true,
                _ => is_called_on(&world, client, ends_token),
            };
            if looks {
                looked[client] = period;
            }
            looks
        });
        take_all(&mut world, scheme, looks, trace)?;
    }
    Err(Violation::WaitsForEver)
}

fn take_all(
    world: &mut World,
    scheme: &Scheme,
    steps: Vec<Step>,
    trace: &mut Vec<Step>,
) -> Result<(), Violation> {
    for step in steps {
        trace.push(step);
        world.take(step, scheme)?;
    }
    Ok(())
}

/// Takes steps until nothing is under way. Those look who were told to look at once. Returns
/// whether somebody held the lock meanwhile.
fn arrive(
    world: &mut World,
    scheme: &Scheme,
    random: &mut Chance,
    trace: &mut Vec<Step>,
) -> Result<bool, Violation> {
    let mut steps = Vec::new();
    let mut was_held = false;
    for _ in 0..STEPS_MAX {
        steps.clear();
        world.steps(&mut steps);
        if steps.is_empty() {
            world.looks(scheme, &mut steps);
            let asks = |site: &Site, client: usize| site.links[client].asks == Some(Word::AskNow);
            steps.retain(|step| match *step {
                Step::Look(client) if world.clients[client].pace != Pace::Minority => {
                    world.sites.iter().any(|site| asks(site, client))
                }
                _ => false,
            });
        }
        if steps.is_empty() {
            return Ok(was_held);
        }
        take_all(world, scheme, vec![random.pick(&steps)], trace)?;
        was_held |= world
            .clients
            .iter()
            .any(|client| client.phase == Phase::Holding);
    }
    if scheme.may_spin() {
        Ok(was_held)
    } else {
        Err(Violation::WaitsForEver)
    }
}

/// For how many periods the lock may lie free in what follows.
fn free_max(world: &World, scheme: &Scheme) -> u32 {
    let is_alone = world
        .clients
        .iter()
        .filter(|client| client.pace != Pace::Prompt)
        .count()
        <= 1;
    let cost = |client: &Client| match client.phase {
        Phase::Dead => 1,
        _ => client.pace.cost(),
    };
    // Who was not told something finds out when it renews its entry.
    let disturbs = |kind: &Kind| {
        let calm = [
            Kind::GiveUp,
            Kind::Death,
            Kind::Reservation,
            Kind::Token,
            Kind::Timeout,
            Kind::Slow,
            Kind::Patience,
        ];
        !calm.contains(kind)
    };
    let disturbed = if scheme.kinds.iter().any(disturbs) {
        2 * INTERVAL
    } else {
        0
    };
    // As does who stands behind several that nothing reaches, and that are told in vain.
    let bad = world
        .clients
        .iter()
        .filter(|client| !client.is_good())
        .count();
    let renewals = disturbed + if bad > 1 { INTERVAL } else { 0 };
    // Several that come back again and again, as often as the others ask, have no such limit.
    if scheme.is_mute && !is_alone {
        return u32::MAX;
    }
    // A reservation lasts longer for waiters that have to ask, and a part of a set
    // that waits in vain.
    let length = if scheme.is_mute { 2 } else { 1 };
    let parts = if scheme.has_sets() {
        (PART / CLAIM) as u32
    } else {
        0
    };
    length * (FREE_MAX + world.clients.iter().map(cost).sum::<u32>()) + renewals + parts
}

/// Does this waiter look before its entry is to be renewed? It was told when to ask, or knows when
/// the token ends that it waits for, or sees that the key is gone.
fn is_called_on(world: &World, client: usize, ends_token: bool) -> bool {
    let place = world.clients[client].place;
    let was_told = world
        .sites
        .iter()
        .any(|site| site.links[client].asks.is_some());
    let want = world.clients[client].awaited;
    let free = world
        .sites
        .iter()
        .filter(|site| site.node.is_free_for(want) && !site.is_down);
    let sees = place == 0 && free.count() * 2 > world.sites.len();
    was_told || sees || ends_token && place <= IN_FRONT
}

/// Nodes that are down come up or stay down, late commands arrive or do not, and servers notice
/// that connections are gone, or do not.
pub(crate) fn stopped_faults(world: &World, random: &mut Chance) -> Vec<Step> {
    let mut faults = Vec::new();
    for (node, site) in world.sites.iter().enumerate() {
        if site.is_down && random.one_in(2) {
            faults.push(Fault::ComeUp(node));
        }
        for (client, link) in site.links.iter().enumerate() {
            // The first one always, as those behind move up.
            faults.extend(link.late.iter().map(|_| match random.one_in(2) {
                true => Fault::Late {
                    node,
                    client,
                    index: 0,
                    again: false,
                },
                false => Fault::Never {
                    node,
                    client,
                    index: 0,
                },
            }));
            let is_dead = world.clients[client].phase == Phase::Dead;
            if is_dead && link.is_heard && link.commands.is_empty() && random.one_in(2) {
                faults.push(Fault::Notice(node, client));
            }
        }
    }
    faults.into_iter().map(Step::Fault).collect()
}

/// Waiters that are no good leave when nobody else wants the lock.
fn stops(world: &World) -> Vec<Step> {
    let clients = world.clients.iter().enumerate();
    let bad = clients.filter(|(_, client)| client.pace != Pace::Prompt);
    let living = bad.filter(|(_, client)| client.phase != Phase::Dead);
    living
        .map(|(client, _)| Step::Fault(Fault::Stop(client)))
        .collect()
}

/// The attempts of those that are always late.
fn timeouts(world: &World) -> Vec<Step> {
    let clients = world.clients.iter().enumerate();
    let late = clients.filter(|(_, client)| {
        client.pace == Pace::Late && matches!(client.phase, Phase::Trying | Phase::Claiming)
    });
    late.map(|(client, _)| Step::Fault(Fault::TimeOut(client)))
        .collect()
}

/// What runs out because nobody renews it, in the period with this number.
pub(crate) fn expiries(world: &World, random: &mut Chance, period: u32) -> Vec<Step> {
    let mut faults = Vec::new();
    for (node, site) in world.sites.iter().enumerate() {
        for token in site.node.tokens() {
            if world.has_ended(token) {
                faults.push(Fault::EndToken(node, token));
            }
        }
        // Its owner may be far back in line elsewhere. What is kept after that is kept for longer.
        let is_kept = site.node.is_over() && period < ALL && !random.one_in(INTERVAL as usize);
        if site.node.has_time() && !is_kept {
            faults.push(Fault::EndReservation(node));
        }
        for (place, waiter) in site.node.waiters().enumerate() {
            let is_over = period >= LEASE || random.one_in(LEASE as usize);
            let renews = world.is_waiting(waiter.id)
                && !site.links[usize::from(waiter.id.client)].is_cut_off;
            if waiter.has_lease() && !renews && is_over {
                faults.push(Fault::EndLease(node, place));
            }
        }
        if site.forgotten.iter().all(|token| world.has_ended(*token)) {
            faults.push(Fault::EndQuarantine(node));
        }
    }
    for (index, client) in world.clients.iter().enumerate() {
        if client.may_lose_patience() && random.one_in(INTERVAL as usize) {
            faults.push(Fault::LosePatience(index));
        }
    }
    faults.into_iter().map(Step::Fault).collect()
}

/// A queue ends with its last lease.
fn has_waiters(world: &World) -> bool {
    let keeps = |site: &Site| site.node.is_kept() || site.node.waiters().any(Waiter::has_lease);
    world.sites.iter().any(keeps)
}
