//! Taking the lock in turn.

use super::*;

/// A waiter in front, which may take its turn.
pub(super) fn in_front(acquire: Acquire) -> Script {
    joined(acquire, 0).0
}

#[test]
fn a_majority_of_reservations_leads_to_a_turn_with_a_fresh_token() {
    let mut script = in_front(waiting(Wait::Forever));
    let turn = script.called(1_501, draw(2)).request();
    assert_eq!((turn.verb(), token_of(&turn)), (Verb::Turn, draw(2).token));
    assert_eq!(
        (turn.waiter(), turn.ttl()),
        (Some(draw(1).token), Some(ttl(10_000)))
    );
    assert_eq!((turn.started, turn.deadline), (at(1_501), at(1_551)));
    assert_eq!(turn.nodes, NodeSet::all(5), "a reservation is not a vote");
    let Acquired::Held(held) = script.answer(1_505, votes_of("yyy--")).done() else {
        panic!()
    };
    assert_eq!(
        (held.token, held.waiter),
        (draw(2).token, Some(draw(1).token))
    );
    assert_eq!(
        (held.since, held.valid_until),
        (at(1_501), at(1_501 + 9_898))
    );
    assert_eq!(held.nodes, NodeSet::all(5));
}

#[test]
fn a_failed_turn_is_withdrawn_by_the_next_request_to_the_queue_with_the_same_number() {
    for votes in ["yynnn", "nnn--", "fff--", "-----"] {
        let mut script = in_front(waiting(Wait::Forever));
        script.called(1_500, draw(2)).request();
        let request = script.answer(1_550, votes_of(votes)).request();
        let QueueEntry {
            lock,
            waiter,
            number,
            ..
        } = entry(&request);
        assert_eq!(
            (lock.token, *waiter, *number),
            (draw(2).token, draw(1).token, 7),
            "{votes}"
        );
        assert_eq!(request.nodes, NodeSet::all(5), "{votes}");
        script.answer(1_555, placed(1)).queue_wait();
    }
}

#[test]
fn a_turn_that_comes_too_late_is_withdrawn_and_the_place_kept() {
    let mut script = in_front(waiting(Wait::Forever));
    script.called(1_500, draw(2)).request();
    let request = script.answer(1_500 + 9_898, votes_of("yyyyy")).request();
    assert_eq!(
        (token_of(&request), entry(&request).number),
        (draw(2).token, 7)
    );
}

#[test]
fn every_turn_has_a_token_of_its_own() {
    let mut script = in_front(waiting(Wait::Forever));
    let mut now = at(1_500);
    for turn in 2..5 {
        let (begins_at, request) = script.turn(now, draw(turn));
        now = begins_at;
        assert_eq!(
            (request.verb(), token_of(&request)),
            (Verb::Turn, draw(turn).token)
        );
        let request = script.answer_at(now, votes_of("nnn--")).request();
        assert_eq!(token_of(&request), draw(turn).token);
        script.answer_at(now, reserved());
    }
}

/// The answers of nodes that all reserve the lock for the waiter, for as long as they do.
fn reserved() -> Votes {
    let mut answers = placed(0);
    answers.queue.reserved = nodes("yyyyy");
    answers.queue.left = Some(Duration::from_millis(1_500));
    answers
}

#[test]
fn failures_delay_the_turns_from_the_third_on() {
    let mut script = in_front(waiting(Wait::Forever));
    let mut longest = Duration::ZERO;
    let mut now = at(1_500);
    for failed in 0..8 {
        let (begins_at, turn) = script.turn(now, draw(failed + 2));
        assert_eq!(turn.verb(), Verb::Turn);
        let delay = begins_at.since(now);
        longest = longest.max(delay);
        assert_eq!(delay.is_zero(), failed <= 2, "after {failed}: {delay:?}");
        assert!(
            delay <= Duration::from_millis(200),
            "after {failed}: {delay:?}"
        );
        now = begins_at;
        let next = script.answer_at(now, votes_of("nnn--")).request();
        assert_eq!(next.verb(), Verb::Queue);
        script.answer_at(now, reserved());
    }
    assert!(longest > Duration::ZERO, "{longest:?}");
}

#[test]
fn a_waiter_whose_turns_take_too_long_four_times_joins_the_queue_anew() {
    // Too little of the validity is left, or too few nodes answer.
    for (votes, late) in [("yyyyy", 9_999), ("yy---", 50)] {
        let mut script = in_front(waiting(Wait::Forever));
        let mut now = at(1_500);
        for turn in 0..4 {
            let (begins_at, request) = script.turn(now, draw(turn + 2));
            assert_eq!(request.verb(), Verb::Turn);
            now = begins_at.after(Duration::from_millis(late));
            script.answer_at(now, votes_of(votes));
            if turn < 3 {
                assert_eq!(script.request().verb(), Verb::Queue, "{votes}");
                script.answer_at(now, reserved());
            }
        }
        let leave = script.request();
        assert_eq!(
            (leave.verb(), leave.waiter()),
            (Verb::Undo, Some(draw(1).token)),
            "{votes}"
        );
        assert_eq!(script.operation().place(), None);
        let until = script.wait().max(now);
        assert_eq!(script.attempt_at(until, draw(9)).verb(), Verb::Acquire);
        let join = script.answer_at(until, votes_of("nnnnn")).request();
        let QueueEntry { waiter, number, .. } = entry(&join);
        assert_eq!(
            (*waiter, *number),
            (draw(9).token, 0),
            "at the end, by another name"
        );
    }
}

