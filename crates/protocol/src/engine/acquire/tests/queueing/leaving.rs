//! How a wait in the queue ends without the lock.

use super::*;

/// The waiter's removal from all nodes, with what its last attempt may have left there.
fn leaves(script: &mut Script, token: Token) {
    let undo = script.undo();
    assert_eq!(
        (undo.waiter(), undo.nodes),
        (Some(draw(1).token), NodeSet::all(5))
    );
    assert_eq!((token_of(&undo), undo.key()), (token, &b"key"[..]));
    assert_eq!(undo.verb(), Verb::Undo);
    let Command::Remove(removal) = undo.command else {
        panic!()
    };
    assert!(removal.keep_for.is_none() && removal.ttl >= ttl(10_000));
}

#[test]
fn the_deadline_ends_the_wait_to_the_millisecond_and_leaves() {
    let (mut script, wait) = joined(waiting(until(1_700)), 0);
    assert_eq!(wait.until, at(1_700), "before the entry is to be renewed");
    script.not_called(1_700);
    leaves(&mut script, draw(1).token);
    assert!(matches!(script.done(), Acquired::Contended));
}

#[test]
fn a_reservation_that_comes_with_the_deadline_is_too_late() {
    let (mut script, _) = joined(waiting(until(1_700)), 0);
    script.called(1_700, draw(2));
    leaves(&mut script, draw(1).token);
    assert!(matches!(script.done(), Acquired::Contended));
}

#[test]
fn rounds_about_the_queue_end_with_the_deadline() {
    let (mut script, request) = refused(waiting(until(1_020)));
    assert_eq!(request.deadline, at(1_020));
    // The numbers disagree, and there is no time left to settle them.
    script.answer(1_020, numbered([7, 8, 9, 0, 0]));
    leaves(&mut script, draw(1).token);
    assert!(matches!(script.done(), Acquired::Contended));

    let (mut script, _) = joined(waiting(until(1_520)), 0);
    let turn = script.called(1_500, draw(2)).request();
    assert_eq!(turn.deadline, at(1_520));
    script.answer(1_520, votes_of("yy---"));
    leaves(&mut script, draw(2).token);
    assert!(matches!(script.done(), Acquired::Contended));
}

#[test]
fn a_renewal_that_the_deadline_cuts_short_does_not_hide_that_others_hold_the_lock() {
    for (votes, is_contended) in [("y----", true), ("-----", true), ("yfff-", false)] {
        let (mut script, _) = joined(waiting(until(2_020)), 0);
        assert_eq!(script.not_called(2_010).request().deadline, at(2_020));
        script.answer(2_020, votes_of(votes));
        leaves(&mut script, draw(1).token);
        let outcome = script.done();
        assert_eq!(
            matches!(outcome, Acquired::Contended),
            is_contended,
            "{votes}: {outcome:?}"
        );
    }
}

#[test]
fn a_turn_that_fails_just_before_the_deadline_is_removed_with_the_waiter() {
    let (mut script, _) = joined(waiting(until(1_520)), 0);
    script.called(1_500, draw(2)).request();
    // Another round as long as this one does not fit in.
    let mut answers = votes_of("yynnn");
    answers.sent.remove(Node::new(4));
    script.answer(1_511, answers);
    leaves(&mut script, draw(2).token);
    assert_eq!(script.wait(), at(1_520));
    script.oversleep(1_520, draw(3));
    assert!(matches!(script.done(), Acquired::Contended));
}

#[test]
fn a_waiter_whom_too_few_nodes_let_in_leaves_and_backs_off() {
    let (mut script, _) = refused(waiting(Wait::Forever));
    script.answer(1_055, numbered([7, 7, 0, 0, 0]));
    leaves(&mut script, draw(1).token);
    let until = script.wait();
    assert!(until > at(1_055) && until <= at(1_155), "{until:?}");
    assert_eq!(script.operation().place(), None);
    // It tries again, and joins again, by another name.
    let request = script.attempt_at(until, draw(2));
    assert_eq!(
        (request.verb(), token_of(&request)),
        (Verb::Acquire, draw(2).token)
    );
    let request = script.answer_at(until, votes_of("nnn--")).request();
    assert_eq!(
        (entry(&request).waiter, entry(&request).number),
        (draw(2).token, 0)
    );
}

#[test]
fn when_too_few_nodes_have_a_queue_the_call_joins_no_more() {
    // The nodes without a queue are a majority, or with those that let the waiter in.
    let table = [
        ("ffffy", "y----", true),
        ("fffff", "yy---", true),
        ("fffff", "yyy--", false),
        ("fffyy", "y----", false),
        // The round ended before the others could answer.
        ("fff--", "y----", false),
        ("ffff-", "y----", true),
    ];
    for (votes, without, joins_again) in table {
        let (mut script, _) = refused(waiting(Wait::Forever));
        let mut answers = votes_of(votes);
        answers.queue.without = nodes(without);
        script.answer(1_010, answers);
        leaves(&mut script, draw(1).token);
        for attempt in 2..10 {
            let until = script.wait();
            script.attempt_at(until, draw(attempt));
            let request = script.answer_at(until, votes_of("nnn--")).request();
            assert_eq!(
                request.verb() == Verb::Queue,
                joins_again,
                "{votes} {without}"
            );
            if joins_again {
                break;
            }
            assert_eq!(
                (request.verb(), request.waiter()),
                (Verb::Undo, None),
                "{votes}"
            );
        }
    }
}

