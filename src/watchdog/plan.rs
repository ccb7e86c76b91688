//! When a lock is to be extended automatically: arithmetic, with the time as an argument.
//!
//! ```text
//!   asked for                                                        valid until
//!   ├──────────── period ────────────┼──────────── period ────────────┼──── period ────┤
//!                             ▲    ▲
//!                             └────┴─ extended here, at a random point, or up to a slack earlier,
//!                                     together with other locks
//! ```
//!
//! A period is a third of the validity, so that there is time for more attempts after an extension
//! that failed. These follow after random pauses: each is longer than the one before, up to a
//! quarter of a period, and towards the end no longer than half of the time that is left.

use crate::clock::Time;
use crate::engine::{Drift, Jitter, Rules, Ttl};
use std::time::Duration;

/// For how long a lock is kept alive by default. A thread that hangs, or a leaked guard, must not
/// keep a resource for ever, which the description of Redlock warns of. A day is longer than nearly
/// all work under one lock, and has passed by the next morning.
pub(crate) const MAX_HOLD: Duration = Duration::from_secs(24 * 60 * 60);

/// How much earlier than necessary an extension may be sent, together with others.
pub(super) const SLACK_MAX: Duration = Duration::from_millis(100);

/// The shortest ttl for automatic extension: its validity has room for three rounds of
/// `node_timeout`. With less, an extension might not have ended before the next is due.
pub(crate) fn shortest_ttl(rules: &Rules) -> Option<Ttl> {
    rules
        .drift
        .shortest_ttl(rules.node_timeout.saturating_mul(3))
}

/// How long after it was requested a lock is extended at the latest: a third of its validity.
pub(crate) fn period(rules: &Rules, ttl: Ttl) -> Duration {
    rules.drift.validity(ttl) / 3
}

#[derive(Debug)]
pub(crate) struct Plan {
    ttl: Ttl,
    drift: Drift,
    period: Duration,
    /// The lock must not be held beyond this.
    end: Time,
    /// How long before the end of its period the next extension is due.
    early: Duration,
    /// After an extension that failed: not before this.
    pause_until: Time,
    /// The ceiling of that pause. Zero after an extension that was confirmed.
    pause: Duration,
    /// The ceiling of the first pause.
    pause_first: Duration,
    jitter: Jitter,
    /// When the last of the extensions that fail one after another was reported.
    reported_at: Option<Time>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NextExtension {
    Extend(Ttl),
    /// Nothing before this time, or up to this much earlier.
    Wait(Time, Duration),
}

impl Plan {
    /// Extends a lock that was requested at `since` by `ttl` again and again, and holds it for
    /// `max_hold` at most.
    pub(crate) fn new(rules: &Rules, ttl: Ttl, since: Time, max_hold: Duration, seed: u64) -> Self {
        let mut jitter = Jitter::from_seed(seed);
        let period = period(rules, ttl);
        Self {
            ttl,
            drift: rules.drift,
            period,
            end: since.after(max_hold),
            early: jitter.below(period / 8),
            pause_until: Time::ZERO,
            pause: Duration::ZERO,
            pause_first: rules.retry_base,
            jitter,
            reported_at: None,
        }
    }

    /// What to do now with the lock, which is valid until `valid_until`.
    pub(super) fn next(&self, now: Time, valid_until: Time) -> NextExtension {
        let in_time = valid_until.before(self.period * 2 + self.early);
        let due = in_time.max(self.pause_until);
        // A pause is not cut short to go together with others.
        let earliest = in_time
            .before((self.period / 8).min(SLACK_MAX))
            .max(self.pause_until);
        // An extension by less than half a period is not sent: it would be followed by more and
        // more, ever closer to the end.
        let least = valid_until.after(self.period / 2);
        let at = due.max(now);
        let extended = at.after(self.drift.validity(self.ttl_at(at))).min(self.end);
        if due >= valid_until || extended < least {
            NextExtension::Wait(valid_until, Duration::ZERO)
        } else if now < earliest {
            NextExtension::Wait(due, due.since(earliest))
        } else {
            NextExtension::Extend(self.ttl_at(now))
        }
    }

    /// The ttl, cut off where the lock must not be held any longer.
    fn ttl_at(&self, now: Time) -> Ttl {
        self.ttl.at_most(self.end.since(now))
    }

    pub(super) fn confirmed(&mut self) {
        self.pause = Duration::ZERO;
        self.reported_at = None;
        self.early = self.jitter.below(self.period / 8);
        self.pause_until = Time::ZERO;
    }

    /// An extension that took this long was not confirmed.
    pub(super) fn failed(&mut self, now: Time, took: Duration, valid_until: Time) {
        let first = self.pause_first.max(took);
        self.pause = (self.pause * 2).max(first).min(self.period / 4);
        // This leaves time for another one, and makes no tight loop towards the end.
        let most = (valid_until.since(now) / 2)
            .max(self.period / 32)
            .max(self.pause_first);
        let half = self.pause.min(most) / 2;
        self.pause_until = now.after(half + self.jitter.below(half));
    }

