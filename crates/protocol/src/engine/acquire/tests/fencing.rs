//! Fenced locks: which counter becomes the token, and when a second round must confirm it.

use super::super::super::fixture::{Script, draw, fenced_votes, held_lock, rules, votes_of};
use super::*;
use crate::engine::{FENCE_MAX, FENCE_SEED_MAX, Node};

fn attributes() -> Arc<LockAttributes> {
    let week = Ttl::from_duration(Duration::from_secs(7 * 24 * 60 * 60)).unwrap();
    Arc::new(LockAttributes {
        fence: Some(week),
        ..LockAttributes::default()
    })
}

/// A fenced lock of five nodes, for a second.
fn fenced(wait: Wait) -> Acquire {
    let ttl = Ttl::from_duration(Duration::from_millis(1_000)).unwrap();
    Acquire::new(rules(5), Arc::from(&b"key"[..]), ttl, wait).with(Some(attributes()))
}

/// The second round of a lock that was requested at 1,000 and granted 5 ms later, with different
/// counters.
fn unconfirmed(wait: Wait) -> (Script, Request) {
    let mut script = Script::new(fenced(wait));
    script.attempt(1_000, draw(1));
    script.answer(1_005, fenced_votes("yyy--", [7, 9, 7, 0, 0]));
    let request = script.request();
    (script, request)
}

