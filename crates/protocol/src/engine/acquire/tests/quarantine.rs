//! Nodes that were started too recently: when the next attempt begins.

use super::acquire;
use crate::engine::fixture::{draw, votes_of};
use crate::engine::{Acquired, Votes, Wait};
use crate::time::Time;
use std::time::Duration;

#[test]
fn no_attempt_begins_before_the_quarantine_of_a_needed_node_ends() {
    let quarantined = |votes| Votes {
        quarantine: Duration::from_secs(40),
        ..votes_of(votes)
    };
    for seed in 0..20 {
        let mut script = acquire(Wait::Forever);
        script.attempt(1_000, draw(seed));
        script.answer(1_002, quarantined("fff--")).undo();
        let until = script.wait();
        assert!(until > Time::from_millis(41_002) && until <= Time::from_millis(41_102));
        // After the quarantine, attempts are ordinary.
        script.attempt_at(until, draw(seed + 100));
        script.answer_at(until, votes_of("nnn--")).undo();
        assert!(script.wait() <= until.after(Duration::from_millis(100)));
    }
    // Without a wait, the attempt ends at once.
    let mut script = acquire(Wait::No);
    script.attempt(1_000, draw(1));
    script.answer(1_002, quarantined("fff--")).undo();
    assert!(matches!(script.done(), Acquired::Unanswered));
}

#[test]
fn a_wait_that_cannot_outlast_the_quarantine_ends_at_once() {
    // The quarantine in seconds, the votes, and whether the wait of ten seconds goes on.
    let table = [
        (40, "fff--", false),
        (12, "fff--", false),
        // Nodes in quarantine that reserve the lock for a waiter refuse.
        (40, "nnn--", false),
        (40, "nffff", false),
        // The servers' uptime may be told too short by up to a second.
        (10, "fff--", true),
        (9, "fff--", true),
        (0, "fff--", true),
        (0, "nnn--", true),
    ];
    for (seconds, votes, goes_on) in table {
        let mut script = acquire(Wait::Until(Time::from_millis(11_000)));
        script.attempt(1_000, draw(1));
        let quarantine = Duration::from_secs(seconds);
        script
            .answer(
                1_002,
                Votes {
                    quarantine,
                    ..votes_of(votes)
                },
            )
            .undo();
        match script.wait_or_done() {
            Ok(until) => {
                assert!(goes_on, "{seconds} {votes}");
                // One more attempt fits in before the deadline.
                assert!(until < Time::from_millis(11_000), "{seconds} {votes}");
            }
            Err(outcome) => {
                assert!(!goes_on, "{seconds} {votes}");
                assert!(matches!(outcome, Acquired::Unanswered), "{outcome:?}");
            }
        }
    }
}
