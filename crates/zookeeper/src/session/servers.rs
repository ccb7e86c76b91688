//! Whose turn it is to be connected to, and the pauses between attempts.

use redlatch_protocol::engine::Jitter;
use redlatch_protocol::time::Time;
use std::time::Duration;

/// The servers of an ensemble: in a random order, one after the other, again and again. When all
/// have failed in a row there is a random pause, below a ceiling that doubles with each such round.
#[derive(Debug)]
pub(super) struct Servers {
    order: Vec<usize>,
    /// The place in the order.
    at: usize,
    /// Attempts that failed in a row.
    failures: u32,
    /// The ceiling of the first pause, and of any.
    pauses: (Duration, Duration),
    jitter: Jitter,
}

impl Servers {
    pub(super) fn new(count: usize, pauses: (Duration, Duration), seed: u64) -> Self {
        debug_assert!(count > 0, "an ensemble has a server");
        let jitter = Jitter::from_seed(seed);
        let order = (0..count).collect();
        let mut servers = Self { order, at: 0, failures: 0, pauses, jitter };
        for last in (1..count).rev() {
            let other = servers.jitter.next_u64() % (last as u64 + 1);
            servers.order.swap(last, other as usize);
        }
        servers
    }

    /// The server to connect to.
    pub(super) fn current(&self) -> usize {
        self.order[self.at]
    }

    /// The current server failed, and the next one has its turn. `has_lasted`: whether it was of
    /// use for a while before. Returns when the next attempt may begin.
    pub(super) fn failed(&mut self, now: Time, has_lasted: bool) -> Time {
        self.at = (self.at + 1) % self.order.len();
        self.failures = if has_lasted { 1 } else { self.failures.saturating_add(1) };
        let servers = u32::try_from(self.order.len()).unwrap_or(u32::MAX);
        if self.failures % servers != 0 {
            return now;
        }
        let rounds = self.failures / servers;
        let doubled = self.pauses.0.saturating_mul(2_u32.saturating_pow(rounds - 1));
        now.after(self.jitter.below(doubled.min(self.pauses.1)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    const PAUSES: (Duration, Duration) = (Duration::from_millis(10), Duration::from_millis(25));

    #[test]
    fn each_server_has_its_turn_in_an_order_that_differs_between_clients() {
        let mut orders = BTreeSet::new();
        for seed in 0..100 {
            let mut servers = Servers::new(3, PAUSES, seed);
            let mut order = Vec::new();
            for _ in 0..6 {
                order.push(servers.current());
                servers.failed(Time::ZERO, false);
            }
            assert_eq!(order[..3], order[3..]);
            assert_eq!(BTreeSet::from([0, 1, 2]), order.iter().copied().collect());
            orders.insert(order);
        }
        assert_eq!(orders.len(), 6);
    }

    #[test]
    fn there_is_a_pause_when_all_have_failed_and_it_grows() {
        let mut longest = [Duration::ZERO; 9];
        for seed in 0..1_000 {
            let mut servers = Servers::new(3, PAUSES, seed);
            for longest in &mut longest {
                let pause = servers.failed(Time::ZERO, false).since(Time::ZERO);
                *longest = pause.max(*longest);
            }
        }
        for (index, longest) in longest.into_iter().enumerate() {
            let ceiling = Duration::from_millis([0, 0, 10, 0, 0, 20, 0, 0, 25][index]);
            assert!(longest <= ceiling && longest * 10 >= ceiling * 9, "{index}: {longest:?}");
        }
    }

    #[test]
    fn a_server_that_was_of_use_is_followed_by_another_at_once() {
        let mut servers = Servers::new(2, PAUSES, 7);
        servers.failed(Time::ZERO, false);
        assert!(servers.failed(Time::ZERO, false) > Time::ZERO);
        servers.failed(Time::ZERO, false);
        assert_eq!(servers.failed(Time::ZERO, true), Time::ZERO);
        let mut alone = Servers::new(1, PAUSES, 7);
        assert!(alone.failed(Time::ZERO, true) > Time::ZERO, "there is no other");
        for _ in 0..100 {
            assert!(alone.failed(Time::ZERO, false).since(Time::ZERO) <= PAUSES.1);
        }
    }
}
