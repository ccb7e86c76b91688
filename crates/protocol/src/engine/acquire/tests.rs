//! Acquisitions with literal times and votes.

mod fencing;
mod held_locks;
mod quarantine;
mod queueing;
mod shares;
mod split;

use super::super::Verb;
use super::super::fixture::{Script, draw, held_lock, rules, token_of, votes_of};
use super::*;

fn acquire(wait: Wait) -> Script {
    let ttl = Ttl::from_duration(Duration::from_millis(1_000)).unwrap();
    Script::new(Acquire::new(rules(5), Arc::from(&b"key"[..]), ttl, wait))
}

#[test]
fn validity_counts_from_before_the_request() {
    let mut acquire = acquire(Wait::No);
    let request = acquire.attempt(1_000, draw(1));
    assert_eq!(
        (request.verb(), request.ttl().unwrap().as_millis()),
        (Verb::Acquire, 1_000)
    );
    assert_eq!(request.deadline, Time::from_millis(1_050));
    let outcome = acquire.answer(1_007, votes_of("yyy--"));
    let Acquired::Held(held) = outcome.done() else {
        panic!()
    };
    assert_eq!(held.valid_until, Time::from_millis(1_000 + 1_000 - 10 - 2));
    assert_eq!(held.token, draw(1).token);
}

#[test]
fn a_last_round_that_the_deadline_cuts_short_does_not_hide_that_others_hold_the_lock() {
    let table = [
        // The answers of the previous round, the answers of the last round, and the outcome.
        ("nnn--", "n----", true),
        ("nnn--", "-----", true),
        // Failed nodes count, whatever the previous round saw.
        ("nnn--", "fffnn", false),
        // Without any answer the outcome is unknown.
        ("n----", "n----", false),
    ];
    for (before, last, is_contended) in table {
        let mut acquire = acquire(Wait::Until(Time::from_millis(1_100)));
        acquire.attempt(1_000, draw(1));
        acquire.answer(1_010, votes_of(before)).undo();
        let request = acquire.attempt(1_090, draw(2));
        assert_eq!(request.deadline, Time::from_millis(1_100));
        acquire.answer(1_100, votes_of(last)).undo();
        let outcome = acquire.done();
        assert_eq!(
            matches!(outcome, Acquired::Contended),
            is_contended,
            "{before} {last}"
        );
    }
}

#[test]
fn a_majority_that_comes_too_late_is_undone() {
    for (now, late) in [(1_987, false), (1_988, true), (5_000, true)] {
        let mut acquire = acquire(Wait::No);
        acquire.attempt(1_000, draw(1));
        let rest = acquire.answer(now, votes_of("yyyyy"));
        if late {
            assert_eq!(token_of(&rest.undo()), draw(1).token);
            assert!(matches!(rest.done(), Acquired::TooSlow(_)));
        } else {
            assert!(matches!(rest.done(), Acquired::Held(_)));
        }
    }
}

#[test]
fn the_number_of_answers_decides_between_contended_and_unanswered() {
    let table = [
        ("nnn--", true),
        ("yynnn", true),
        ("yynff", true),
        ("nnnff", true),
        ("yyfff", false),
        ("fffff", false),
        ("nnfff", false),
    ];
    for (votes, contended) in table {
        let mut acquire = acquire(Wait::No);
        acquire.attempt(0, draw(1));
        let rest = acquire.answer(1, votes_of(votes));
        assert_eq!(rest.undo().verb(), Verb::Undo);
        // After a split vote there may be another attempt, but not after the end of the wait.
        let outcome = match rest.wait_or_done() {
            Ok(_) => {
                rest.oversleep(50, draw(2));
                rest.done()
            }
            Err(outcome) => outcome,
        };
        match outcome {
            Acquired::Contended => assert!(contended, "{votes}"),
            Acquired::Unanswered => assert!(!contended, "{votes}"),
            other => panic!("{votes}: {other:?}"),
        }
    }
}

