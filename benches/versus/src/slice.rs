//! What the records of a slice say: how many locks, how long clients waited, in which order they
//! were served, and how long the lock was free between two holders.

use crate::traffic::Usage;
use crate::work::{Kind, Record, nanos};
use std::collections::HashMap;
use std::ops::Range;
use std::time::Duration;

/// Clients that ask within the time that a request takes have no order.
const MARGIN: Duration = Duration::from_millis(5);

/// The results of all clients of a lane in one slice.
#[derive(Debug, Default)]
pub struct Slice {
    /// Locks granted in the window.
    pub pairs: u64,
    /// Those of the slowest client as a share of those of the fastest one.
    pub fairness: f64,
    pub wall: Duration,
    /// Of the clients' processes.
    pub cpu: Duration,
    /// The same in instructions, without the kernel's, if all of them count.
    pub instructions: Option<u64>,
    /// Of all servers together, in the same time.
    pub servers_cpu: Duration,
    /// What the servers did, where they are Redis.
    pub usage: Usage,
    /// Changes of which it is not known whether they were made.
    pub unknown: u64,
    /// From the call to the lock.
    pub waits: Durations,
    /// Of contended locks: from the call that releases the lock to the return of the next holder's
    /// call that waits for it.
    pub free: Durations,
    /// Of contended locks: the share of grants that did not go to the client that had just released
    /// the lock.
    pub moved: f64,
    /// Of contended locks: how many other clients then waited that had asked more than [`MARGIN`]
    /// earlier, per grant.
    pub overtaken: f64,
}

impl Slice {
    /// Counts the grants and requests of the window. Panics if two clients held a contended lock,
    /// or the same permit of it, at once: the time from `granted` to `releasing` belongs to one
    /// alone.
    pub fn new(clients: &[Vec<Record>], kind: Kind, window: Range<u64>) -> Self {
        let records = || clients.iter().flatten();
        let is_granted = |record: &&Record| window.contains(&record.granted);
        let counts = clients
            .iter()
            .map(|records| records.iter().filter(is_granted).count() as u64);
        let fewest = counts.clone().min();
        let most = counts.clone().max();
        let asked = records().filter(|record| window.contains(&record.asked));
        let mut slice = Self {
            pairs: counts.sum(),
            fairness: fewest.unwrap_or(0) as f64 / most.unwrap_or(0).max(1) as f64,
            wall: Duration::from_nanos(window.end - window.start),
            unknown: records().map(|record| record.note.unknown).sum(),
            waits: Durations::new(asked.map(|record| record.granted - record.asked)),
            ..Self::default()
        };
        if kind == Kind::Contended {
            slice.count_handoffs(clients, &window);
        }
        slice
    }

    fn count_handoffs(&mut self, clients: &[Vec<Record>], window: &Range<u64>) {
        let of_client = |(client, records)| std::iter::repeat(client).zip::<&Vec<_>>(records);
        let mut grants: Vec<_> = clients.iter().enumerate().flat_map(of_client).collect();
        grants.sort_by_key(|(_, record)| record.granted);
        let mut last: HashMap<Option<u64>, (usize, &Record)> = HashMap::new();
        let mut free = Vec::new();
        let mut moved = 0;
        let mut overtaken = 0;
        for (index, &(client, record)) in grants.iter().enumerate() {
            let before = last.insert(record.note.permit, (client, record));
            let is_free = before.is_none_or(|(_, held)| held.releasing <= record.granted);
            assert!(is_free, "two holders of one lock at the same time");
            if window.contains(&record.granted) {
                free.extend(before.map(|(_, held)| record.granted - held.releasing));
                moved += u64::from(before.is_some_and(|(holder, _)| holder != client));
                // Whoever still waited at that time was granted the lock later. A client has no two
                // requests at once, so none is counted twice.
                let waited_longer =
                    |later: &&(usize, &Record)| later.1.asked + nanos(MARGIN) < record.asked;
                overtaken += grants[index + 1..].iter().filter(waited_longer).count();
            }
        }
        self.free = Durations::new(free.into_iter());
        self.moved = moved as f64 / self.pairs.max(1) as f64;
        self.overtaken = overtaken as f64 / self.pairs.max(1) as f64;
    }

    pub fn rate(&self) -> f64 {
        self.pairs as f64 / self.wall.as_secs_f64()
    }

