//! Histories in which threads use registers instead of locks.

use super::kinds::FAULTS_OF_REGISTERS;
use super::{BrokenAssumption, Fault, Options, Sharing};
use crate::clock::{MICROS, MILLIS};
use crate::mistake::Mistake;
use crate::node::Ability;
use crate::random::Random;
use crate::register::SIDES;
use std::time::Duration;

/// The longest timeout of a node where a mistake is to be seen soon.
const TIMEOUT_MAX: Duration = Duration::from_millis(50);

/// What threads do with registers.
#[derive(Clone, Debug)]
pub(crate) struct Registering {
    /// Which servers keep all that they answer.
    pub(crate) durable: Vec<bool>,
    /// How often a call is a read, and how often it is one of these.
    pub(crate) read_permille: u64,
    pub(crate) delete_permille: u64,
    pub(crate) set_permille: u64,
    pub(crate) fenced_permille: u64,
    pub(crate) repair_permille: u64,
    /// How often a fault may take a vote away of which the others need each.
    pub(crate) careless_permille: u64,
    /// Are clients sides of transactions?
    pub(crate) has_transactions: bool,
}

impl Registering {
    fn draw(random: &mut Random, nodes: usize) -> Self {
        let permille = random.pick(&[0, 0, 500, 1_000]);
        Self {
            durable: (0..nodes).map(|_| random.chance(permille)).collect(),
            read_permille: random.pick(&[100, 300, 600]),
            delete_permille: random.pick(&[0, 50, 300]),
            set_permille: random.pick(&[0, 200]),
            fenced_permille: random.pick(&[0, 200]),
            repair_permille: random.pick(&[50, 200, 500]),
            careless_permille: random.pick(&[0, 0, 0, 100]),
            has_transactions: false,
        }
    }
}

impl Options {
    pub(super) fn focus_on_registers(&mut self, random: &mut Random) {
        (self.twins, self.restart_guard, self.hides_info) = (None, false, false);
        (self.sharing, self.operator_permille) = (Sharing::NONE, 0);
        self.queueing.abilities.fill(Ability::All);
        self.faults = FAULTS_OF_REGISTERS
            .into_iter()
            .filter(|_| random.chance(350))
            .collect();
        self.nodes = random.pick(&[1, 2, 3, 3, 3, 3, 3, 4, 5, 5, 5, 6, 7]);
        self.node_timeout = Duration::from_millis(random.pick(&[10, 20, 50, 50, 200]));
        self.fault_pause = random.pick(&[30, 100, 300]) * MILLIS;
        self.clients = random.between(1, 4) as usize;
        self.resources = random.pick(&[1, 1, 1, 2, 4]);
        self.rest = random.pick(&[MILLIS, 5 * MILLIS, 20 * MILLIS]);
        self.events_max = random.pick(&[1_000, 2_000, 4_000]);
        let mut registers = Registering::draw(random, self.nodes);
        if self.broken_assumption == BrokenAssumption::RegistersRestored {
            registers.durable.fill(true);
            (self.nodes, self.resources) = (random.pick(&[3, 3, 5]), 1);
            registers.durable.resize(self.nodes, true);
            (self.faults, self.fault_pause) = (vec![Fault::Crash], 30 * MILLIS);
        }
        self.aim_at_registers(random, &mut registers);
        self.registers = Some(registers);
    }

    /// The first thread of each client is a side, the other one uses registers.
    pub(super) fn focus_on_transactions(&mut self, random: &mut Random) {
        self.focus_on_registers(random);
        (self.clients, self.workers, self.rest) = (SIDES, 2, 5 * MILLIS);
        self.events_max = random.pick(&[2_000, 6_000]);
        self.registers
            .iter_mut()
            .for_each(|it| it.has_transactions = true);
        if self.mistake.is_some() {
            self.faults = vec![Fault::Clog, Fault::Stall, Fault::Die, Fault::Pause];
        } else if random.chance(700) {
            self.faults.push(Fault::Die);
        }
    }

    /// Makes histories frequent in which a mistake shows.
    fn aim_at_registers(&mut self, random: &mut Random, registers: &mut Registering) {
        let Some(mistake) = self.mistake else { return };
        self.nodes = random.pick(&[3, 3, 3, 5]);
        registers.durable.resize(self.nodes, false);
        (self.clients, self.resources, self.events_max) = (4, 1, 2_000);
        (self.node_timeout, self.fault_pause) = (self.node_timeout.min(TIMEOUT_MAX), 30 * MILLIS);
        match mistake {
            Mistake::ForgetfulNodeVotes => {
                self.faults = vec![Fault::Flush, Fault::Crash, Fault::Clog];
                registers.durable.fill(false);
            }
            Mistake::OlderStateTrusted => {
                self.faults = vec![Fault::Crash, Fault::Clog];
                registers.durable.fill(false);
            }
            Mistake::EpochKept | Mistake::CopiedFromOne => {
                // A node is refilled while a round waits for the others: for all of them, since
                // other rounds go on without a node that answers late.
                self.faults = vec![Fault::Flush, Fault::Clog, Fault::Clog];
                (self.fault_pause, registers.repair_permille) = (20 * MILLIS, 700);
                (self.node_timeout, self.delay) = (TIMEOUT_MAX * 12, (20 * MICROS, 100 * MICROS));
                (self.nodes, self.tail_permille, self.wait_for_all) = (3, 0, true);
                if mistake == Mistake::CopiedFromOne {
                    // Of many registers, one was changed at two nodes only.
                    (self.clients, self.resources) = (2, 5);
                }
            }
            Mistake::CollectedAtMajority => {
                registers.delete_permille = 400;
                self.faults = vec![Fault::Clog, Fault::Freeze, Fault::Stall];
            }
            _ => self.faults = vec![Fault::Clog, Fault::Stall, Fault::Cut, Fault::Late],
        }
    }
}
