//! Histories full of something rare.

use super::{BrokenAssumption, Fault, Options, Sharing};
use crate::clock::{MICROS, MILLIS, SECONDS};
use crate::mistake::Mistake;
use crate::node::Ability;
use crate::random::Random;
use redlatch_protocol::engine::Ttl;
use std::time::Duration;

impl Options {
    /// Some faults that the algorithm must survive are rare: makes histories full of them, or of
    /// what shows a mistake.
    pub(super) fn focus(&mut self, random: &mut Random) {
        match self.broken_assumption {
            BrokenAssumption::NoneWithTwins => {
                self.hides_info = false;
                self.fault_pause = 30 * MILLIS;
                self.restart_guard = false;
                self.faults = vec![Fault::Trouble, Fault::Cut];
            }
            BrokenAssumption::NoneWithStalls => {
                (self.nodes, self.twins, self.restart_guard) = (3, None, false);
                (self.clients, self.workers, self.resources) = (3, 1, 1);
                (self.ttl, self.node_timeout) = ((100, 100), Duration::from_millis(200));
                (self.wait_for_all, self.split_permille, self.window) = (false, 0, 1 << 20);
                (self.extend_permille, self.patient_permille) = (800, 600);
                (self.fault_pause, self.faults) = (30 * MILLIS, vec![Fault::Stall]);
                (self.faults_end_at, self.events_max) = (2 * SECONDS, 6_000);
            }
            BrokenAssumption::NoneWithSilence => {
                (self.nodes, self.twins, self.restart_guard) = (3, None, false);
                (self.clients, self.workers, self.resources) = (3, 1, 1);
                (self.ttl, self.node_timeout) = ((400, 400), Duration::from_millis(200));
                (self.wait_for_all, self.split_permille, self.window) = (false, 0, 1 << 20);
                (
                    self.extend_permille,
                    self.patient_permille,
                    self.operator_permille,
                ) = (0, 1_000, 0);
                (self.fault_pause, self.faults) = (100 * MILLIS, vec![Fault::Freeze]);
                (self.faults_end_at, self.events_max, self.heals_least) = (SECONDS, 6_000, true);
                // In the queue, votes are not split.
                self.queueing.waiter_lease = None;
            }
            BrokenAssumption::NoneQuiet => self.focus_on_order(random),
            BrokenAssumption::NoneWithLinks => self.focus_on_links(random),
            BrokenAssumption::NoneWithIdleClients => self.focus_on_idle_clients(random),
            BrokenAssumption::NoneWithRegisters | BrokenAssumption::RegistersRestored => {
                self.focus_on_registers(random);
            }
            BrokenAssumption::NoneWithTransactions => self.focus_on_transactions(random),
            BrokenAssumption::NoneWithGroups => self.focus_on_groups(random),
            BrokenAssumption::Strays => {
                self.focus_on_strays(random);
                self.nodes = random.pick(&[1, 2, 3]);
                (self.fence_permille, self.several_permille) = (0, 0);
                (self.resources, self.rest) = (1, 10 * MILLIS);
                // Replies take long, so many are pending when an unsolicited one arrives.
                self.delay = (MILLIS, 15 * MILLIS);
                self.node_timeout = Duration::from_millis(50);
            }
            BrokenAssumption::None if self.mistake.is_none() => match random.below(10) {
                0 => self.focus_on_late(random),
                1 => self.focus_on_strays(random),
                2 | 3 => self.focus_on_order(random),
                _ => {}
            },
            _ => {}
        }
        self.aim(random);
    }

    /// Connections that are abandoned while bytes on them are in flight: the node timeout is short,
    /// locks are extended often, and a late extension is much shorter than the one that was
    /// confirmed meanwhile.
    pub(super) fn focus_on_late(&mut self, random: &mut Random) {
        self.faults
            .retain(|fault| *fault != Fault::Late && random.chance(150));
        self.faults.extend([Fault::Late; 2]);
        self.fault_pause = random.pick(&[100, 200, 300]) * MILLIS;
        (self.nodes, self.twins) = (random.pick(&[1, 2, 3, 3, 3, 5]), None);
        let longest = random.pick(&[1_000, 1_000, 3_000]);
        (self.ttl, self.ttls_differ) = ((longest / 5, longest), true);
        self.node_timeout = Duration::from_millis(random.pick(&[5, 5, 5, 10]));
        (self.wait_for_all, self.resources) = (false, 1);
        self.clients = random.between(2, 4) as usize;
        self.extend_permille = 900;
        self.greedy_permille = 200;
        self.patient_permille = 600;
        (self.faults_end_at, self.events_max) = (3 * SECONDS, 6_000);
    }

