//! What a history has to do with the nodes' queues.

use crate::clock::{MICROS, MILLIS, SECONDS};
use crate::node::Ability;
use crate::random::Random;
use redlatch_protocol::engine::{Ttl, WAITER_LEASE};
use std::time::Duration;

/// The most nodes of a history.
const NODES_MAX: usize = 7;

/// How many times as long the lease of a waiter far back is.
const LEASE_STEPS: u64 = 8;

/// The settings of the nodes' queues.
#[derive(Clone, Debug)]
pub(crate) struct Queueing {
    /// How long a waiter in front may be silent, and how many clients do not queue.
    pub(crate) waiter_lease: Option<Ttl>,
    pub(crate) unqueued_permille: u64,
    /// What each server has for queues.
    pub(crate) abilities: Vec<Ability>,
    /// The longest wait for a lock, in milliseconds.
    pub(crate) wait_max: u64,
    /// Does each thread take one lock, one after another, and how long is the first held?
    pub(crate) abandons_waiters: bool,
    /// How often the servers look for expired keys.
    pub(crate) sweep: u64,
    /// Is there nothing that could delay a waiter or take its place?
    pub(crate) is_quiet: bool,
    /// How many waiters of another program renew their entries and never claim the lock.
    pub(crate) idle_clients: usize,
}

/// The time to claim of such a waiter, in milliseconds.
pub(crate) const IDLE_CLAIM: u64 = 60;

impl Queueing {
    /// Waits are as long as `longest`, in milliseconds.
    pub(super) fn draw(random: &mut Random, longest: u64) -> Self {
        Self {
            waiter_lease: waiter_lease(random),
            unqueued_permille: random.pick(&[0, 0, 0, 300]),
            abilities: abilities(random),
            wait_max: longest,
            abandons_waiters: false,
            sweep: 100 * MILLIS,
            is_quiet: false,
            idle_clients: 0,
        }
    }

    /// How soon a released lock must have its next holder in a quiet history: a few rounds. Each
    /// takes two ways in the network, and threads that are woken three times.
    pub(crate) fn soon(&self, delay: u64) -> Option<u64> {
        // After the faults, delays are up to half a millisecond.
        let round = 2 * delay.max(500 * MICROS) + 3 * 50 * MICROS;
        // Waiters that are not told ask at least once a second, when they renew their entries.
        let has_pushes = self
            .abilities
            .iter()
            .all(|ability| *ability == Ability::All);
        let unheard = if has_pushes { 0 } else { SECONDS };
        // They are passed over one after another, and come back in front once meanwhile. If the one
        // that would look is one of them, the next looks when it renews its entry.
        let unseen = if self.idle_clients > 1 { SECONDS } else { 0 };
        let idle = 2 * self.idle_clients as u64 * IDLE_CLAIM * MILLIS * 12 / 10 + unseen;
        self.is_quiet.then_some(6 * round + unheard + idle)
    }

    /// The longest lease of a waiter, in milliseconds: far back in the queue it is longer.
    pub(crate) fn longest_lease_millis(&self) -> u64 {
        let longest = self.waiter_lease.map_or(0, Ttl::as_millis) * LEASE_STEPS;
        // A client that does not queue reserves a lock that it releases for this time.
        longest.max(WAITER_LEASE.as_millis() as u64)
    }

    /// The lease of a waiter in front, in true time by the slowest clock.
    pub(crate) fn front_lease(&self) -> u64 {
        self.waiter_lease.map_or(0, Ttl::as_millis) * MILLIS * 12 / 10
    }

    /// How long the keys of a queue can outlive its waiters, in true time by the slowest clock. The
    /// number of the last waiter that was served is kept for two seconds.
    pub(crate) fn longest_lease(&self) -> u64 {
        self.longest_lease_millis().max(2_000) * MILLIS * 12 / 10
    }
}

/// How long a waiter in front may be silent; `None` if no client queues.
fn waiter_lease(random: &mut Random) -> Option<Ttl> {
    let millis = match random.below(6) {
        0 => return None,
        1 => random.between(50, 500),
        2 => random.between(500, 3_000),
        _ => 1_500,
    };
    Ttl::from_duration(Duration::from_millis(millis))
}

/// What the servers have for queues: all of it, in most histories.
fn abilities(random: &mut Random) -> Vec<Ability> {
    let lacks = [
        Ability::Resp2,
        Ability::NoTracking,
        Ability::NoChannels,
        Ability::NoRights,
    ];
    let permille = random.pick(&[0, 0, 0, 200, 600, 1_000]);
    let common = random.pick(&lacks);
    let ability = |random: &mut Random| match random.chance(permille) {
        false => Ability::All,
        true if random.chance(300) => random.pick(&lacks),
        true => common,
    };
    (0..NODES_MAX).map(|_| ability(random)).collect()
}
