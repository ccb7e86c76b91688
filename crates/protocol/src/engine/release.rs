//! Releasing a lock: compare and delete, on every node that may hold its key.

use super::judge;
use super::{
    Action, Ballot, HeldLock, Input, Operation, Removal, Request, Rules, Step, Ttl, Verdict,
};
use crate::time::Time;

/// The outcome of releasing a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReleaseOutcome {
    /// A majority held the key until the release, and deleted it or set how long it stays.
    InTime,
    /// The validity had passed, or no majority held the key any more.
    TooLate,
    /// Too few nodes answered to know. Remaining keys expire with their ttl.
    Unanswered,
}

/// The state machine that releases a lock.
#[derive(Debug)]
pub struct Release {
    is_late: bool,
    request: Option<Request>,
    outcome: Option<ReleaseOutcome>,
}

impl Release {
    /// Releases `held`.
    pub fn new(rules: &Rules, held: &HeldLock, now: Time) -> Self {
        Self::after(None, rules, held, now)
    }

    /// The same, but the key stays for `linger` from now on, if that is given.
    pub fn after(linger: Option<Ttl>, rules: &Rules, held: &HeldLock, now: Time) -> Self {
        // The key may still exist, late or not, and a key that stays only blocks other clients.
        let removal = Removal { linger, ..held.removal() };
        let request = held.request(Action::Release(removal), now, rules);
        Self { is_late: now >= held.valid_until, request: Some(request), outcome: None }
    }

    fn conclude(&self, ballot: &Ballot) -> ReleaseOutcome {
        let tally = &ballot.tally;
        if self.is_late {
            ReleaseOutcome::TooLate
        } else if tally.granted_by_majority() == Verdict::Won {
            // A majority still held our token when it deleted it, so no other client can have held
            // the lock before that, however long the answers took.
            ReleaseOutcome::InTime
        } else if judge(tally.nodes(), 0, tally.refused.len()) == Verdict::Lost {
            // The nodes without an answer are no majority, whatever they held.
            ReleaseOutcome::TooLate
        } else {
            ReleaseOutcome::Unanswered
        }
    }
}

impl Operation for Release {
    type Outcome = ReleaseOutcome;

    fn handle(&mut self, _now: Time, input: Input) {
        match input {
            Input::Ballot(ballot) => self.outcome = Some(self.conclude(&ballot)),
            Input::Attempt(_) | Input::NoEntropy | Input::Reserved(_) | Input::Cancelled => {
                debug_assert!(false, "a release has one attempt");
            }
        }
    }

    fn poll(&mut self) -> Step<ReleaseOutcome> {
        match self.request.take() {
            Some(request) => Step::Send(request),
            None => Step::Done(self.outcome.expect("the ballot is handled before the next poll")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{Script, ballot, held_lock, rules};
    use super::super::{TTL_LIMIT, Verb};
    use super::*;
    use std::time::Duration;

    #[test]
    fn the_answers_say_whether_the_lock_was_held_to_the_end() {
        let table = [
            ("yyy--", ReleaseOutcome::InTime),
            ("yyynn", ReleaseOutcome::InTime),
            ("yynnn", ReleaseOutcome::TooLate),
            ("nnn--", ReleaseOutcome::TooLate),
            ("yynff", ReleaseOutcome::Unanswered),
            ("yyfff", ReleaseOutcome::Unanswered),
            ("fffff", ReleaseOutcome::Unanswered),
        ];
        for (votes, expected) in table {
            let release = Release::new(&rules(5), &held_lock(0, 1_000), Time::from_millis(500));
            let mut script = Script::new(release);
            assert_eq!(script.request().verb(), Verb::Release);
            assert_eq!(script.answer(510, ballot(votes)).done(), expected, "{votes}");
        }
    }

    #[test]
    fn an_expired_lock_is_released_too_late_but_released() {
        for votes in ["yyyyy", "nnnnn", "fffff"] {
            let release = Release::new(&rules(5), &held_lock(0, 1_000), Time::from_millis(988));
            let mut script = Script::new(release);
            assert_eq!(script.request().verb(), Verb::Release);
            assert_eq!(script.answer(990, ballot(votes)).done(), ReleaseOutcome::TooLate);
        }
    }

    #[test]
    fn a_release_before_hold_at_least_keeps_the_key_for_the_rest_of_that_time() {
        let held = held_lock(2_000, 1_000);
        let least = Duration::from_millis(30_000);
        let table = [
            (2_000, Some(30_000)),
            (2_400, Some(29_600)),
            (31_999, Some(1)),
            (32_000, None),
            (40_000, None),
        ];
        for (now, left) in table {
            let now = Time::from_millis(now);
            let linger = held.linger(least, now);
            assert_eq!(linger.map(Ttl::as_millis), left);
            let release = Release::after(linger, &rules(5), &held, now);
            let request = Script::new(release).request();
            let removal = Removal { linger, ..held.removal() };
            assert_eq!(request.action, Action::Release(removal.clone()));
            assert_eq!(held.undo_after(linger, now, &rules(5)).action, Action::Undo(removal));
            assert_eq!(held.undo(now, &rules(5)).action, Action::Undo(held.removal()));
        }
        let almost = held.since.after(Duration::from_nanos(29_999_000_001));
        assert_eq!(held.linger(least, almost).map(Ttl::as_millis), Some(1), "it is rounded up");
        assert_eq!(held.linger(Duration::ZERO, held.since), None);
        let longest = held.linger(TTL_LIMIT, held.since).map(Ttl::as_duration);
        assert_eq!(longest, Some(TTL_LIMIT), "the longest is not taken for none");
    }
}