    /// No faults, and locks that are released in time: waiters must be served in order, and soon.
    pub(super) fn focus_on_order(&mut self, random: &mut Random) {
        (self.faults, self.queueing.is_quiet, self.twins) = (Vec::new(), true, None);
        (self.tail_permille, self.window, self.restart_guard) = (0, 1 << 20, false);
        let fastest = random.pick(&[20 * MICROS, 100 * MICROS, 300 * MICROS]);
        self.delay = (fastest, fastest * random.between(1, 15));
        self.node_timeout = Duration::from_millis(100);
        let longest = random.pick(&[1_000, 3_000]);
        (self.ttl, self.queueing.wait_max) =
            ((longest / 2, longest), random.pick(&[1_000, 5_000, 20_000]));
        self.queueing.waiter_lease = Ttl::from_duration(Duration::from_millis(1_500));
        let lacks = [
            Ability::All,
            Ability::Resp2,
            Ability::NoTracking,
            Ability::NoChannels,
        ];
        if self.mistake.is_some() || random.chance(700) {
            self.queueing.abilities.fill(Ability::All);
        } else {
            self.queueing.abilities.fill_with(|| random.pick(&lacks));
        }
        (self.clients, self.workers) = (random.between(2, 5) as usize, random.pick(&[1, 1, 2]));
        self.resources = random.pick(&[1, 1, 2]);
        (self.several_permille, self.operator_permille) = (random.pick(&[0, 400]), 0);
        self.sharing.keep_permille = 0;
        self.sharing.resources = self.sharing.resources.min(self.resources);
        if self.sharing.permille > 0 && random.chance(150) {
            self.sharing = Sharing::readers_only(self.resources);
            self.several_permille = 0;
        }
        (self.queueing.unqueued_permille, self.greedy_permille) = (0, 0);
        self.patient_permille = random.pick(&[300, 800, 1_000]);
        (self.rest, self.is_lined) = (random.pick(&[MILLIS, 10 * MILLIS]), random.chance(500));
        (self.faults_end_at, self.events_max) = (5 * SECONDS, 10_000);
    }

    /// Permits that are held for long by clients that make no call meanwhile, and links of which
    /// each has a delay of its own: nodes carry out releases and turns in different orders.
    fn focus_on_links(&mut self, random: &mut Random) {
        self.focus_on_order(random);
        self.queueing.abilities.fill(Ability::All);
        (self.has_steady_links, self.delay) = (true, (100 * MICROS, 3 * MILLIS));
        (self.nodes, self.clients, self.workers) = (random.pick(&[3, 3, 5]), 8, 1);
        (self.resources, self.patient_permille, self.extend_permille) = (1, 1_000, 0);
        (self.ttl, self.rest) = ((20_000, 20_000), MILLIS);
        (self.faults_end_at, self.queueing.wait_max) = (20 * SECONDS, 20_000);
        let permits = random.pick(&[[3; 3], [4; 3], [5; 3]]);
        self.sharing = Sharing {
            permille: 1_000,
            readers_permille: 0,
            permits,
            ..Sharing::readers_only(1)
        };
    }

    /// Waiters that live and never claim the lock, in front of others that do.
    fn focus_on_idle_clients(&mut self, random: &mut Random) {
        self.focus_on_order(random);
        self.queueing.abilities.fill(Ability::All);
        self.queueing.idle_clients = random.between(1, 2) as usize;
        (self.resources, self.patient_permille, self.sharing.permille) = (1, 1_000, 0);
    }

