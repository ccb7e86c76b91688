//! Taking the lock in turn.

use super::*;

/// A waiter with these nodes' reservations, which may take its turn at 1,500.
fn called(acquire: Acquire, reserved: &str) -> Script<Acquire> {
    let (mut script, _) = joined(acquire, 0);
    script.answer(1_500, ballot(reserved));
    assert!(script.operation().is_called());
    script
}

#[test]
fn a_majority_of_reservations_leads_to_a_turn_with_a_fresh_token() {
    let mut script = called(waiting(Wait::Forever), "-yy-y");
    assert_eq!(script.wait(), at(1_500));
    let turn = script.attempt(1_501, draw(2));
    assert_eq!((turn.verb(), token_of(&turn)), (Verb::Turn, draw(2).token));
    assert_eq!((turn.waiter(), turn.ttl()), (Some(draw(1).token), Some(ttl(10_000))));
    assert_eq!((turn.started, turn.deadline), (at(1_501), at(1_551)));
    assert_eq!(turn.nodes, NodeSet::all(5), "a reservation is no vote");
    let Acquired::Held(lease) = script.answer(1_505, ballot("yyy--")).done() else { panic!() };
    assert_eq!((lease.token, lease.waiter), (draw(2).token, Some(draw(1).token)));
    assert_eq!((lease.since, lease.valid_until), (at(1_501), at(1_501 + 9_898)));
    assert_eq!(lease.nodes, NodeSet::all(5));
}

#[test]
fn a_waiter_that_stood_far_back_or_wants_a_short_lock_asks_before_its_turn() {
    let rules = || Arc::new(Rules { waiter_lease: Some(ttl(1_500)), ..(*rules(5)).clone() });
    let short = |millis| Acquire::new(rules(), Arc::from(&b"key"[..]), ttl(millis), Wait::Forever);
    for (acquire, place, asks) in [
        (waiting(Wait::Forever), 0, false),
        (waiting(Wait::Forever), 7, false),
        (waiting(Wait::Forever), 8, true),
        (short(1_501), 0, false),
        (short(1_500), 0, true),
    ] {
        let (mut script, _) = joined(acquire, place);
        script.answer(1_500, ballot("yyy--"));
        if !asks {
            assert_eq!(script.attempt(1_500, draw(2)).verb(), Verb::Turn, "{place}");
            continue;
        }
        assert_eq!(script.request().verb(), Verb::Queue, "{place}");
        assert_eq!(script.answer(1_505, reserved()).wait(), at(1_505), "{place}");
        assert_eq!(script.attempt(1_505, draw(2)).verb(), Verb::Turn, "{place}");
    }
}

#[test]
fn a_minority_of_reservations_is_no_turn() {
    let (mut script, _) = joined(waiting(Wait::Forever), 0);
    let request = script.answer(2_010, ballot("yy---")).request();
    assert_eq!(request.verb(), Verb::Queue);
    assert!(!script.operation().is_called());
}

#[test]
fn reservations_in_the_answers_of_the_queue_count_with_those_that_are_told_later() {
    let (mut script, _) = refused(waiting(Wait::Forever));
    let mut answers = placed(0);
    answers.queue.reserved = nodes("yy---");
    assert_eq!(script.answer(1_010, answers).request().verb(), Verb::Await);
    script.answer(1_020, ballot("--y--"));
    assert_eq!(script.attempt(1_020, draw(2)).verb(), Verb::Turn);

    // With a majority of them at once, nothing is awaited.
    let (mut script, _) = refused(waiting(Wait::Forever));
    answers.queue.reserved = nodes("yyy--");
    script.answer(1_010, answers);
    assert_eq!(script.attempt(1_010, draw(2)).verb(), Verb::Turn);
}

#[test]
fn what_nodes_told_counts_until_they_answer_themselves() {
    let rules = Arc::new(Rules { waiter_lease: Some(ttl(1_500)), ..(*rules(5)).clone() });
    let short =
        || Acquire::new(Arc::clone(&rules), Arc::from(&b"key"[..]), ttl(1_500), Wait::Forever);
    // A short lock: the waiter asks before its turn, and the first three nodes decide that round.
    for (reserved, is_called) in [("-yy--", true), ("--y--", true), ("-----", false)] {
        let (mut script, _) = joined(short(), 0);
        assert_eq!(script.answer(1_500, ballot("yyyyy")).request().verb(), Verb::Queue);
        let mut answers = placed(0);
        answers.queue.reserved = nodes(reserved);
        script.answer(1_505, answers);
        assert_eq!(script.operation().is_called(), is_called, "{reserved}");
    }
}

