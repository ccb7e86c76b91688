//! Nodes that are replicated groups.

use super::{Fault, Options, Sharing};
use crate::clock::{MICROS, MILLIS, SECONDS};
use crate::mistake::Mistake;
use crate::node::Ability;
use crate::random::Random;
use redlatch_protocol::node::{GroupOptions, SessionOptions};
use std::sync::Arc;
use std::time::Duration;

/// The groups of a history.
#[derive(Clone, Debug)]
pub(crate) struct Grouping {
    /// The servers of each.
    pub(crate) size: usize,
    /// How long a replaced master goes on at most, unless replicas must acknowledge each vote: then
    /// it may go on for as long as it likes. Also how long ago a server may have been named.
    pub(crate) bound: Duration,
    pub(crate) is_acknowledged: bool,
    /// How long a write takes to a replica, and how often many times as long.
    pub(crate) lag: (u64, u64),
    pub(crate) late_permille: u64,
    /// By how much the clocks of its servers differ at most.
    pub(crate) skew: Duration,
    /// How often a promotion closes the connections of the servers that learn of it.
    pub(crate) closing_permille: u64,
    /// How often a client is led to a replaced master that still goes on, or to a replica.
    pub(crate) astray_permille: u64,
}

impl Options {
    /// What a client assumes of its nodes, if they are groups.
    pub(crate) fn lead_to_group(&self, session: &mut SessionOptions) {
        let Some(Grouping {
            bound,
            is_acknowledged,
            size,
            skew,
            ..
        }) = self.groups
        else {
            return;
        };
        let max_ttl = Duration::from_millis(self.ttl.1);
        let mut group = GroupOptions {
            tag: Arc::default(),
            bound: if is_acknowledged {
                Duration::ZERO
            } else {
                bound
            },
            named_within: bound,
            max_ttl,
            replicas: is_acknowledged.then(|| size as u32 - 1),
            skew,
        };
        session.quarantine = Some(group.quarantine());
        // Not none: a server that was named a moment ago is greeted.
        let hardly = bound / 16;
        match self.mistake {
            Some(Mistake::ReignNotAwaited) => session.quarantine = None,
            Some(Mistake::NoBound) => {
                (group.bound, session.quarantine) = (hardly, Some(max_ttl));
            }
            Some(Mistake::ReclaimedAtOnce) => group.bound = hardly,
            Some(Mistake::NothingAcknowledged) => group.replicas = None,
            Some(Mistake::SkewIgnored) => group.skew = Duration::ZERO,
            _ => {}
        }
        session.group = Some(Arc::new(group));
    }

    /// By how much the clocks of a group's servers differ at most. With a mistake that is not about
    /// them they agree: it is found in the histories in which it was found. Nothing is drawn for
    /// it: the other histories are what they were but for the clocks.
    fn skew(&self, random: &Random) -> Duration {
        match self.mistake {
            Some(Mistake::SkewIgnored) => Duration::from_millis(100),
            Some(_) => Duration::ZERO,
            None => Duration::from_millis(random.clone().pick(&[0, 10, 100])),
        }
    }

    /// Must replicas acknowledge each vote?
    fn is_acknowledged(&self, random: &mut Random) -> bool {
        match self.mistake {
            Some(
                Mistake::NothingAcknowledged | Mistake::CopiesAreWitnesses | Mistake::SkewIgnored,
            ) => true,
            Some(_) => false,
            None => random.chance(400),
        }
    }

    /// Little else than promotions, for a mistake. The longest ttl is given in milliseconds.
    fn focus_on_promotions(&mut self, longest: u64) {
        (
            self.nodes,
            self.clients,
            self.resources,
            self.several_permille,
        ) = (1, 4, 1, 0);
        (self.faults, self.fault_pause) = (vec![Fault::Promote], 1_500 * MILLIS);
        (self.ttl.0, self.greedy_permille, self.patient_permille) = (longest, 500, 1_000);
        self.events_max = 20_000;
        if self.has(Mistake::ReignUnchecked) {
            // A server is master again, in another reign, before its clients greet it again: they
            // do when they had no vote for the longest ttl.
            self.fault_pause = longest * MILLIS / 2;
        }
    }

    /// Nodes that are replicated groups, of which one server after another becomes the master.
    pub(super) fn focus_on_groups(&mut self, random: &mut Random) {
        self.faults.retain(|fault| {
            let of_clients = [Fault::Pause, Fault::Die, Fault::Leave, Fault::Cancel];
            let of_links = [Fault::Cut, Fault::Swallow, Fault::Stall, Fault::Clog];
            let of_servers = [Fault::Freeze, Fault::Crash, Fault::FlushScripts];
            [&of_clients[..], &of_links, &of_servers]
                .concat()
                .contains(fault)
        });
        self.faults.extend([Fault::Promote; 3]);
        let rare = [
            Fault::Freeze,
            Fault::Pause,
            Fault::EvictMarker,
            Fault::Flush,
        ];
        self.faults
            .extend(rare.into_iter().filter(|_| random.chance(300)));
        self.fault_pause = random.pick(&[400, 800, 1_500]) * MILLIS;
        (self.nodes, self.twins) = (random.pick(&[1, 1, 3]), None);
        (self.hides_info, self.restart_guard, self.walls_apart) = (false, true, 0);
        (self.wait_for_all, self.window) = (false, 1 << 20);
        self.queueing.abilities.fill(Ability::All);
        self.sharing = Sharing::NONE;
        (self.resources, self.operator_permille) = (random.pick(&[1, 1, 2]), 0);
        (self.clients, self.workers) = (random.between(2, 4) as usize, random.pick(&[1, 1, 2]));
        let longest = random.pick(&[200, 400, 800]);
        (self.ttl, self.node_timeout) = ((longest / 2, longest), Duration::from_millis(20));
        let fastest = random.pick(&[20 * MICROS, 100 * MICROS, MILLIS]);
        self.delay = (fastest, fastest * random.between(1, 5));
        (self.extend_permille, self.patient_permille) = (random.pick(&[600, 900]), 600);
        self.greedy_permille = random.pick(&[0, 0, 200]);
        (self.faults_end_at, self.events_max) = (random.between(3, 8) * SECONDS, 8_000);
        let is_acknowledged = self.is_acknowledged(random);
        let mut bound = longest / random.pick(&[2, 4, 8]);
        if self.mistake.is_some() {
            self.focus_on_promotions(longest);
        }
        if self.has(Mistake::ReclaimedAtOnce) {
            // A lock that is extended at the successor only ends at the replaced master meanwhile.
            (bound, self.greedy_permille, self.extend_permille) = (longest * 3, 0, 900);
        }
        self.groups = Some(Grouping {
            size: if is_acknowledged {
                3
            } else {
                random.pick(&[2, 3])
            },
            bound: Duration::from_millis(bound),
            is_acknowledged,
            lag: (100 * MICROS, random.pick(&[MILLIS, 5 * MILLIS])),
            late_permille: random.pick(&[0, 100, 300]),
            skew: self.skew(random),
            closing_permille: match self.mistake {
                Some(Mistake::ReignUnchecked) => 0,
                _ => random.pick(&[0, 500, 1_000]),
            },
            astray_permille: random.pick(&[0, 100, 300]),
        });
    }
}
