//! Split votes: when an attempt is repeated, and for how long.

use super::*;
use crate::engine::acquire::attempts::SPLIT_ATTEMPTS_MAX;

const ROUND: Duration = Duration::from_millis(50);

#[test]
fn a_split_attempt_is_undone_and_repeated_within_one_round() {
    for seed in 0..100 {
        let mut script = acquire(Wait::No);
        script.attempt(1_000, draw(seed));
        let rest = script.answer(1_002, votes_of("yynnn"));
        assert_eq!(token_of(&rest.undo()), draw(seed).token);
        let until = rest.wait();
        assert!(
            until > Time::from_millis(1_002) && until <= Time::from_millis(1_004),
            "{until:?}"
        );
        let again = script.attempt_at(until, draw(1_000 + seed));
        assert_eq!(
            (again.verb(), token_of(&again)),
            (Verb::Acquire, draw(1_000 + seed).token)
        );
        assert_eq!(again.deadline, Time::from_millis(1_050), "one round in all");
        assert!(matches!(
            script.answer(1_006, votes_of("yyy--")).done(),
            Acquired::Held(_)
        ));
    }
}

#[test]
fn only_grants_beside_refusals_are_a_split_vote() {
    let table = [
        ("yynnn", true),
        ("ynnn-", true),
        ("yynff", true),
        ("nnyff", true),
        // Other clients hold the lock, or a split vote whose grants were not seen.
        ("nnn--", false),
        ("nnnnn", false),
        ("nnnff", false),
        // Too few nodes answered.
        ("yynf-", false),
        ("yyfff", false),
        ("yyf--", false),
    ];
    // A deadline that has passed is one attempt as well.
    for wait in [Wait::No, Wait::Until(Time::from_millis(1_000))] {
        for (votes, is_split) in table {
            let mut script = acquire(wait);
            script.attempt(1_000, draw(1));
            let rest = script.answer(1_001, votes_of(votes));
            rest.undo();
            assert_eq!(rest.wait_or_done().is_ok(), is_split, "{votes}");
        }
    }
}

#[test]
fn a_split_vote_is_repeated_a_bounded_number_of_times() {
    for seed in 0..100 {
        let mut script = acquire(Wait::No);
        let mut now = Time::from_millis(1_000);
        let mut attempts = 0;
        loop {
            attempts += 1;
            let request = script.attempt_at(now, draw(100 * seed + u64::from(attempts)));
            assert_eq!(request.deadline, Time::from_millis(1_050));
            let rest = script.answer_at(now.after(Duration::from_micros(100)), votes_of("yynnn"));
            rest.undo();
            match rest.wait_or_done() {
                Ok(until) => now = until,
                Err(outcome) => {
                    assert!(matches!(outcome, Acquired::Contended));
                    break;
                }
            }
        }
        assert_eq!(attempts, SPLIT_ATTEMPTS_MAX);
    }
}

#[test]
fn no_attempt_begins_that_would_not_end_within_the_round() {
    // Rounds of this many milliseconds: how often there is time for one more.
    for (took, most) in [(24, 2), (25, 1), (26, 1), (50, 1), (500, 1)] {
        for seed in 0..50 {
            let mut script = acquire(Wait::No);
            let mut now = Time::from_millis(1_000);
            let mut attempts = 0;
            let outcome = loop {
                attempts += 1;
                script.attempt_at(now, draw(100 * seed + attempts));
                let rest =
                    script.answer_at(now.after(Duration::from_millis(took)), votes_of("yynnn"));
                rest.undo();
                match rest.wait_or_done() {
                    Ok(until) => now = until,
                    Err(outcome) => break outcome,
                }
                let end = now.after(Duration::from_millis(took));
                assert!(
                    end <= Time::from_millis(1_000).after(ROUND),
                    "{took}: {end:?}"
                );
            };
            assert!(matches!(outcome, Acquired::Contended));
            assert_eq!(attempts, most, "{took}");
        }
    }
}

#[test]
fn the_pause_after_a_split_vote_is_random_also_where_time_is_short() {
    // Delays that are only cut down to the time left would be the same for all clients.
    let pauses: std::collections::BTreeSet<Time> = (0..100)
        .map(|seed| {
            let mut script = acquire(Wait::No);
            script.attempt(1_000, draw(seed));
            let rest = script.answer(1_020, votes_of("yynnn"));
            rest.undo();
            rest.wait()
        })
        .collect();
    assert!(pauses.len() > 95, "{}", pauses.len());
}

#[test]
fn the_last_attempt_decides_the_outcome() {
    let second = |votes: &str| {
        let mut script = acquire(Wait::No);
        script.attempt(1_000, draw(1));
        script.answer(1_001, votes_of("yynnn")).undo();
        script.attempt(1_010, draw(2));
        script.answer(1_050, votes_of(votes)).undo();
        script.done()
    };
    assert!(matches!(second("nnn--"), Acquired::Contended));
    // Cut short by the end of the round: the outcome is that of the previous attempt.
    assert!(matches!(second("y----"), Acquired::Contended));
    assert!(matches!(second("yyfff"), Acquired::Unanswered));
}

#[test]
fn a_token_that_was_not_confirmed_is_no_split_vote() {
    let attributes = LockAttributes {
        fence: Some(Ttl::SHORTEST),
        ..LockAttributes::default()
    };
    let ttl = Ttl::from_duration(Duration::from_millis(1_000)).unwrap();
    let acquire = Acquire::new(rules(5), Arc::from(&b"key"[..]), ttl, Wait::No);
    let mut script = Script::new(acquire.with(Some(Arc::new(attributes))));
    script.attempt(1_000, draw(1));
    let counters = [7, 9, 7, 0, 0];
    let votes = super::super::super::fixture::fenced_votes("yyy--", counters);
    assert_eq!(script.answer(1_001, votes).request().verb(), Verb::Fence);
    // The key was removed, and another client may hold it.
    script.answer(1_002, votes_of("yynnn")).undo();
    assert!(matches!(script.done(), Acquired::Contended));
}
