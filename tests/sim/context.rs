//! The context that clients and nodes share: time, random numbers, the network, and the checker.

use crate::checker::Checker;
use crate::lineage::Lineage;
use crate::network::Network;
use crate::options::Options;
use crate::queue::Queue;
use crate::random::Random;
use crate::register::Call;
use crate::stray::Stray;
use crate::tally::Tally;
use std::collections::VecDeque;

#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) options: Options,
    pub(crate) queue: Queue,
    pub(crate) random: Random,
    pub(crate) network: Network,
    pub(crate) checker: Checker,
    /// The present master of each group, and its epoch, as its failover authority names it.
    pub(crate) named: Vec<(usize, u64)>,
    /// Of each server of all groups.
    pub(crate) lineages: Vec<Lineage>,
    /// Unsolicited replies in flight.
    pub(crate) strays: Vec<Stray>,
    /// When the last byte that is held back arrives.
    pub(crate) held_until: u64,
    /// The faults are over.
    pub(crate) has_faults_ended: bool,
    /// No thread requests anything any more.
    pub(crate) is_over: bool,
    /// The calls about registers that are made when the faults are over.
    pub(crate) last_calls: VecDeque<(u64, Call)>,
    pub(crate) tally: Tally,
    is_traced: bool,
    /// A digest of all events: two histories with the same digest are the same.
    pub(crate) digest: u64,
}

impl Context {
    pub(crate) fn new(options: Options, random: Random, is_traced: bool) -> Self {
        let network = Network::new(&options);
        let mut checker = Checker::new(options.nodes);
        checker.order.soon = options.queueing.soon(options.delay.1);
        checker.order.are_turns_split = options.has_steady_links;
        Self {
            options,
            queue: Queue::default(),
            random,
            network,
            checker,
            named: Vec::new(),
            lineages: Vec::new(),
            strays: Vec::new(),
            held_until: 0,
            has_faults_ended: false,
            is_over: false,
            last_calls: VecDeque::new(),
            tally: Tally::one(),
            is_traced,
            digest: 0,
        }
    }

    /// Writes a line of the trace.
    pub(crate) fn trace(&self, text: impl FnOnce() -> String) {
        if self.is_traced {
            let now = self.queue.now();
            eprintln!(
                "{:>6}.{:06} ms  {}",
                now / 1_000_000,
                now % 1_000_000,
                text()
            );
        }
    }

    /// Adds an event to the digest.
    pub(crate) fn count(&mut self, event: u64) {
        self.tally.events += 1;
        let mixed = self.digest ^ event ^ self.queue.now().rotate_left(20);
        self.digest = mixed.wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(23);
    }
}