    /// Seconds of the clients' processor time, and of the servers'.
    pub fn cpu_per_pair(&self) -> f64 {
        self.cpu.as_secs_f64() / self.pairs as f64
    }

    /// NaN if they are not counted.
    pub fn instructions_per_pair(&self) -> f64 {
        self.instructions
            .map_or(f64::NAN, |count| count as f64 / self.pairs as f64)
    }

    pub fn servers_cpu_per_pair(&self) -> f64 {
        self.servers_cpu.as_secs_f64() / self.pairs as f64
    }

    /// Seconds to get the lock, half of the time.
    pub fn p50(&self) -> f64 {
        self.waits.quantile(0.5).as_secs_f64()
    }
}

/// Durations in ascending order.
#[derive(Debug, Default)]
pub struct Durations(Vec<u64>);

impl Durations {
    pub fn new(nanos: impl Iterator<Item = u64>) -> Self {
        let mut sorted: Vec<_> = nanos.collect();
        sorted.sort_unstable();
        Self(sorted)
    }

    pub fn together<'a>(all: impl Iterator<Item = &'a Self>) -> Self {
        Self::new(all.flat_map(|durations| durations.0.iter().copied()))
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
    use crate::work::Note;

    const MS: u64 = 1_000_000;

    /// Each lock is held for 10 ms and released in 1 ms; times in milliseconds.
    fn held(asked: u64, granted: u64) -> Record {
        let times = [asked, granted, granted + 10, granted + 11].map(|ms| ms * MS);
        let [asked, granted, releasing, released] = times;
        Record {
            asked,
            granted,
            releasing,
            released,
            note: Note::default(),
        }
    }

    /// A grant of a permit.
    fn with(permit: u64, record: Record) -> Record {
        Record {
            note: Note {
                permit: Some(permit),
                unknown: 0,
            },
            ..record
        }
    }

    fn contended(clients: &[Vec<Record>], window: Range<u64>) -> Slice {
        Slice::new(clients, Kind::Contended, window)
    }

    #[test]
    fn in_order_nobody_is_overtaken() {
        let clients = [
            vec![held(0, 1), held(13, 37)],
            vec![held(1, 13)],
            vec![held(2, 25), held(36, 50)],
        ];
        let slice = contended(&clients, 0..1000 * MS);
        assert_eq!(
            (slice.overtaken, slice.moved, slice.fairness),
            (0.0, 0.8, 0.5)
        );
    }

    #[test]
    fn a_grant_of_the_window_overtakes_those_that_asked_earlier_and_still_wait() {
        // The first client takes the lock twice more while two others wait since 1 and 2 ms. The
        // one at 40 ms had asked 1 ms later than the one that it overtakes: they have no order.
        let first = vec![held(0, 1), held(13, 14), held(26, 27)];
        let clients = [first, vec![held(1, 52)], vec![held(2, 40)]];
        assert_eq!(contended(&clients, 0..1000 * MS).overtaken, 4.0 / 5.0);
        let slice = contended(&clients, 10 * MS..30 * MS);
        assert_eq!((slice.pairs, slice.fairness), (2, 0.0));
        assert_eq!(
            (slice.rate(), slice.overtaken, slice.moved),
            (100.0, 2.0, 0.0)
        );
        // From the releases at 11 and 24 ms to the grants at 14 and 27 ms.
        assert_eq!(slice.free.0, [3 * MS; 2]);
        // Those that asked at 13 and 26 ms.
        assert_eq!(slice.waits.0, [MS; 2]);
    }

    #[test]
    fn permits_are_held_beside_one_another() {
        let clients = [
            vec![with(0, held(0, 1)), with(1, held(11, 17))],
            vec![with(1, held(0, 2))],
        ];
        // The second permit, from the release at 12 ms to the grant at 17 ms.
        assert_eq!(contended(&clients, 0..20 * MS).free.0, [5 * MS]);
    }

    #[test]
    #[should_panic(expected = "two holders")]
    fn two_holders_at_once_are_noticed() {
        let clients = [
            vec![with(1, held(0, 1)), with(0, held(0, 2))],
            vec![with(1, held(0, 9))],
        ];
        let _ = contended(&clients, 0..MS);
    }

    #[test]
    fn the_median_of_a_hundred_is_the_fiftieth() {
        let durations = Durations::new(1..=100);
        assert_eq!(
            [0.5, 0.99].map(|share| durations.quantile(share).as_nanos()),
            [50, 99]
        );
    }
}