    /// Unsolicited replies, on most connections of a client at a time.
    fn focus_on_strays(&mut self, random: &mut Random) {
        self.faults
            .retain(|fault| *fault != Fault::Stray && random.chance(250));
        self.faults.extend([Fault::Stray; 4]);
        self.fault_pause = random.pick(&[30, 100]) * MILLIS;
        (self.resources, self.wait_for_all) = (random.pick(&[1, 1, 2]), false);
        self.clients = random.between(2, 4) as usize;
        self.nodes = random.pick(&[1, 2, 3, 3, 3, 5]);
        self.twins = None;
        self.fence_permille = random.pick(&[0, 0, 300]);
        self.extend_permille = random.pick(&[0, 600]);
        self.faults_end_at = 2 * SECONDS;
    }

    /// Some mistakes show only in few histories: makes these more frequent.
    fn aim(&mut self, random: &mut Random) {
        match self.mistake {
            Some(Mistake::ExtensionShortens | Mistake::KillIgnored) => self.focus_on_late(random),
            Some(Mistake::LooksAtEndsOnly) => self.focus_on_strays(random),
            Some(Mistake::UnseenRemoved) => self.operator_permille = 200,
            Some(Mistake::CounterForgotten) => {
                (self.fence_permille, self.walls_apart) = (1_000, 100_000_000);
                (self.clients, self.resources) = (4, 1);
            }
            Some(Mistake::TokenReused) => {
                (self.nodes, self.twins) = (1, None);
                self.clients = 4;
                self.resources = 1;
                self.faults = vec![Fault::Stall];
                self.fault_pause = 30 * MILLIS;
                self.node_timeout = self.node_timeout.min(Duration::from_millis(5));
            }
            Some(Mistake::DriftIgnored | Mistake::ValidityFromReply) => {
                self.resources = 1;
                self.clients = 4;
                self.drift = 5_000_000;
                (self.greedy_permille, self.patient_permille) = (800, 600);
            }
            Some(Mistake::HandoffAssumed) => {
                (self.workers, self.resources, self.clients) = (3, 1, 4);
                (self.is_lined, self.handoffs_max, self.patient_permille) = (true, 1_000, 1_000);
            }
            Some(Mistake::TwinsUnrecognised) => {
                self.hides_info = false;
                (self.nodes, self.twins, self.clients) = (3, Some((0, 2)), 4);
                (self.resources, self.restart_guard) = (1, false);
            }
            Some(Mistake::QueueForgotten | Mistake::PushesLost) => self.focus_on_order(random),
            Some(Mistake::TurnAssumed) => {
                (self.clients, self.resources, self.patient_permille) = (4, 1, 800);
                self.queueing.waiter_lease = Ttl::from_duration(Duration::from_millis(100));
                self.queueing.abilities.fill(Ability::All);
            }
            Some(Mistake::ClockStopsInSuspend) => {
                self.resources = 1;
                self.faults = vec![Fault::Pause];
            }
            _ => self.aim_at_shares(random),
        }
    }

    fn aim_at_shares(&mut self, random: &mut Random) {
        let readers = Sharing::readers_only(1);
        match self.mistake {
            Some(Mistake::SharesIgnored | Mistake::PermitsReused) => {
                (self.clients, self.resources, self.patient_permille) = (4, 1, 600);
                self.sharing = Sharing {
                    permille: 500,
                    permits: [2; 3],
                    ..readers
                };
                let is_permit = self.has(Mistake::PermitsReused);
                self.sharing.readers_permille = if is_permit { 0 } else { 1_000 };
            }
            Some(Mistake::ReadersUncounted) => {
                (self.clients, self.resources, self.fence_permille) = (4, 1, 1_000);
                self.sharing = Sharing {
                    permille: 500,
                    ..readers
                };
            }
            Some(Mistake::ReadersPass | Mistake::PermitsPass) => {
                self.focus_on_order(random);
                (self.resources, self.clients) = (1, 5);
                self.sharing = Sharing {
                    permille: 600,
                    resources: 1,
                    permits: [2; 3],
                    ..readers
                };
                let is_permit = self.has(Mistake::PermitsPass);
                self.sharing.readers_permille = if is_permit { 0 } else { 1_000 };
            }
            Some(Mistake::ReadersRefused) => {
                self.focus_on_order(random);
                self.sharing = Sharing::readers_only(self.resources);
            }
            _ => {}
        }
    }
}
