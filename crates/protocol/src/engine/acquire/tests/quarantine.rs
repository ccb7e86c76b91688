//! Nodes that were started too recently: when the next attempt begins.

use super::acquire;
use crate::engine::fixture::{draw, votes_of};
use crate::engine::{Acquired, Votes, Wait};
use crate::time::Time;
use std::time::Duration;

#[test]
fn no_attempt_begins_before_the_quarantine_of_a_needed_node_ends() {
    let quarantined = |votes| Votes { quarantine: Duration::from_secs(40), ..votes_of(votes) };
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
    // A shorter wait has one more attempt, just before the deadline.
    let mut script = acquire(Wait::Until(Time::from_millis(3_000)));
    script.attempt(1_000, draw(1));
    script.answer(1_002, quarantined("fff--")).undo();
    let until = script.wait();
    assert!(until > Time::from_millis(2_900) && until < Time::from_millis(3_000));
    // Without a wait, the attempt ends at once.
    let mut script = acquire(Wait::No);
    script.attempt(1_000, draw(1));
    script.answer(1_002, quarantined("fff--")).undo();
    assert!(matches!(script.done(), Acquired::Unanswered));
}
