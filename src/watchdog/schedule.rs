//! Locks, in the order in which they are due.

use super::guarded_lock::GuardedLock;
use crate::clock::Time;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

/// A priority queue of locks, the first due first.
#[derive(Debug)]
pub(super) struct Schedule<T> {
    entries: BinaryHeap<Reverse<Scheduled<T>>>,
    /// With this many entries, those of released locks are removed.
    sweep_at: usize,
}

#[derive(Debug)]
struct Scheduled<T> {
    at: Time,
    /// How much earlier it may be taken, together with others.
    slack: Duration,
    lock: T,
}

impl<T: AsRef<GuardedLock>> Schedule<T> {
    pub(super) fn new() -> Self {
        Self {
            entries: BinaryHeap::new(),
            sweep_at: 0,
        }
    }

    pub(super) fn insert(&mut self, at: Time, slack: Duration, lock: T) {
        if self.entries.len() >= self.sweep_at {
            // A release does not remove its entry: that would cost every release a wake-up. With
            // this there are at most twice as many entries as locks that are held.
            self.entries
                .retain(|Reverse(entry)| !entry.lock.as_ref().is_released());
            self.sweep_at = 2 * self.entries.len() + 64;
        }
        self.entries.push(Reverse(Scheduled { at, slack, lock }));
    }

    pub(super) fn next_at(&self) -> Option<Time> {
        self.entries.peek().map(|Reverse(entry)| entry.at)
    }

    /// Takes the locks that are due, and if there are any, those that may be taken early.
    pub(super) fn take_due(&mut self, now: Time, slack_max: Duration) -> Vec<T> {
        let mut taken = Vec::new();
        if self.next_at().is_none_or(|at| at > now) {
            return taken;
        }
        let mut put_back = Vec::new();
        while self.next_at().is_some_and(|at| at <= now.after(slack_max)) {
            let Some(Reverse(entry)) = self.entries.pop() else {
                break;
            };
            if entry.at <= now.after(entry.slack) {
                taken.push(entry.lock);
            } else {
                put_back.push(Reverse(entry));
            }
        }
        self.entries.extend(put_back);
        taken
    }

    pub(super) fn drain(&mut self) -> impl Iterator<Item = T> {
        self.entries.drain().map(|Reverse(entry)| entry.lock)
    }
}

impl<T> Ord for Scheduled<T> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.at.cmp(&other.at)
    }
}

impl<T> PartialOrd for Scheduled<T> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> PartialEq for Scheduled<T> {
    fn eq(&self, other: &Self) -> bool {
        self.at == other.at
    }
}

impl<T> Eq for Scheduled<T> {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::NodeSet;
    use crate::watchdog::fixture::{at, held_lock};
    use std::sync::Arc;

    const SLACK: Duration = Duration::from_millis(100);

    fn ends(taken: &[Arc<GuardedLock>]) -> Vec<Time> {
        taken.iter().map(|held| held.valid_until()).collect()
    }

    #[test]
    fn locks_that_are_due_take_along_those_that_may_be_early() {
        let mut schedule = Schedule::new();
        let entries = [
            (1_000, 0),
            (1_050, 60),
            (1_060, 0),
            (1_090, 90),
            (1_200, 500),
        ];
        for (millis, slack) in entries {
            schedule.insert(at(millis), Duration::from_millis(slack), held_lock(millis));
        }
        assert_eq!(schedule.next_at(), Some(at(1_000)));
        assert!(
            schedule.take_due(at(999), SLACK).is_empty(),
            "no lock is due"
        );
        let taken = schedule.take_due(at(1_000), SLACK);
        assert_eq!(ends(&taken), [at(1_000), at(1_050), at(1_090)]);
        assert_eq!(schedule.next_at(), Some(at(1_060)));
        assert_eq!(
            ends(&schedule.take_due(at(5_000), SLACK)),
            [at(1_060), at(1_200)]
        );
        assert_eq!(schedule.next_at(), None);
    }

    #[test]
    fn entries_of_released_locks_do_not_pile_up() {
        let mut schedule = Schedule::new();
        schedule.insert(at(60_000), SLACK, held_lock(60_000));
        for _ in 0..10_000 {
            let released = held_lock(50_000);
            schedule.insert(at(50_000), SLACK, Arc::clone(&released));
            released.close(at(1), NodeSet::all(3));
            assert!(
                schedule.entries.len() <= 66 + 2,
                "{}",
                schedule.entries.len()
            );
        }
        assert!(
            schedule
                .drain()
                .any(|held| held.valid_until() == at(60_000))
        );
    }
}
