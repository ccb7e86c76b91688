//! The grants of one lock in the order in which it was held, and what they say about order and
//! hand-overs.
//!
//! All times are nanoseconds of CLOCK_MONOTONIC, which is one clock for all processes of a machine.

use rustix::time::{ClockId, clock_gettime};
use std::collections::HashMap;
use std::ops::Range;
use std::time::Duration;

/// The life of one lock, from the request to the end of its release.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// Just before the call that waits for the lock.
    pub asked: u64,
    /// That call has returned.
    pub granted: u64,
    /// Just before the call that releases the lock.
    pub releasing: u64,
    /// That call has returned.
    pub released: u64,
    /// Which of several permits it was, if there are several.
    pub permit: Option<u32>,
    /// How often the nodes were asked for it, of the libraries that say so.
    pub attempts: u64,
}

/// A grant to one of the clients.
#[derive(Clone, Copy, Debug)]
struct Grant {
    client: usize,
    record: Record,
}

/// All grants of a run, in the order in which the lock was held.
pub struct Handoffs {
    grants: Vec<Grant>,
    clients: usize,
    /// The part of the run that counts.
    window: Range<u64>,
}

/// Now, on the clock of all records.
pub fn now() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs()
}

/// A length as the records count.
pub fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

impl Record {
    /// As text, for another process.
    pub fn to_text(self) -> String {
        let Self { asked, granted, releasing, released, permit, attempts } = self;
        let permit = permit.map_or(0, |permit| permit + 1);
        format!("{asked}:{granted}:{releasing}:{released}:{permit}:{attempts}")
    }

    pub fn from_text(text: &str) -> Option<Self> {
        let times: Option<Vec<u64>> = text.split(':').map(|word| word.parse().ok()).collect();
        let [asked, granted, releasing, released, permit, attempts] = times?[..] else {
            return None;
        };
        let permit = u32::try_from(permit).ok()?.checked_sub(1);
        Some(Self { asked, granted, releasing, released, permit, attempts })
    }
}

impl Handoffs {
    /// Puts the records of all clients in order. Panics if two clients held the lock, or the same
    /// permit of it, at once: the time from `granted` to `releasing` belongs to one alone.
    pub fn new(clients: &[Vec<Record>], window: Range<u64>) -> Self {
        let of_client = |(client, records): (usize, &Vec<Record>)| {
            records.iter().map(|&record| Grant { client, record }).collect::<Vec<_>>()
        };
        let mut grants: Vec<_> = clients.iter().enumerate().flat_map(of_client).collect();
        grants.sort_by_key(|grant| grant.record.granted);
        let all = Self { grants, clients: clients.len(), window };
        for (held, next) in all.successions() {
            let is_free = held.record.releasing <= next.record.granted;
            assert!(is_free, "two holders of one lock at the same time");
        }
        all
    }

    /// Each grant with the one before it, of the same permit.
    fn successions(&self) -> impl Iterator<Item = (&Grant, &Grant)> {
        let mut last = HashMap::new();
        self.grants.iter().filter_map(move |next| {
            last.insert(next.record.permit, next).map(|held: &Grant| (held, next))
        })
    }

    /// The same grants, of which another part of the run counts.
    pub fn within(self, window: Range<u64>) -> Self {
        Self { window, ..self }
    }

    fn counted(&self) -> impl Iterator<Item = &Grant> {
        self.grants.iter().filter(|grant| self.window.contains(&grant.record.granted))
    }

    /// Locks granted in the window.
    pub fn count(&self) -> usize {
        self.counted().count()
    }

    /// Grants per second.
    pub fn rate(&self) -> f64 {
        self.count() as f64 * 1e9 / (self.window.end - self.window.start) as f64
    }

    /// The mean over all grants of how many other clients then waited that had asked more than
    /// `margin` earlier.
    pub fn overtaken(&self, margin: Duration) -> f64 {
        let margin = nanos(margin);
        let mut overtaken = 0;
        for (index, grant) in self.grants.iter().enumerate() {
            if !self.window.contains(&grant.record.granted) {
                continue;
            }
            // Whoever still waited at that time was granted the lock later. A client has no two
            // requests at once, so none is counted twice.
            let later = self.grants[index + 1..].iter();
            let asked = grant.record.asked;
            overtaken += later.filter(|other| other.record.asked + margin < asked).count();
        }
        overtaken as f64 / self.count().max(1) as f64
    }

    /// The grants of the client with the fewest and of the one with the most.
    pub fn fewest_and_most(&self) -> (u64, u64) {
        let mut counts = vec![0; self.clients];
        self.counted().for_each(|grant| counts[grant.client] += 1);
        let fewest = counts.iter().min().copied().unwrap_or(0);
        (fewest, counts.iter().max().copied().unwrap_or(0))
    }

    /// Attempts per grant that came after the first one and failed: each was a waiter's turn, and
    /// a majority refused.
    pub fn failed_turns(&self) -> f64 {
        let failed = self.counted().map(|grant| grant.record.attempts.saturating_sub(2));
        failed.sum::<u64>() as f64 / self.count().max(1) as f64
    }

    /// How long the requests of the window waited, whether or not they were granted in it.
    pub fn waits(&self) -> Durations {
        let records = self.grants.iter().map(|grant| grant.record);
        let asked = records.filter(|record| self.window.contains(&record.asked));
        Durations::new(asked.map(|record| record.granted - record.asked))
    }

    /// From the call that releases the lock to the return of the call that waits for it, of the
    /// next holder: for grants of the window.
    pub fn free(&self) -> Durations {
        self.free_if(|_, _| true)
    }