#[test]
fn a_failed_turn_is_withdrawn_by_the_next_request_to_the_queue_with_the_same_number() {
    for votes in ["yynnn", "nnn--", "fff--", "-----"] {
        let mut script = called(waiting(Wait::Forever), "yyy--");
        script.attempt(1_500, draw(2));
        let request = script.answer(1_550, ballot(votes)).request();
        let QueueEntry { lock, waiter, number, .. } = entry(&request);
        assert_eq!((lock.token, *waiter, *number), (draw(2).token, draw(1).token, 7), "{votes}");
        assert_eq!(request.nodes, NodeSet::all(5), "{votes}");
        assert!(!script.operation().is_called(), "what was told before counts for one turn");
        assert_eq!(script.answer(1_555, placed(1)).request().verb(), Verb::Await, "{votes}");
    }
}

#[test]
fn a_turn_that_comes_too_late_is_withdrawn_and_the_place_kept() {
    let mut script = called(waiting(Wait::Forever), "yyy--");
    script.attempt(1_500, draw(2));
    let request = script.answer(1_500 + 9_898, ballot("yyyyy")).request();
    assert_eq!((token_of(&request), entry(&request).number), (draw(2).token, 7));
}

#[test]
fn every_turn_has_a_token_of_its_own() {
    let mut script = called(waiting(Wait::Forever), "yyy--");
    let mut now = 1_500;
    for turn in 2..50 {
        now = script.wait().as_nanos().div_ceil(1_000_000).max(now);
        let request = script.attempt(now, draw(turn));
        assert_eq!((request.verb(), token_of(&request)), (Verb::Turn, draw(turn).token));
        let request = script.answer(now, ballot("nnn--")).request();
        assert_eq!(token_of(&request), draw(turn).token);
        script.answer(now, reserved());
    }
}

/// The answers of nodes that all reserve the lock for the waiter, for as long as they do.
fn reserved() -> Ballot {
    let mut answers = placed(0);
    answers.queue.reserved = nodes("yyyyy");
    answers.queue.left = Some(Duration::from_millis(1_500));
    answers
}

#[test]
fn hints_that_were_false_four_times_are_not_believed_any_more() {
    let mut script = called(waiting(Wait::Forever), "yyy--");
    let mut now = at(1_500);
    for failed in 1..=4 {
        now = now.max(script.wait());
        assert_eq!(script.attempt_at(now, draw(failed + 1)).verb(), Verb::Turn);
        let look = script.answer_at(now, ballot("nnn--")).request();
        assert_eq!(entry(&look).listens, failed < 4, "{failed}");
        assert_eq!(script.answer_at(now, placed(0)).request().verb(), Verb::Await);
        script.answer_at(now, ballot("yyy--"));
    }
    // It asks instead, and takes its turn when the nodes answer that they reserve the lock.
    let look = script.request();
    assert_eq!((look.verb(), entry(&look).listens), (Verb::Queue, false));
    now = script.answer_at(now, reserved()).wait().max(now);
    assert_eq!(script.attempt_at(now, draw(9)).verb(), Verb::Turn);
}

#[test]
fn failures_delay_the_turns_from_the_third_on() {
    let mut script = called(waiting(Wait::Forever), "yyy--");
    let mut longest = Duration::ZERO;
    let mut now = at(1_500);
    for failed in 0..40 {
        let until = script.wait();
        let delay = until.since(now);
        longest = longest.max(delay);
        assert_eq!(delay.is_zero(), failed <= 2, "after {failed}: {delay:?}");
        assert!(delay <= Duration::from_millis(200), "after {failed}: {delay:?}");
        now = now.max(until);
        assert_eq!(script.attempt_at(now, draw(failed + 2)).verb(), Verb::Turn);
        script.answer_at(now, ballot("nnn--")).request();
        script.answer_at(now, reserved());
    }
    assert!(longest > Duration::from_millis(50), "{longest:?}");
}