#[test]
fn the_undo_is_sent_to_every_node_that_got_the_request() {
    let mut acquire = acquire(Wait::No);
    acquire.attempt(0, draw(1));
    let mut votes = votes_of("ynnn-");
    votes.sent.remove(super::super::Node::new(3));
    let sent = votes.sent;
    assert_eq!(acquire.answer(1, votes).undo().nodes, sent);
}

#[test]
fn every_attempt_has_a_token_of_its_own_and_a_random_pause_before_it() {
    let mut acquire = acquire(Wait::Forever);
    let mut now = 0;
    for attempt in 1..200 {
        let request = acquire.attempt(now, draw(attempt));
        assert_eq!(token_of(&request), draw(attempt).token);
        let rest = acquire.answer(now + 1, votes_of("nnn--"));
        assert_eq!(token_of(&rest.undo()), draw(attempt).token);
        let until = rest.wait();
        assert!(until > Time::from_millis(now + 1));
        assert!(until <= Time::from_millis(now + 1 + 100));
        now = until.as_nanos() / 1_000_000 + 1;
    }
}

#[test]
fn attempts_end_in_time_for_the_callers_deadline() {
    for seed in 0..100 {
        let deadline = Time::from_millis(300);
        let mut acquire = acquire(Wait::Until(deadline));
        let mut now = Time::ZERO;
        let mut attempts = 0;
        loop {
            attempts += 1;
            assert!(attempts < 1_000, "a tight loop");
            let request = acquire.attempt_at(now, draw(seed + attempts));
            assert!(request.deadline <= deadline);
            now = now.after(Duration::from_millis(1));
            let rest = acquire.answer_at(now, votes_of("nnnnn"));
            rest.undo();
            match rest.wait_or_done() {
                Ok(until) if until < deadline => now = until,
                Ok(until) => {
                    // Too late for another one, and too early to give up.
                    assert_eq!(until, deadline);
                    acquire.oversleep(300, draw(seed));
                    assert!(matches!(acquire.done(), Acquired::Contended));
                    break;
                }
                Err(outcome) => {
                    assert!(matches!(outcome, Acquired::Contended) && now == deadline);
                    break;
                }
            }
        }
        assert!(
            now > Time::from_millis(290),
            "the last attempt ended at {now:?}"
        );
    }
}

/// A new client asks for up to `connect_timeout`, which may be most of a wait.
#[test]
fn a_wait_for_silent_nodes_ends_at_its_deadline_with_attempts_in_all_of_it() {
    let connect_timeout = rules(5).connect_timeout.as_millis() as u64;
    for wait in (connect_timeout / 2..5 * connect_timeout).step_by(250) {
        let mut acquire = acquire(Wait::Until(Time::from_millis(wait)));
        let end = Time::from_millis(wait);
        let mut now = Time::ZERO;
        let mut attempts = 0;
        while now < end {
            attempts += 1;
            let request = acquire.attempt_at(now, draw(wait + attempts));
            now = request.deadline.max(request.connect_deadline);
            let mut votes = votes_of("-----");
            votes.was_prolonged = true;
            let rest = acquire.answer_at(now, votes);
            rest.undo();
            if now < end {
                let left = end.since(now);
                now = rest.wait();
                assert!(
                    end.since(now) >= left / 2,
                    "{wait}: {left:?} before, then {now:?}"
                );
            }
        }
        assert_eq!(now, end);
        assert!(matches!(acquire.done(), Acquired::Unanswered));
        assert!(
            attempts <= wait / connect_timeout + 1,
            "{wait}: {attempts} attempts"
        );
    }
}

/// An attempt on links that are as slow as before would take nodes from others, and end too late.
#[test]
fn no_attempt_begins_that_cannot_be_answered_in_time() {
    let mut acquire = acquire(Wait::Until(Time::from_millis(70)));
    acquire.attempt(0, draw(1));
    let rest = acquire.answer(40, votes_of("nnn--"));
    rest.undo();
    assert_eq!(rest.wait(), Time::from_millis(70));
    rest.oversleep(70, draw(2));
    assert!(matches!(rest.done(), Acquired::Contended));
}

