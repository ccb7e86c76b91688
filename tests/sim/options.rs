//! The settings of a history. Each seed makes some faults frequent, some rare, and turns most off
//! ("swarm testing", Groce et al. 2012): a history with a little of everything reaches few
//! interesting states.

mod focus;
mod groups;
mod kinds;
mod queueing;
mod registers;
mod sharing;

pub(crate) use kinds::{BrokenAssumption, Fault};
pub(crate) use queueing::IDLE_CLAIM;

use crate::clock::{MICROS, MILLIS, SECONDS};
use crate::mistake::Mistake;
use crate::node::Ability;
use crate::random::Random;
use groups::Grouping;
use kinds::FAULTS;
use queueing::Queueing;
use redlatch_protocol::engine::Ttl;
use registers::Registering;
use sharing::Sharing;
use std::time::Duration;

/// The settings of one history.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    pub(crate) broken_assumption: BrokenAssumption,
    pub(crate) mistake: Option<Mistake>,
    pub(crate) nodes: usize,
    pub(crate) clients: usize,
    /// Two nodes that are one server, the lower number first.
    pub(crate) twins: Option<(usize, usize)>,
    pub(crate) password: Option<&'static str>,
    /// Threads of each client.
    pub(crate) workers: usize,
    pub(crate) resources: u64,
    /// How often a lock is of several resources, how often it is fenced, and how often one is
    /// inspected and force-released.
    pub(crate) several_permille: u64,
    pub(crate) fence_permille: u64,
    pub(crate) operator_permille: u64,
    /// How often a thread asks how the servers are set up, instead of for a lock.
    pub(crate) examine_permille: u64,
    /// The difference of the clients' wall clocks, in microseconds.
    pub(crate) walls_apart: u64,
    /// Milliseconds.
    pub(crate) ttl: (u64, u64),
    /// Is a ttl often many times as long as the one before?
    pub(crate) ttls_differ: bool,
    pub(crate) node_timeout: Duration,
    pub(crate) wait_for_all: bool,
    /// Do the clients have the restart guard? Only then may nodes restart empty.
    pub(crate) restart_guard: bool,
    /// Do the servers refuse `INFO`, which has their run id and uptime?
    pub(crate) hides_info: bool,
    /// May a client end another connection of its own with `CLIENT KILL`?
    pub(crate) may_kill: bool,
    pub(crate) queueing: Queueing,
    /// The largest drift of a clock, in parts per billion.
    pub(crate) drift: i64,
    /// The shortest and longest delay of one direction in the network, and how often it is many
    /// times as long.
    pub(crate) delay: (u64, u64),
    /// Does each link between a client and a node have one delay all the time?
    pub(crate) has_steady_links: bool,
    pub(crate) tail_permille: u64,
    pub(crate) split_permille: u64,
    /// How many bytes to a node can be in flight.
    pub(crate) window: usize,
    /// The longest pause between two operations of a thread.
    pub(crate) rest: u64,
    /// The longest pause between two faults.
    pub(crate) fault_pause: u64,
    /// Each kind's share.
    pub(crate) faults: Vec<Fault>,
    /// When the faults end: at this time, or after that many events if that is sooner.
    pub(crate) faults_end_at: u64,
    pub(crate) events_max: u64,
    /// Do only as many nodes recover then as make a majority?
    pub(crate) heals_least: bool,
    pub(crate) extend_permille: u64,
    /// How often a client waits without a limit.
    pub(crate) patient_permille: u64,
    /// How often a lock is held until its validity ends.
    pub(crate) greedy_permille: u64,
    /// Do the threads of a client have wait queues? And how often is a lock handed off there before
    /// other clients get a chance?
    pub(crate) is_lined: bool,
    pub(crate) handoffs_max: u32,
    pub(crate) sharing: Sharing,
    /// What threads do with registers, if they use those instead of locks.
    pub(crate) registers: Option<Registering>,
    /// Is each node a replicated group?
    pub(crate) groups: Option<Grouping>,
}

/// The largest drift of a clock within the assumptions, in parts per billion. Two clocks that drift
/// in opposite directions use up the clients' drift factor of 0.01.
pub(crate) const DRIFT_BOUND: i64 = 5_000_000;