#[test]
fn quarantine_delays_the_turn_and_keeps_the_place() {
    let mut script = called(waiting(Wait::Forever), "yyy--");
    script.attempt(1_500, draw(2));
    let quarantined = Ballot { quarantine: Duration::from_millis(700), ..ballot("yyfff") };
    let request = script.answer(1_505, quarantined).request();
    assert_eq!(entry(&request).number, 7);
    let mut answers = placed(0);
    answers.queue.reserved = nodes("yyyyy");
    let until = script.answer(1_510, answers).wait();
    assert!(until > at(2_205) && until <= at(2_305), "{until:?}");
    let turn = script.attempt_at(until, draw(3));
    assert_eq!((turn.verb(), turn.waiter()), (Verb::Turn, Some(draw(1).token)));
}

#[test]
fn a_fenced_lock_is_taken_in_turn_with_its_counters() {
    let attributes = LockAttributes { fence: Some(ttl(3_600_000)), ..LockAttributes::default() };
    let fenced = waiting(Wait::Forever).with(Some(Arc::new(attributes)));
    let mut script = called(fenced, "yyy--");
    let turn = script.attempt(1_500, draw(2).at(50));
    assert_eq!((turn.verb(), turn.fence()), (Verb::Turn, Some(50)));
    // The counters disagree, so a second round confirms the largest.
    let request = script.answer(1_505, fenced_ballot("yyy--", [60, 61, 60, 0, 0])).request();
    assert_eq!((request.verb(), request.fence()), (Verb::Fence, Some(61)));
    let Acquired::Held(lease) = script.answer(1_510, ballot("yyy--")).done() else { panic!() };
    assert_eq!((lease.fence, lease.waiter), (Some(61), Some(draw(1).token)));
}

#[test]
fn a_fenced_turn_that_is_not_confirmed_is_withdrawn_and_the_place_kept() {
    let attributes = LockAttributes { fence: Some(ttl(3_600_000)), ..LockAttributes::default() };
    let fenced = waiting(Wait::Forever).with(Some(Arc::new(attributes)));
    let mut script = called(fenced, "yyy--");
    script.attempt(1_500, draw(2));
    script.answer(1_505, fenced_ballot("yyy--", [60, 61, 60, 0, 0])).request();
    let request = script.answer(1_510, ballot("nnn--")).request();
    let QueueEntry { lock, waiter, number, .. } = entry(&request);
    assert_eq!((lock.token, *waiter, *number), (draw(2).token, draw(1).token, 7));
}

#[test]
fn a_lock_that_is_handed_off_keeps_the_waiter_whose_turn_it_was() {
    let waiter = Some(draw(1).token);
    let before = Lease { waiter, ..lease(0, 500) };
    let mut script = Script::new(waiting(Wait::Forever).succeeding(before));
    let handoff = script.attempt(100, draw(2));
    assert_eq!(handoff.predecessor().expect("of a handoff").waiter, waiter);
    // A node that refused it may still have the waiter in its queue.
    let Acquired::Held(lease) = script.answer(105, ballot("yyynn")).done() else { panic!() };
    assert_eq!((lease.token, lease.waiter), (draw(2).token, waiter));
}

#[test]
fn a_lock_that_was_taken_in_turn_is_removed_with_its_waiter() {
    let mut script = called(waiting(Wait::Forever), "yyy--");
    script.attempt(1_501, draw(2));
    let Acquired::Held(lease) = script.answer(1_505, ballot("yyy--")).done() else { panic!() };
    let undo = lease.undo(at(1_600), &rules(5));
    assert_eq!((token_of(&undo), undo.waiter()), (draw(2).token, Some(draw(1).token)));
}

#[test]
fn a_lock_knows_whether_others_wait_for_it() {
    for is_awaited in [false, true] {
        let mut script = called(waiting(Wait::Forever), "yyy--");
        script.attempt(1_501, draw(2));
        let mut answers = ballot("yyy--");
        answers.queue.is_awaited = is_awaited;
        let Acquired::Held(lease) = script.answer(1_505, answers).done() else { panic!() };
        assert_eq!(lease.is_awaited, is_awaited);
    }
}