#[test]
fn a_waiter_leaves_a_queue_that_a_majority_of_the_nodes_has_no_more() {
    for (votes, without, leaves_it) in [
        ("fffff", "yy---", false),
        ("fffff", "yyy--", true),
        ("fffyy", "y----", true),
        ("fff--", "y----", true),
    ] {
        let (mut script, _) = joined(waiting(Wait::Forever), 0);
        script.not_called(2_010).request();
        let mut answers = votes_of(votes);
        answers.queue.without = nodes(without);
        script.answer(2_015, answers);
        if !leaves_it {
            let until = script.wait();
            let request = script
                .wake_at(until, draw(2))
                .not_called_at(until)
                .request();
            assert_eq!(request.verb(), Verb::Queue, "{without}");
            continue;
        }
        leaves(&mut script, draw(1).token);
        let until = script.wait();
        assert_eq!(
            script.attempt_at(until, draw(2)).verb(),
            Verb::Acquire,
            "{without}"
        );
        let undo = script.answer_at(until, votes_of("nnn--")).undo();
        assert_eq!(undo.waiter(), None, "it joins no more");
    }
}

#[test]
fn permanent_failures_and_twins_end_the_wait_in_the_queue() {
    let (mut script, _) = joined(waiting(Wait::Forever), 0);
    script.not_called(2_010).request();
    let mut answers = votes_of("yyfff");
    answers.permanent_failures = answers.tally.failed;
    script.answer(2_015, answers);
    leaves(&mut script, draw(1).token);
    assert!(matches!(script.done(), Acquired::Unanswered));

    let (mut script, _) = refused(waiting(Wait::Forever));
    script.answer(
        1_010,
        Votes {
            same_server: true,
            ..placed(0)
        },
    );
    leaves(&mut script, draw(1).token);
    assert!(matches!(script.done(), Acquired::SameServer));

    let (mut script, _) = joined(waiting(Wait::Forever), 0);
    script.called(1_500, draw(2)).request();
    script.answer(
        1_505,
        Votes {
            same_server: true,
            ..votes_of("yyyyy")
        },
    );
    leaves(&mut script, draw(2).token);
    assert!(matches!(script.done(), Acquired::SameServer));
}

#[test]
fn without_random_numbers_a_waiter_leaves() {
    let (mut script, _) = joined(waiting(Wait::Forever), 0);
    script.operation().handle(at(1_500), Input::NoEntropy);
    leaves(&mut script, draw(1).token);
    assert!(matches!(script.done(), Acquired::NoEntropy));
}

#[test]
fn a_caller_that_abandons_its_wait_leaves() {
    // While it waits, and when its wait has ended before its time.
    let (mut script, _) = joined(waiting(Wait::Forever), 0);
    script.cancel(1_500);
    leaves(&mut script, draw(1).token);
    assert!(matches!(script.done(), Acquired::Contended));

    // Before the nodes are asked.
    let (mut script, _) = joined(waiting(Wait::Forever), 0);
    script.not_called(1_200).cancel(1_200);
    leaves(&mut script, draw(1).token);
    assert!(matches!(script.done(), Acquired::Contended));

    // Before it had joined, with the try already undone.
    let mut script = Script::new(waiting(Wait::Forever));
    script.attempt(1_000, draw(1));
    script.answer(1_005, votes_of("fff--")).undo();
    script.cancel(1_006);
    assert!(matches!(script.done(), Acquired::Contended));
}

#[test]
fn abandoning_before_the_first_attempt_removes_the_predecessor() {
    let acquire = waiting(Wait::Forever).taking_over(held_lock(0, 500));
    let mut script = Script::new(acquire);
    script.cancel(100);
    let undo = script.undo();
    assert_eq!(
        (token_of(&undo), undo.waiter()),
        (held_lock(0, 500).token, None)
    );
    assert!(matches!(script.done(), Acquired::Contended));
}

#[test]
fn a_failed_handoff_joins_and_removes_the_predecessor() {
    let acquire = waiting(Wait::Forever).taking_over(held_lock(0, 500));
    let mut script = Script::new(acquire);
    assert_eq!(script.attempt(1_000, draw(1)).verb(), Verb::Handoff);
    script.answer(1_005, votes_of("nnn--"));
    assert_eq!(token_of(&script.undo()), held_lock(0, 500).token);
    let request = script.request();
    assert_eq!(
        (request.verb(), token_of(&request)),
        (Verb::Queue, draw(1).token)
    );
}

#[test]
fn a_removal_at_the_deadline_is_worth_sending_for_as_long_as_the_entry_is_kept() {
    let rules = Rules {
        waiter_lease: Some(ttl(1_500)),
        ..(*rules(5)).clone()
    };
    let key = Arc::from(&b"key"[..]);
    let acquire = Acquire::new(Arc::new(rules), key, ttl(100), until(1_520));
    let (mut script, _) = joined(acquire, 0);
    script.called(1_500, draw(2)).request();
    let undo = script.answer(1_520, votes_of("yy---")).undo();
    assert_eq!(
        (undo.waiter(), undo.ttl()),
        (Some(draw(1).token), Some(ttl(1_500)))
    );
}

#[test]
fn no_place_is_known_before_the_number_is_settled() {
    let (mut script, _) = refused(waiting(Wait::Forever));
    let mut answers = numbered([7, 8, 9, 0, 0]);
    answers.queue.place = 5;
    script.answer(1_010, answers).request();
    assert_ne!(
        script.operation().place(),
        Some(0),
        "five others are before it"
    );
}