    /// The same, only where the next holder is another client.
    pub fn free_between_clients(&self) -> Durations {
        self.free_if(|held, next| held.client != next.client)
    }

    fn free_if(&self, is_counted: impl Fn(&Grant, &Grant) -> bool) -> Durations {
        let counted = self.successions().filter(|(held, next)| {
            self.window.contains(&next.record.granted) && is_counted(held, next)
        });
        Durations::new(counted.map(|(held, next)| next.record.granted - held.record.releasing))
    }
}

/// Durations in ascending order.
pub struct Durations(Vec<u64>);

impl Durations {
    pub fn new(nanos: impl Iterator<Item = u64>) -> Self {
        let mut sorted: Vec<_> = nanos.collect();
        sorted.sort_unstable();
        Self(sorted)
    }

    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// The quantile: this share of all is at most so long.
    pub fn quantile(&self, share: f64) -> Duration {
        let rank = ((self.0.len() as f64 * share).ceil() as usize).max(1);
        Duration::from_nanos(self.0.get(rank - 1).copied().unwrap_or(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// Each lock is held for 10 ms and released in 1 ms; times in milliseconds.
    fn held(asked: u64, granted: u64) -> Record {
        let times = [asked, granted, granted + 10, granted + 11].map(|ms| ms * MS);
        let [asked, granted, releasing, released] = times;
        Record { asked, granted, releasing, released, permit: None, attempts: 1 }
    }

    fn overtaken(clients: &[Vec<Record>], margin: u64) -> f64 {
        Handoffs::new(clients, 0..1000 * MS).overtaken(Duration::from_millis(margin))
    }

    #[test]
    fn in_order_nobody_is_overtaken() {
        let clients =
            [vec![held(0, 1), held(13, 37)], vec![held(1, 13)], vec![held(2, 25), held(36, 50)]];
        assert_eq!(overtaken(&clients, 0), 0.0);
    }

    #[test]
    fn a_grant_overtakes_those_that_asked_earlier_and_still_wait() {
        // The first client takes the lock twice more while two others wait since 1 and 2 ms.
        let first = vec![held(0, 1), held(13, 14), held(26, 27)];
        let clients = [first, vec![held(1, 52)], vec![held(2, 40)]];
        // Two each by the second and the third grant, one by the grant at 40 ms.
        assert_eq!(overtaken(&clients, 0), 5.0 / 5.0);
        // The one at 40 ms had asked 1 ms later than the one that it overtook.
        assert_eq!(overtaken(&clients, 5), 4.0 / 5.0);
    }

    #[test]
    fn only_the_grants_of_the_window_count() {
        let first = vec![held(0, 1), held(13, 14), held(26, 27)];
        let clients = [first, vec![held(1, 52)], vec![held(2, 40)]];
        let handoffs = Handoffs::new(&clients, 10 * MS..30 * MS);
        assert_eq!(handoffs.count(), 2);
        assert_eq!(handoffs.overtaken(Duration::ZERO), 2.0);
        assert_eq!(handoffs.fewest_and_most(), (0, 2));
        assert_eq!(handoffs.rate(), 100.0);
        // From the releases at 11 and 24 ms to the grants at 14 and 27 ms.
        assert_eq!(handoffs.free().quantile(0.99), Duration::from_millis(3));
        assert_eq!(handoffs.free_between_clients().count(), 0);
        // Those that asked at 13 and 26 ms.
        assert_eq!(handoffs.waits().quantile(0.5), Duration::from_millis(1));
    }

    #[test]
    #[should_panic(expected = "two holders")]
    fn two_holders_at_once_are_noticed() {
        let _ = Handoffs::new(&[vec![held(0, 1)], vec![held(0, 10)]], 0..MS);
    }

    /// A grant of a permit.
    fn with(permit: u32, record: Record) -> Record {
        Record { permit: Some(permit), ..record }
    }

    #[test]
    fn permits_are_held_beside_one_another() {
        let clients = [vec![with(0, held(0, 1)), with(1, held(11, 17))], vec![with(1, held(0, 2))]];
        let handoffs = Handoffs::new(&clients, 0..20 * MS);
        // The second permit, from the release at 12 ms to the grant at 17 ms.
        assert_eq!(handoffs.free().quantile(0.5), Duration::from_millis(5));
        assert_eq!(handoffs.free().count(), 1);
    }

    #[test]
    #[should_panic(expected = "two holders")]
    fn two_holders_of_a_permit_are_noticed() {
        let clients = [vec![with(1, held(0, 1)), with(0, held(0, 2))], vec![with(1, held(0, 9))]];
        let _ = Handoffs::new(&clients, 0..MS);
    }

    #[test]
    fn turns_that_failed_are_those_between_the_first_attempt_and_the_last() {
        let attempts = |attempts, record| Record { attempts, ..record };
        let grants = vec![attempts(1, held(0, 1)), attempts(2, held(0, 20)), held(0, 40)];
        let clients = [grants, vec![attempts(4, held(0, 60))]];
        assert_eq!(Handoffs::new(&clients, 0..100 * MS).failed_turns(), 2.0 / 4.0);
    }

    #[test]
    fn text_and_back() {
        for permit in [None, Some(0), Some(7)] {
            let record = Record { permit, attempts: 3, ..held(3, 4) };
            assert_eq!(Record::from_text(&record.to_text()), Some(record));
        }
        assert_eq!(Record::from_text("1:2:3"), None);
    }
}