impl Options {
    pub(crate) fn draw(
        random: &mut Random,
        broken_assumption: BrokenAssumption,
        mistake: Option<Mistake>,
    ) -> Self {
        let longest = random.pick(&[60, 150, 400, 400, 1_000, 3_000]);
        let ttl = (random.pick(&[longest, longest / 2, 50]), longest);
        let fastest = random.pick(&[20 * MICROS, 100 * MICROS, 100 * MICROS, MILLIS]);
        let faults = faults(random, broken_assumption);
        let drift = drift(random, broken_assumption);
        let wait_for_all = random.chance(150);
        let node_timeout = node_timeout(random, wait_for_all, ttl);
        let with_twins = broken_assumption == BrokenAssumption::NoneWithTwins;
        let nodes = nodes(random, with_twins);
        let mut options = Self {
            broken_assumption,
            mistake,
            nodes,
            twins: twins(random, nodes, if with_twins { 1_000 } else { 40 }),
            password: random.pick(&[None, None, None, Some("sesame")]),
            clients: random.between(1, 5) as usize,
            workers: random.pick(&[1, 1, 1, 2, 3]),
            resources: random.pick(&[1, 1, 2, 3]),
            several_permille: random.pick(&[0, 0, 400]),
            fence_permille: random.pick(&[0, 0, 300, 1_000]),
            operator_permille: random.pick(&[0, 0, 0, 100]),
            examine_permille: 0,
            walls_apart: random.pick(&[0, 1_000, 100_000_000]),
            ttl,
            ttls_differ: false,
            node_timeout,
            wait_for_all,
            restart_guard: broken_assumption == BrokenAssumption::None && random.chance(250),
            hides_info: false,
            may_kill: random.chance(500),
            queueing: Queueing::draw(random, longest),
            drift,
            delay: (fastest, fastest * random.between(1, 20)),
            has_steady_links: false,
            tail_permille: random.pick(&[0, 0, 10, 50, 200]),
            split_permille: random.pick(&[0, 0, 20, 100, 500]),
            window: random.pick(&[1 << 20, 1 << 20, 1 << 20, 1 << 20, 400, 60]),
            rest: random.pick(&[MILLIS, 10 * MILLIS, 40 * MILLIS]),
            fault_pause: random.pick(&[30, 100, 300, 1_000]) * MILLIS,
            faults,
            faults_end_at: random
                .between(longest * MILLIS / 2, longest * MILLIS * 2)
                .min(3 * SECONDS)
                + random.pick(&[200 * MILLIS, 500 * MILLIS, SECONDS]),
            events_max: random.pick(&[1_000, 2_000, 3_000, 6_000]),
            heals_least: false,
            extend_permille: random.pick(&[0, 200, 600]),
            patient_permille: random.pick(&[0, 300, 600]),
            greedy_permille: random.pick(&[0, 200, 800]),
            is_lined: random.chance(700),
            handoffs_max: random.pick(&[1, 9, 1_000]),
            sharing: Sharing::NONE,
            registers: None,
            groups: None,
        };
        options.settle(random);
        options.focus(random);
        options
    }

    /// Decides which resources are shared.
    fn share(&mut self, random: &mut Random) {
        if self.mistake.is_none() && self.broken_assumption.is_within() {
            self.sharing = Sharing::draw(random, self.resources);
        }
        if self.queueing.abilities.contains(&Ability::NoRights) {
            // Such a server can give no share.
            self.sharing = Sharing::NONE;
        }
    }

    /// Adjusts settings that depend on others.
    fn settle(&mut self, random: &mut Random) {
        self.share(random);
        if self.restart_guard || self.broken_assumption != BrokenAssumption::None {
            // If nodes lose their counters, tokens grow with the wall clocks.
            self.walls_apart = 0;
        }
        // Servers that could be counted twice must report their run id, and servers that lose their
        // keys must report their uptime.
        let may_hide = self.twins.is_none() && !self.restart_guard;
        self.hides_info = may_hide && random.chance(100);
    }

    /// Is this mistake made in this history?
    pub(crate) fn has(&self, mistake: Mistake) -> bool {
        self.mistake == Some(mistake)
    }