#[test]
fn a_deadline_that_has_passed_still_gives_one_whole_attempt() {
    let mut acquire = acquire(Wait::Until(Time::from_millis(5)));
    let request = acquire.attempt(10, draw(1));
    assert_eq!(request.deadline, Time::from_millis(60));
    let rest = acquire.answer(11, votes_of("nnnnn"));
    rest.undo();
    assert!(matches!(rest.done(), Acquired::Contended));
}

#[test]
fn a_lock_is_handed_off_in_one_round() {
    let ttl = Ttl::from_duration(Duration::from_millis(1_000)).unwrap();
    let acquire = Acquire::new(rules(5), Arc::from(&b"key"[..]), ttl, Wait::No);
    let mut script = Script::new(acquire.taking_over(held_lock(0, 500)));
    let request = script.attempt(100, draw(1));
    assert_eq!(
        (request.verb(), token_of(&request)),
        (Verb::Handoff, draw(1).token)
    );
    let before = request
        .predecessor()
        .expect("a handoff names its predecessor");
    assert_eq!(
        (before.token, before.attributes.clone()),
        (held_lock(0, 500).token, None)
    );
    assert_eq!(request.nodes, NodeSet::all(5));
    let Acquired::Held(held) = script.answer(110, votes_of("yyy--")).done() else {
        panic!()
    };
    assert_eq!(held.token, draw(1).token);
    assert_eq!(held.valid_until, Time::from_millis(100 + 988));
}

#[test]
fn a_failed_handoff_removes_both_locks_and_retries_without_a_handoff() {
    let ttl = Ttl::from_duration(Duration::from_millis(1_000)).unwrap();
    let key = Arc::from(&b"key"[..]);
    let acquire = Acquire::new(rules(5), key, ttl, Wait::Forever).taking_over(held_lock(0, 500));
    let mut script = Script::new(acquire);
    script.attempt(100, draw(1));
    let rest = script.answer(110, votes_of("yynnn"));
    assert_eq!(token_of(&rest.undo()), draw(1).token);
    assert_eq!(token_of(&rest.undo()), held_lock(0, 500).token);
    rest.wait();
    let request = script.attempt(300, draw(2));
    assert_eq!(
        (request.verb(), request.predecessor()),
        (Verb::Acquire, None)
    );
}

#[test]
fn without_random_numbers_the_predecessor_is_removed() {
    let ttl = Ttl::from_duration(Duration::from_millis(1_000)).unwrap();
    let key = Arc::from(&b"key"[..]);
    let mut acquire = Acquire::new(rules(5), key, ttl, Wait::No).taking_over(held_lock(0, 500));
    acquire.handle(Time::from_millis(100), Input::NoEntropy);
    let mut script = Script::new(acquire);
    assert_eq!(token_of(&script.undo()), held_lock(0, 500).token);
    assert!(matches!(script.done(), Acquired::NoEntropy));
}

#[test]
fn no_attempt_begins_after_the_deadline() {
    for (before, is_contended) in [("nnn--", true), ("fff--", false)] {
        let mut acquire = acquire(Wait::Until(Time::from_millis(1_100)));
        acquire.attempt(1_000, draw(1));
        let rest = acquire.answer(1_001, votes_of(before));
        rest.undo();
        assert!(rest.wait() < Time::from_millis(1_100));
        rest.oversleep(1_100, draw(2));
        let outcome = rest.done();
        assert_eq!(
            matches!(outcome, Acquired::Contended),
            is_contended,
            "{outcome:?}"
        );
    }
}