    /// Is an extension that has just failed to be reported? The first one is, and of those that
    /// follow without a success between them one every tenth of the ttl.
    pub(super) fn is_to_report(&mut self, now: Time) -> bool {
        let pause = self.ttl.as_duration() / 10;
        let is_to_report = self.reported_at.is_none_or(|at| now >= at.after(pause));
        if is_to_report {
            self.reported_at = Some(now);
        }
        is_to_report
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MILLISECOND: Duration = Duration::from_millis(1);

    fn rules() -> Rules {
        Rules::new(5, Drift::from_factor(0.01).unwrap())
    }

    fn ttl(millis: u64) -> Ttl {
        Ttl::from_duration(MILLISECOND * u32::try_from(millis).unwrap()).unwrap()
    }

    /// A lock of 3 s that was asked for at 1000, is valid until 3968, and has a period of 989 ms.
    fn plan(max_hold: Duration, seed: u64) -> Plan {
        Plan::new(&rules(), ttl(3_000), at(1_000), max_hold, seed)
    }

    fn at(millis: u64) -> Time {
        Time::from_millis(millis)
    }

    fn wait(next: NextExtension) -> (Time, Duration) {
        let NextExtension::Wait(time, slack) = next else {
            panic!("{next:?}")
        };
        (time, slack)
    }

    #[test]
    fn an_extension_is_due_at_a_random_point_before_a_third_of_the_validity_has_passed() {
        let mut seen = Vec::new();
        for seed in 0..200 {
            let plan = plan(MAX_HOLD, seed);
            let (due, slack) = wait(plan.next(at(1_001), at(3_968)));
            assert!((at(1_865)..=at(1_990)).contains(&due), "{due:?}");
            assert_eq!(slack, SLACK_MAX);
            assert_eq!(
                plan.next(due.before(slack), at(3_968)),
                NextExtension::Extend(ttl(3_000))
            );
            assert_eq!(plan.next(due, at(3_968)), NextExtension::Extend(ttl(3_000)));
            seen.push(due);
        }
        seen.sort_unstable();
        seen.dedup();
        assert!(seen.len() > 150, "the times are spread");
    }

    #[test]
    fn a_lock_that_its_holder_extended_by_more_is_due_only_near_that_end() {
        let (due, _) = wait(plan(MAX_HOLD, 1).next(at(1_001), at(60_000)));
        assert!((at(57_898)..=at(58_022)).contains(&due), "{due:?}");
    }

    #[test]
    fn a_failed_extension_is_tried_again_while_there_is_time_and_not_in_a_tight_loop() {
        for seed in 0..200 {
            let mut plan = plan(MAX_HOLD, seed);
            let mut now = at(1_980);
            let valid_until = at(3_968);
            let mut extensions = 0;
            let mut last = now;
            let mut pauses = Vec::new();
            while now < valid_until {
                match plan.next(now, valid_until) {
                    NextExtension::Extend(_) => {
                        pauses.push(now.since(last));
                        extensions += 1;
                        now = now.after(MILLISECOND);
                        plan.failed(now, MILLISECOND, valid_until);
                        last = now;
                    }
                    NextExtension::Wait(until, slack) => {
                        assert!(until > now && until <= valid_until);
                        // Together with others it comes as early as it may.
                        now = until.before(slack).max(now.after(MILLISECOND / 10));
                    }
                }
            }
            assert!(
                (12..=30).contains(&extensions),
                "{extensions} in two seconds"
            );
            // They grow up to a quarter of a period, half of it random, and the last extension
            // comes shortly before the end.
            let is_growing = pauses[..8].is_sorted_by(|one, next| *next + MILLISECOND >= *one);
            assert!(is_growing && pauses[8] > 50 * MILLISECOND, "{pauses:?}");
            assert!(
                pauses.iter().all(|pause| *pause <= plan.period / 4),
                "{pauses:?}"
            );
            assert!(valid_until.since(last) <= plan.period / 30, "{last:?}");
        }
    }

    #[test]
    fn extensions_that_fail_are_reported_at_once_and_then_every_tenth_of_the_ttl() {
        let mut plan = plan(MAX_HOLD, 1);
        let times = [0, 10, 299, 300, 301, 650, 949, 950].map(|millis| at(2_000 + millis));
        let reported = times.map(|now| plan.is_to_report(now));
        assert_eq!(
            reported,
            [true, false, false, true, false, true, false, true]
        );
        plan.confirmed();
        assert!(
            plan.is_to_report(at(2_951)),
            "another row of failures begins"
        );
        assert!(!plan.is_to_report(at(2_952)));
    }

    #[test]
    fn no_lock_is_held_beyond_its_limit_and_the_last_extension_reaches_it() {
        for seed in 0..200 {
            let rules = rules();
            let mut plan = plan(Duration::from_secs(10), seed);
            let mut now = at(1_001);
            let mut valid_until = at(3_968);
            let mut extensions = 0;
            loop {
                match plan.next(now, valid_until) {
                    NextExtension::Extend(ttl) => {
                        extensions += 1;
                        valid_until = valid_until.max(now.after(rules.drift.validity(ttl)));
                        assert!(now.after(ttl.as_duration()) <= at(11_000));
                        plan.confirmed();
                    }
                    NextExtension::Wait(until, _) if until == valid_until => break,
                    NextExtension::Wait(until, _) => now = until,
                }
                assert!(extensions < 20);
            }
            // Less half a period, and what drift takes.
            assert!(
                (at(10_450)..=at(11_000)).contains(&valid_until),
                "{valid_until:?}"
            );
        }
    }

    #[test]
    fn the_shortest_ttl_has_room_for_three_rounds() {
        let mut rules = rules();
        assert_eq!(shortest_ttl(&rules), Some(ttl(154)));
        rules.node_timeout = Duration::from_secs(60);
        assert_eq!(shortest_ttl(&rules), Some(ttl(181_821)));
        rules.node_timeout = Duration::MAX / 4;
        assert_eq!(shortest_ttl(&rules), None);
    }
}
