//! What the watchdog looks after, in the order in which something is to be done with it.

use super::Watched;
use crate::clock::Time;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

/// Those that are waited for.
#[derive(Debug, Default)]
pub(super) struct Schedule {
    alarms: BinaryHeap<Reverse<Alarm>>,
    /// With so many, those that were given up are looked for.
    sweep_at: usize,
}

/// When something is to be done with a lock.
#[derive(Debug)]
struct Alarm {
    at: Time,
    /// By how much earlier it may be done, together with others.
    slack: Duration,
    /// When the lock is lost at the latest, as far as is known.
    ends_at: Time,
    watched: Watched,
}

impl Schedule {
    /// Something is to be done with `watched` at this time, or up to `slack` earlier. It is lost at
    /// `ends_at` if nothing is done until then.
    pub(super) fn put(&mut self, at: Time, slack: Duration, ends_at: Time, watched: Watched) {
        if self.alarms.len() >= self.sweep_at {
            // A lock that was given up is not waited for, and does not say so: that would cost
            // every release a wake-up. So there are at most twice as many here as are held.
            self.alarms.retain(|Reverse(alarm)| !alarm.watched.hold.is_released());
            self.sweep_at = 2 * self.alarms.len() + 64;
        }
        self.alarms.push(Reverse(Alarm { at, slack, ends_at, watched }));
    }

    /// When there is something to do.
    pub(super) fn next(&self) -> Option<Time> {
        self.alarms.peek().map(|Reverse(alarm)| alarm.at)
    }

    /// Those with which something is to be done now, and once there are any, those with which it
    /// may be done: at most `most`.
    pub(super) fn take(&mut self, now: Time, slack_max: Duration, most: usize) -> Vec<Watched> {
        let mut taken = Vec::new();
        if self.next().is_none_or(|at| at > now) {
            return taken;
        }
        let mut put_back = Vec::new();
        while taken.len() < most && self.next().is_some_and(|at| at <= now.after(slack_max)) {
            let Some(Reverse(alarm)) = self.alarms.pop() else { break };
            if alarm.at <= now.after(alarm.slack) {
                taken.push(alarm.watched);
            } else {
                put_back.push(Reverse(alarm));
            }
        }
        self.alarms.extend(put_back);
        taken
    }

    /// When the first of them is lost if nothing is done until then.
    pub(super) fn first_end(&self) -> Time {
        let held = self.alarms.iter().filter(|Reverse(alarm)| !alarm.watched.hold.is_released());
        held.map(|Reverse(alarm)| alarm.ends_at).min().unwrap_or(Time::MAX)
    }
}

impl Ord for Alarm {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.at.cmp(&other.at)
    }
}

impl PartialOrd for Alarm {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Alarm {
    fn eq(&self, other: &Self) -> bool {
        self.at == other.at
    }
}

impl Eq for Alarm {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::{Lease, NodeSet, Token, Ttl};
    use crate::watchdog::Hold;
    use std::sync::Arc;

    const SLACK: Duration = Duration::from_millis(100);

    fn at(millis: u64) -> Time {
        Time::from_millis(millis)
    }

    /// A lock whose number is its token's first byte, and that is valid until `end`.
    fn watched(number: u8, end: Time) -> Watched {
        let ttl = Ttl::from_duration(Duration::from_secs(50)).unwrap();
        let lease = Lease {
            key: Arc::from([number]),
            token: Token::new([number; Token::LEN]),
            extras: None,
            fence: None,
            valid_until: end,
            since: Time::ZERO,
            ttl,
            ttl_longest: ttl,
            nodes: NodeSet::all(3),
        };
        Watched { hold: Arc::new(Hold::new(lease, None)), plan: None, tenure: None }
    }

    fn ends(taken: &[Watched]) -> Vec<Time> {
        taken.iter().map(|watched| watched.hold.valid_until()).collect()
    }

    #[test]
    fn what_is_due_takes_along_what_may_be_done_and_nothing_else() {
        let mut schedule = Schedule::default();
        let alarms = [(1_000, 0), (1_050, 60), (1_060, 0), (1_090, 90), (1_200, 500)];
        for (millis, slack) in alarms {
            let (at, slack) = (at(millis), Duration::from_millis(slack));
            schedule.put(at, slack, at, watched(1, at));
        }
        assert_eq!(schedule.next(), Some(at(1_000)));
        assert!(schedule.take(at(999), SLACK, 10).is_empty(), "nothing is due");
        let taken = schedule.take(at(1_000), SLACK, 10);
        assert_eq!(ends(&taken), [at(1_000), at(1_050), at(1_090)]);
        assert_eq!(schedule.next(), Some(at(1_060)));
        assert_eq!(schedule.first_end(), at(1_060));
        assert_eq!(ends(&schedule.take(at(5_000), SLACK, 1)), [at(1_060)], "no more than that");
        assert_eq!(ends(&schedule.take(at(5_000), SLACK, 1)), [at(1_200)]);
        assert_eq!((schedule.next(), schedule.first_end()), (None, Time::MAX));
    }

    #[test]
    fn locks_that_were_given_up_do_not_pile_up_and_hold_up_nothing() {
        let mut schedule = Schedule::default();
        let kept = watched(0, at(60_000));
        schedule.put(at(60_000), SLACK, at(60_000), kept);
        for _ in 0..10_000 {
            let given_up = watched(1, at(50_000));
            let hold = Arc::clone(&given_up.hold);
            schedule.put(at(50_000), SLACK, at(50_000), given_up);
            hold.close(at(1), NodeSet::all(3));
            assert!(schedule.alarms.len() <= 66 + 2, "{}", schedule.alarms.len());
        }
        assert_eq!(schedule.first_end(), at(60_000));
    }
}