fn token(outcome: Acquired) -> Option<u64> {
    match outcome {
        Acquired::Held(held) => held.fence,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_largest_counter_from_a_majority_is_the_token() {
    let table = [
        ("yyy--", [7, 7, 7, 0, 0], 7),
        ("yyyyy", [9, 7, 9, 7, 9], 9),
        ("yyyn-", [1, 1, 1, 0, 0], 1),
        ("yyyff", [FENCE_MAX; 5], FENCE_MAX),
    ];
    for (votes, counters, expected) in table {
        let mut script = Script::new(fenced(Wait::No));
        script.attempt(1_000, draw(1));
        let held = script.answer(1_005, fenced_votes(votes, counters)).done();
        assert_eq!(token(held), Some(expected), "{votes} {counters:?}");
    }
}

#[test]
fn a_largest_counter_from_a_minority_is_written_to_all_nodes() {
    let table = [
        ("yyy--", [7, 9, 7, 0, 0]),
        ("yyy--", [9, 9, 7, 0, 0]),
        ("yyyyy", [7, 9, 9, 7, 7]),
        // A counter counts also from a node whose grant does not, but not towards a majority.
        ("yyyff", [7, 7, 7, 9, 0]),
        ("yyyff", [9, 9, 7, 9, 9]),
    ];
    for (votes, counters) in table {
        let mut script = Script::new(fenced(Wait::No));
        let claim = script.attempt(1_000, draw(1));
        let request = script
            .answer(1_005, fenced_votes(votes, counters))
            .request();
        assert_eq!(
            (request.verb(), request.fence().unwrap()),
            (Verb::Fence, 9),
            "{votes} {counters:?}"
        );
        assert_eq!(
            (token_of(&request), request.key()),
            (token_of(&claim), claim.key())
        );
        assert_eq!(
            (
                request.lock().unwrap().attributes.clone(),
                request.predecessor()
            ),
            (claim.lock().unwrap().attributes.clone(), None)
        );
        assert_eq!(
            request.nodes,
            NodeSet::all(5),
            "it may be granted where it is still under way"
        );
        assert_eq!(
            request.deadline,
            Time::from_millis(1_055),
            "a round of its own"
        );
        assert_eq!(
            token(script.answer(1_009, votes_of("yy-y-")).done()),
            Some(9)
        );
    }
}

#[test]
fn the_second_round_does_not_extend_the_validity() {
    let (mut script, _) = unconfirmed(Wait::No);
    let Acquired::Held(held) = script.answer(1_040, votes_of("yyyyy")).done() else {
        panic!()
    };
    assert_eq!(held.since, Time::from_millis(1_000));
    assert_eq!(
        held.valid_until,
        Time::from_millis(1_988),
        "the second takes from its validity"
    );
    assert_eq!((held.token, held.nodes), (draw(1).token, NodeSet::all(5)));
}

#[test]
fn the_second_round_ends_with_the_validity_or_the_callers_deadline() {
    let mut script = Script::new(fenced(Wait::No));
    script.attempt(1_000, draw(1));
    let late = script
        .answer(1_960, fenced_votes("yyy--", [7, 9, 7, 0, 0]))
        .request();
    assert_eq!(late.deadline, Time::from_millis(1_988));
    let until = |millis| Wait::Until(Time::from_millis(millis));
    for (wait, deadline) in [
        (until(1_020), 1_020),
        (until(1_500), 1_055),
        (until(999), 1_055),
    ] {
        let (_, request) = unconfirmed(wait);
        assert_eq!(request.deadline, Time::from_millis(deadline), "{wait:?}");
    }
    // The first round's answers were handled after the caller's deadline.
    let mut script = Script::new(fenced(until(1_020)));
    script.attempt(1_000, draw(1));
    let late = script
        .answer(1_025, fenced_votes("yyy--", [7, 9, 7, 0, 0]))
        .request();
    assert_eq!(
        late.deadline,
        Time::from_millis(1_020),
        "no more time than was given"
    );
}

#[test]
fn a_token_that_is_not_confirmed_in_time_is_no_lock() {
    for (now, is_late) in [(1_987, false), (1_988, true), (5_000, true)] {
        let (mut script, _) = unconfirmed(Wait::No);
        script.answer(now, votes_of("yyy--"));
        if is_late {
            let undo = script.undo();
            assert_eq!(
                (token_of(&undo), undo.nodes),
                (draw(1).token, NodeSet::all(5))
            );
            let Acquired::TooSlow(took) = script.done() else {
                panic!()
            };
            assert_eq!(
                took,
                Duration::from_millis(now - 1_000),
                "since the request"
            );
        } else {
            assert_eq!(token(script.done()), Some(9));
        }
    }
    // The least validity must be left after the second round too.
    let mut script = Script::new(fenced(Wait::No).min_validity(Duration::from_millis(900)));
    script.attempt(1_000, draw(1));
    script
        .answer(1_005, fenced_votes("yyy--", [7, 9, 7, 0, 0]))
        .request();
    script.answer(1_089, votes_of("yyy--")).undo();
    assert!(matches!(script.done(), Acquired::TooSlow(_)));
}

#[test]
fn a_lock_whose_token_no_majority_confirms_is_removed() {
    let table = [
        ("yynnn", true),
        ("nnn--", true),
        ("ynnff", true),
        ("yyfff", false),
        ("yy---", false),
        ("fffff", false),
    ];
    for (votes, is_contended) in table {
        let (mut script, _) = unconfirmed(Wait::No);
        let undo = script.answer(1_020, votes_of(votes)).undo();
        assert_eq!(
            (token_of(&undo), undo.nodes),
            (draw(1).token, NodeSet::all(5))
        );
        let outcome = script.done();
        let expected = matches!(outcome, Acquired::Contended);
        assert_eq!(expected, is_contended, "{votes}: {outcome:?}");
        assert!(
            is_contended || matches!(outcome, Acquired::Unanswered),
            "{votes}: {outcome:?}"
        );
    }
    // It is undone on every node that got either request.
    let mut script = Script::new(fenced(Wait::No));
    script.attempt(1_000, draw(1));
    let mut claims = fenced_votes("yyy--", [7, 9, 7, 0, 0]);
    claims.sent.remove(Node::new(4));
    script.answer(1_005, claims).request();
    let mut confirms = votes_of("ynn--");
    [1, 3]
        .into_iter()
        .for_each(|index| confirms.sent.remove(Node::new(index)));
    assert_eq!(script.answer(1_010, confirms).undo().nodes, NodeSet::all(5));
}

#[test]
fn an_unconfirmed_token_leads_to_another_attempt() {
    let (mut script, _) = unconfirmed(Wait::Forever);
    script.answer(1_020, votes_of("yynnn")).undo();
    assert!(script.wait() > Time::from_millis(1_020));
    let request = script.attempt(1_200, draw(2).at(50));
    assert_eq!(
        (request.verb(), request.fence().unwrap(), token_of(&request)),
        (Verb::Acquire, 50, draw(2).token)
    );
    let held = script.answer(1_201, fenced_votes("yyy--", [50; 5])).done();
    assert_eq!(token(held), Some(50));
}

#[test]
fn invalid_counters_on_a_majority_end_every_wait() {
    // In the first round, and in the second.
    for is_second in [false, true] {
        let mut script = Script::new(fenced(Wait::Forever));
        script.attempt(1_000, draw(1));
        if is_second {
            script
                .answer(1_005, fenced_votes("yyy--", [7, 9, 7, 0, 0]))
                .request();
        }
        let mut votes = votes_of("yyfff");
        votes.permanent_failures = votes.tally.failed;
        script.answer(1_010, votes).undo();
        assert!(matches!(script.done(), Acquired::Unanswered));
    }
}

#[test]
fn two_nodes_that_are_one_server_confirm_no_token() {
    let (mut script, _) = unconfirmed(Wait::Forever);
    let mut votes = votes_of("yyyyy");
    votes.same_server = true;
    script.answer(1_010, votes).undo();
    assert!(matches!(script.done(), Acquired::SameServer));
}

#[test]
fn a_second_round_that_the_deadline_cuts_short_does_not_hide_that_others_held_the_lock() {
    // The caller's deadline, before and after the end of the first round.
    for (deadline, is_cut_short) in [(1_130, true), (1_145, true), (1_160, false)] {
        for (before, is_contended) in [("nnn--", is_cut_short), ("fff--", false)] {
            let mut script = Script::new(fenced(Wait::Until(Time::from_millis(deadline))));
            script.attempt(1_000, draw(1));
            script.answer(1_001, votes_of(before)).undo();
            assert!(script.wait() < Time::from_millis(1_090));
            script.attempt(1_090, draw(2));
            let claims = fenced_votes("yyy--", [7, 9, 7, 0, 0]);
            let request = script.answer(1_105, claims).request();
            assert_eq!(request.deadline, Time::from_millis(deadline.min(1_155)));
            script.answer_at(request.deadline, votes_of("y----")).undo();
            let outcome = script.wait_or_done();
            match outcome {
                Ok(_) => assert!(!is_cut_short, "there is time for another attempt"),
                Err(outcome) => {
                    let found = matches!(outcome, Acquired::Contended);
                    assert_eq!(found, is_contended, "{deadline} {before}: {outcome:?}");
                }
            }
        }
    }
}

#[test]
fn counters_begin_no_lower_than_the_wall_clock_and_leave_room_above_it() {
    let table = [
        (0, 1),
        (1, 1),
        (1_700_000_000_000_000, 1_700_000_000_000_000),
        (FENCE_SEED_MAX, FENCE_SEED_MAX),
        (FENCE_SEED_MAX + 1, FENCE_SEED_MAX),
        (u64::MAX, FENCE_SEED_MAX),
    ];
    for (wall, expected) in table {
        let request = Script::new(fenced(Wait::No)).attempt(1_000, draw(1).at(wall));
        assert_eq!(
            (
                request.fence().unwrap(),
                request.lock().unwrap().attributes.clone()
            ),
            (expected, Some(attributes())),
            "{wall}"
        );
    }
    let plain = acquire(Wait::No).attempt(1_000, draw(1).at(50));
    let attributes = &plain.lock().unwrap().attributes;
    assert_eq!((plain.fence(), attributes), (Some(0), &None));
    let mut plain = acquire(Wait::No);
    plain.attempt(1_000, draw(1));
    assert_eq!(token(plain.answer(1_005, votes_of("yyy--")).done()), None);
}

#[test]
fn a_lock_that_is_handed_off_gets_a_token_of_its_own() {
    let start = || {
        let mut script = Script::new(fenced(Wait::No).taking_over(held_lock(0, 5_000)));
        let request = script.attempt(1_000, draw(1).at(50));
        assert_eq!(
            (request.verb(), request.fence().unwrap()),
            (Verb::Handoff, 50)
        );
        script
    };
    let held = start().answer(1_005, fenced_votes("yyy--", [50; 5])).done();
    assert_eq!(token(held), Some(50));
    // The predecessor is removed from nodes that did not get the handoff, without waiting.
    let mut script = start();
    let mut claims = fenced_votes("yyy--", [50, 51, 50, 0, 0]);
    claims.sent.remove(Node::new(4));
    let undo = script.answer(1_005, claims).undo();
    assert_eq!(token_of(&undo), held_lock(0, 5_000).token);
    assert_eq!(undo.nodes.iter().map(Node::index).collect::<Vec<_>>(), [4]);
    let request = script.request();
    assert_eq!(
        (
            request.verb(),
            request.fence().unwrap(),
            request.predecessor()
        ),
        (Verb::Fence, 51, None)
    );
    let undo = script.answer(1_020, votes_of("ynn--")).undo();
    assert_eq!(
        (token_of(&undo), undo.ttl().unwrap().as_millis()),
        (draw(1).token, 1_000)
    );
    script.done();
}