#[test]
fn permanent_errors_of_a_majority_end_every_wait() {
    let mut acquire = acquire(Wait::Forever);
    acquire.attempt(0, draw(1));
    let mut votes = votes_of("yyfff");
    votes.permanent_failures = votes.tally.failed;
    let rest = acquire.answer(1, votes);
    rest.undo();
    assert!(matches!(rest.done(), Acquired::Unanswered));
}

#[test]
fn two_nodes_that_are_one_server_grant_no_lock() {
    let mut acquire = acquire(Wait::Forever);
    acquire.attempt(0, draw(1));
    let mut votes = votes_of("yyyyy");
    votes.same_server = true;
    acquire.answer(1, votes).undo();
    assert!(matches!(acquire.done(), Acquired::SameServer));
}

/// Hands off a lock that may be on these nodes, with another ttl, and returns the next requests.
fn handoff(may_hold: &str, votes: Votes) -> (Script, Request) {
    let ttl = Ttl::from_duration(Duration::from_millis(1_000)).unwrap();
    let mut before = held_lock(0, 5_000);
    before.nodes = votes_of(may_hold).tally.granted;
    let acquire = Acquire::new(rules(5), Arc::from(&b"key"[..]), ttl, Wait::No);
    let mut script = Script::new(acquire.taking_over(before));
    let request = script.attempt(100, draw(1));
    script.answer(110, votes);
    (script, request)
}

#[test]
fn the_predecessor_is_removed_from_nodes_that_did_not_get_the_handoff() {
    let mut partial = votes_of("yyyff");
    partial.sent.remove(super::super::Node::new(3));
    partial.sent.remove(super::super::Node::new(4));
    // Node 4 may hold the key; node 5 was down before.
    let ((mut script, _), lock) = (handoff("yyyyf", partial), held_lock(0, 5_000));
    let undo = script.undo();
    assert_eq!((token_of(&undo), undo.ttl()), (lock.token, Some(lock.ttl)));
    assert_eq!(
        undo.nodes
            .iter()
            .map(super::super::Node::index)
            .collect::<Vec<_>>(),
        [3]
    );
    assert!(matches!(script.done(), Acquired::Held(_)));
    // If every node got the handoff, nothing more is written.
    let (mut script, _) = handoff("yyyyy", votes_of("yyyf-"));
    assert!(matches!(script.done(), Acquired::Held(_)));
}

#[test]
fn a_handoff_carries_the_longest_ttl_of_both_locks() {
    let (_, request) = handoff("yyyyy", votes_of("yyyyy"));
    assert_eq!(request.ttl().unwrap().as_millis(), 1_000);
    assert_eq!(
        request.predecessor().unwrap().ttl_longest.as_millis(),
        5_000
    );
}

#[test]
fn a_handoff_that_the_deadline_cuts_short_means_that_another_thread_held_the_lock() {
    let deadline = Wait::Until(Time::from_millis(101));
    let start = || {
        let ttl = Ttl::from_duration(Duration::from_millis(1_000)).unwrap();
        let acquire = Acquire::new(rules(5), Arc::from(&b"key"[..]), ttl, deadline);
        Script::new(acquire.taking_over(held_lock(0, 500)))
    };
    for (votes, is_contended) in [("y----", true), ("yyfff", false)] {
        let mut script = start();
        script.attempt(100, draw(1));
        script.answer(101, votes_of(votes));
        assert_eq!(token_of(&script.undo()), draw(1).token);
        assert_eq!(token_of(&script.undo()), held_lock(0, 500).token);
        let outcome = script.done();
        assert_eq!(
            matches!(outcome, Acquired::Contended),
            is_contended,
            "{votes} {outcome:?}"
        );
    }
    // Too late to begin: the lock is removed from every node that may have its key.
    let mut script = start();
    assert_eq!(script.wait(), Time::ZERO);
    script.oversleep(101, draw(1));
    assert_eq!(token_of(&script.undo()), held_lock(0, 500).token);
    assert!(matches!(script.done(), Acquired::Contended));
}