#[test]
fn misses_are_forgotten_by_a_waiter_that_then_waits_for_long() {
    for (calm, is_over) in [(4, false), (2, true)] {
        let mut script = in_front(waiting(Wait::Forever));
        let mut now = at(1_500);
        for turn in 0..4 {
            let (begins_at, request) = script.turn(now, draw(turn + 2));
            assert_eq!(request.verb(), Verb::Turn);
            now = begins_at.after(Duration::from_millis(9_999));
            let next = script.answer_at(now, votes_of("yyyyy")).request();
            let is_last = turn == 3 && is_over;
            assert_eq!(
                next.verb(),
                if is_last { Verb::Undo } else { Verb::Queue },
                "{calm}"
            );
            if turn == 2 {
                for _ in 0..calm {
                    now = script.answer_at(now, placed(0)).queue_wait().until;
                    script.not_called_at(now).request();
                }
            }
            if turn < 3 {
                script.answer_at(now, reserved());
            }
        }
    }
}

#[test]
fn a_fenced_lock_is_taken_in_turn_with_its_counters() {
    let attributes = LockAttributes {
        fence: Some(ttl(3_600_000)),
        ..LockAttributes::default()
    };
    let fenced = waiting(Wait::Forever).with(Some(Arc::new(attributes)));
    let mut script = in_front(fenced);
    let turn = script.called(1_500, draw(2).at(50)).request();
    assert_eq!((turn.verb(), turn.fence()), (Verb::Turn, Some(50)));
    // The counters disagree, so a second round confirms the largest.
    let request = script
        .answer(1_505, fenced_votes("yyy--", [60, 61, 60, 0, 0]))
        .request();
    assert_eq!((request.verb(), request.fence()), (Verb::Fence, Some(61)));
    let Acquired::Held(held) = script.answer(1_510, votes_of("yyy--")).done() else {
        panic!()
    };
    assert_eq!((held.fence, held.waiter), (Some(61), Some(draw(1).token)));
}

#[test]
fn a_fenced_turn_that_is_not_confirmed_is_withdrawn_and_the_place_kept() {
    let attributes = LockAttributes {
        fence: Some(ttl(3_600_000)),
        ..LockAttributes::default()
    };
    let fenced = waiting(Wait::Forever).with(Some(Arc::new(attributes)));
    let mut script = in_front(fenced);
    script.called(1_500, draw(2)).request();
    script
        .answer(1_505, fenced_votes("yyy--", [60, 61, 60, 0, 0]))
        .request();
    let request = script.answer(1_510, votes_of("nnn--")).request();
    let QueueEntry {
        lock,
        waiter,
        number,
        ..
    } = entry(&request);
    assert_eq!(
        (lock.token, *waiter, *number),
        (draw(2).token, draw(1).token, 7)
    );
}

#[test]
fn a_lock_that_is_handed_off_keeps_the_waiter_whose_turn_it_was() {
    let waiter = Some(draw(1).token);
    let before = HeldLock {
        waiter,
        ..held_lock(0, 500)
    };
    let mut script = Script::new(waiting(Wait::Forever).taking_over(before));
    let handoff = script.attempt(100, draw(2));
    assert_eq!(handoff.predecessor().expect("of a handoff").waiter, waiter);
    // A node that refused it may still have the waiter in its queue.
    let Acquired::Held(held) = script.answer(105, votes_of("yyynn")).done() else {
        panic!()
    };
    assert_eq!((held.token, held.waiter), (draw(2).token, waiter));
}

#[test]
fn a_lock_that_was_taken_in_turn_is_removed_with_its_waiter() {
    let mut script = in_front(waiting(Wait::Forever));
    script.called(1_501, draw(2)).request();
    let Acquired::Held(held) = script.answer(1_505, votes_of("yyy--")).done() else {
        panic!()
    };
    let undo = held.undo(at(1_600), &rules(5));
    assert_eq!(
        (token_of(&undo), undo.waiter()),
        (draw(2).token, Some(draw(1).token))
    );
}

#[test]
fn a_lock_knows_whether_others_wait_for_it() {
    for is_awaited in [false, true] {
        let mut script = in_front(waiting(Wait::Forever));
        script.called(1_501, draw(2)).request();
        let mut answers = votes_of("yyy--");
        answers.queue.is_awaited = is_awaited;
        let Acquired::Held(held) = script.answer(1_505, answers).done() else {
            panic!()
        };
        assert_eq!(held.is_awaited, is_awaited);
    }
}