    /// The number of servers behind the nodes.
    pub(crate) fn servers(&self) -> usize {
        let size = self.groups.as_ref().map_or(1, |groups| groups.size);
        self.nodes * size - usize::from(self.twins.is_some())
    }

    /// The server behind a node.
    pub(crate) fn server(&self, node: usize) -> usize {
        match self.twins {
            Some((first, second)) if node == second => first,
            Some((_, second)) if node > second => node - 1,
            _ => node,
        }
    }

    /// How long a node keeps a reservation at most, or a lock that was left; and the second for
    /// those who come after it.
    pub(crate) fn longest_reservation_millis(&self) -> u64 {
        let claim = self.node_timeout * 3 + Duration::from_millis(2 * 100);
        // It outlasts a quarantine, which is as long as the longest ttl and a second.
        let guard = self
            .quarantine()
            .map(|quarantine| quarantine.as_millis() as u64 + 1_000);
        let quarantine = guard.unwrap_or(0);
        let left = if self.sharing.keep_permille > 0 {
            self.ttl.1
        } else {
            0
        };
        // What is reserved for a set lasts as long as its entry in front.
        let lease = self
            .queueing
            .waiter_lease
            .filter(|_| self.several_permille > 0);
        let claim = quarantine + claim.as_millis() as u64;
        left.max(claim).max(lease.map_or(0, Ttl::as_millis)) + 1_000
    }

    /// How old a server must be, or the reign of a group, before its grants count.
    pub(crate) fn quarantine(&self) -> Option<Duration> {
        let bound = self
            .groups
            .as_ref()
            .map_or(Duration::ZERO, |groups| groups.bound);
        self.restart_guard
            .then(|| Duration::from_millis(self.ttl.1) + bound)
    }

    /// The longest ttl, in true time by the slowest clock.
    pub(crate) fn longest_life(&self) -> u64 {
        self.ttl.1 * MILLIS * 12 / 10 + 2 * MILLIS
    }
}

fn node_timeout(random: &mut Random, wait_for_all: bool, ttl: (u64, u64)) -> Duration {
    // With `wait_for_all`, a client waits that long for nodes that are down: a ttl must be
    // longer.
    let timeout_max = if wait_for_all {
        ttl.0.min(ttl.1) / 4
    } else {
        u64::MAX
    };
    let millis = random.pick(&[5_u64, 20, 50, 50, 50, 200]);
    Duration::from_millis(millis.min(timeout_max))
}

fn nodes(random: &mut Random, with_twins: bool) -> usize {
    let sizes: &[_] = if with_twins {
        &[3, 3, 4, 5]
    } else {
        &[1, 2, 3, 3, 3, 4, 5, 5, 6, 7]
    };
    random.pick(sizes)
}

fn drift(random: &mut Random, broken_assumption: BrokenAssumption) -> i64 {
    match broken_assumption {
        BrokenAssumption::Drift => 20 * DRIFT_BOUND,
        _ => random.pick(&[0, DRIFT_BOUND, DRIFT_BOUND]),
    }
}

/// Two nodes that are one server, in some histories.
fn twins(random: &mut Random, nodes: usize, permille: u64) -> Option<(usize, usize)> {
    if nodes < 3 || !random.chance(permille) {
        return None;
    }
    let first = random.below(nodes as u64 - 1) as usize;
    Some((
        first,
        random.between(first as u64 + 1, nodes as u64 - 1) as usize,
    ))
}

/// Some of the kinds of fault, and those that the broken assumption needs.
fn faults(random: &mut Random, broken_assumption: BrokenAssumption) -> Vec<Fault> {
    let mut faults: Vec<_> = FAULTS.into_iter().filter(|_| random.chance(400)).collect();
    let needed = match broken_assumption {
        BrokenAssumption::LostData | BrokenAssumption::LostSecond => Some(Fault::Crash),
        BrokenAssumption::Jump => Some(Fault::Jump),
        BrokenAssumption::Eviction => Some(Fault::Evict),
        BrokenAssumption::Strays => Some(Fault::Stray),
        BrokenAssumption::Exchanged => Some(Fault::Exchange),
        BrokenAssumption::Restored => Some(Fault::Crash),
        _ => None,
    };
    faults.extend(needed.filter(|needed| !faults.contains(needed)));
    faults
}
