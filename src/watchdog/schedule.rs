//! Locks, in the order in which something is to be done with them.

use super::shared_lease::SharedLease;
use crate::clock::Time;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

/// Those that are waited for.
#[derive(Debug)]
pub(super) struct Schedule<T> {
    alarms: BinaryHeap<Reverse<Alarm<T>>>,
    /// With so many, those that were given up are looked for.
    sweep_at: usize,
}

/// When something is to be done with a lock.
#[derive(Debug)]
struct Alarm<T> {
    at: Time,
    /// By how much earlier it may be done, together with others.
    slack: Duration,
    lock: T,
}

impl<T: AsRef<SharedLease>> Schedule<T> {
    pub(super) fn new() -> Self {
        Self { alarms: BinaryHeap::new(), sweep_at: 0 }
    }

    /// Something is to be done with `lock` at this time, or up to `slack` earlier.
    pub(super) fn put(&mut self, at: Time, slack: Duration, lock: T) {
        if self.alarms.len() >= self.sweep_at {
            // A lock that was given up is not waited for, and does not say so: that would cost
            // every release a wake-up. So there are at most twice as many here as are held.
            self.alarms.retain(|Reverse(alarm)| !alarm.lock.as_ref().is_released());
            self.sweep_at = 2 * self.alarms.len() + 64;
        }
        self.alarms.push(Reverse(Alarm { at, slack, lock }));
    }

    /// When there is something to do.
    pub(super) fn next(&self) -> Option<Time> {
        self.alarms.peek().map(|Reverse(alarm)| alarm.at)
    }

    /// Those with which something is to be done now, and once there are any, those with which it
    /// may be done.
    pub(super) fn take(&mut self, now: Time, slack_max: Duration) -> Vec<T> {
        let mut taken = Vec::new();
        if self.next().is_none_or(|at| at > now) {
            return taken;
        }
        let mut put_back = Vec::new();
        while self.next().is_some_and(|at| at <= now.after(slack_max)) {
            let Some(Reverse(alarm)) = self.alarms.pop() else { break };
            if alarm.at <= now.after(alarm.slack) {
                taken.push(alarm.lock);
            } else {
                put_back.push(Reverse(alarm));
            }
        }
        self.alarms.extend(put_back);
        taken
    }

    /// All that are left.
    pub(super) fn drain(&mut self) -> impl Iterator<Item = T> {
        self.alarms.drain().map(|Reverse(alarm)| alarm.lock)
    }
}

impl<T> Ord for Alarm<T> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.at.cmp(&other.at)
    }
}

impl<T> PartialOrd for Alarm<T> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> PartialEq for Alarm<T> {
    fn eq(&self, other: &Self) -> bool {
        self.at == other.at
    }
}

impl<T> Eq for Alarm<T> {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::NodeSet;
    use crate::watchdog::fixture::{at, lease};
    use std::sync::Arc;

    const SLACK: Duration = Duration::from_millis(100);

    fn ends(taken: &[Arc<SharedLease>]) -> Vec<Time> {
        taken.iter().map(|lease| lease.valid_until()).collect()
    }

    #[test]
    fn what_is_due_takes_along_what_may_be_done_and_nothing_else() {
        let mut schedule = Schedule::new();
        let alarms = [(1_000, 0), (1_050, 60), (1_060, 0), (1_090, 90), (1_200, 500)];
        for (millis, slack) in alarms {
            schedule.put(at(millis), Duration::from_millis(slack), lease(millis));
        }
        assert_eq!(schedule.next(), Some(at(1_000)));
        assert!(schedule.take(at(999), SLACK).is_empty(), "nothing is due");
        let taken = schedule.take(at(1_000), SLACK);
        assert_eq!(ends(&taken), [at(1_000), at(1_050), at(1_090)]);
        assert_eq!(schedule.next(), Some(at(1_060)));
        assert_eq!(ends(&schedule.take(at(5_000), SLACK)), [at(1_060), at(1_200)]);
        assert_eq!(schedule.next(), None);
    }

    #[test]
    fn locks_that_were_given_up_do_not_pile_up() {
        let mut schedule = Schedule::new();
        schedule.put(at(60_000), SLACK, lease(60_000));
        for _ in 0..10_000 {
            let given_up = lease(50_000);
            schedule.put(at(50_000), SLACK, Arc::clone(&given_up));
            given_up.close(at(1), NodeSet::all(3));
            assert!(schedule.alarms.len() <= 66 + 2, "{}", schedule.alarms.len());
        }
        assert!(schedule.drain().any(|lease| lease.valid_until() == at(60_000)));
    }
}
