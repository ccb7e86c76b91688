//! When a waiter renews its entry, and for how long the nodes keep it.

use super::*;

/// The time until which a waiter in this place waits, having joined at 1,010.
fn renewed_at(change: impl FnOnce(&mut QueueState)) -> (Script, Time) {
    let (mut script, _) = refused(waiting(Wait::Forever));
    let mut answers = placed(2);
    change(&mut answers.queue);
    let until = script.answer(1_010, answers).queue_wait().until;
    (script, until)
}

/// A renewal that goes unheard until its time, and is answered 5 ms later: the next time.
fn renew(script: &mut Script, now: Time, place: u64) -> (Ttl, Time) {
    let lease = entry(&script.not_called_at(now).request()).lease;
    let wait = script.answer_at(now, placed(place)).queue_wait();
    (lease, wait.until)
}

#[test]
fn the_first_renewal_follows_after_two_thirds_of_the_lease_that_was_sent() {
    for place in [0, 3, 4, 100] {
        let (_, until) = renewed_at(|queue| queue.place = place);
        assert_eq!(until, at(2_010), "{place}");
    }
}

#[test]
fn leases_and_pauses_are_longer_further_back() {
    let table = [
        (0, 1),
        (7, 1),
        (8, 2),
        (15, 2),
        (16, 3),
        (55, 7),
        (56, 8),
        (1_000, 8),
    ];
    for (place, step) in table {
        let (mut script, until) = renewed_at(|queue| queue.place = place);
        let (lease, next) = renew(&mut script, until, place);
        assert_eq!(lease, ttl(1_500 * step), "{place}");
        assert_eq!(
            next,
            until.after(Duration::from_millis(1_000 * step)),
            "{place}"
        );
    }
}

#[test]
fn a_first_waiter_renews_less_often_where_its_client_has_very_many_and_no_other_does() {
    let table = [
        (1, 1),
        (499, 1),
        (500, 2),
        (1_000, 3),
        (3_500, 8),
        (100_000, 8),
    ];
    for (waiters, step) in table {
        for (place, step) in [(0, step), (1, 1), (7, 1), (16, 3)] {
            let answers = || {
                let mut answers = placed(place);
                answers.queue.waiters = waiters;
                answers
            };
            let (mut script, until) = renewed_at(|queue| *queue = answers().queue);
            assert_eq!(until, at(2_010), "it joined with a short lease");
            let lease = entry(&script.not_called_at(until).request()).lease;
            let next = script.answer_at(until, answers()).queue_wait().until;
            assert_eq!(lease, ttl(1_500 * step), "{waiters} {place}");
            let pause = Duration::from_millis(1_000 * step);
            // The others of the crowd renew with it.
            let crowd = if place == 0 && step > 1 { 10 } else { 0 };
            let expected = until.after(pause).before(Duration::from_millis(crowd));
            assert_eq!(next, expected, "{waiters} {place}");
        }
    }
    // Nor does one that is told nothing: for its reservation others would wait long.
    let (mut script, until) = renewed_at(|queue| {
        (queue.place, queue.waiters, queue.listening) = (0, 10_000, nodes("yy---"));
    });
    let lease = entry(&script.not_called_at(until).request()).lease;
    assert_eq!(lease, ttl(1_500));
}

#[test]
fn a_waiter_that_joins_a_crowd_is_kept_for_as_long_from_the_first() {
    // The first waiter alone renews as late as that.
    for (waiters, place, step, seconds) in [(499, 0, 1, 1), (3_500, 0, 8, 8), (3_500, 1, 8, 1)] {
        let mut script = Script::new(waiting(Wait::Forever));
        script.attempt(1_000, draw(0));
        let mut refused = votes_of("nnn--");
        refused.queue.waiters = waiters;
        let request = script.answer(1_005, refused).request();
        let in_front = entry(&request).lease_in_front;
        assert_eq!(
            (entry(&request).lease, in_front),
            (ttl(1_500 * step), ttl(1_500))
        );
        let mut answers = placed(place);
        answers.queue.waiters = waiters;
        let until = script.answer(1_010, answers).queue_wait().until;
        let crowd = if seconds == 8 { 10 } else { 0 };
        let expected = at(1_010 + 1_000 * seconds - crowd);
        assert_eq!(until, expected, "{waiters} {place}");
    }
}

#[test]
fn waiters_of_a_crowd_that_joined_together_do_not_renew_together() {
    let renewals = [0, 1, 128, 255].map(|name| {
        let mut script = Script::new(waiting(Wait::Forever));
        script.attempt(1_000, draw(name));
        script.answer(1_005, votes_of("nnn--")).request();
        let mut answers = placed(0);
        answers.queue.waiters = 10_000;
        let mut until = script.answer(1_010, answers.clone()).queue_wait().until;
        assert_eq!(until, at(2_010), "it joined where there were few");
        [(); 3].map(|()| {
            script.not_called_at(until).request();
            until = script.answer_at(until, answers.clone()).queue_wait().until;
            until
        })
    });
    // By and by, in groups, and none later than its entry needs it.
    let expected = [
        [10_000, 18_000, 26_000],
        [10_000, 17_500, 25_000],
        [9_500, 17_000, 24_500],
        [9_000, 16_000, 23_000],
    ];
    assert_eq!(renewals, expected.map(|times| times.map(at)));
}

#[test]
fn a_waiter_that_moves_to_the_front_renews_as_often_as_one_that_was_there() {
    let (mut script, until) = renewed_at(|queue| queue.place = 56);
    let (lease, next) = renew(&mut script, until, 0);
    // It was kept for long this time, and has asked for less from the next time on.
    assert_eq!(
        (lease, next),
        (ttl(12_000), until.after(Duration::from_secs(1)))
    );
    let (lease, _) = renew(&mut script, next, 0);
    assert_eq!(lease, ttl(1_500));
}

#[test]
fn waiters_ask_when_the_key_expires_each_behind_the_first_after_the_one_before_it() {
    let left = Duration::from_millis(300);
    let table = [
        (0, 1_311),
        (1, 1_311),
        (2, 1_311),
        (3, 1_321),
        (70, 1_991),
        (72, 2_010),
    ];
    for (place, expected) in table.into_iter().chain([(u64::MAX, 2_010)]) {
        let (_, until) = renewed_at(|queue| (queue.place, queue.left) = (place, Some(left)));
        assert_eq!(until, at(expected), "{place}");
    }
    // Not later than the entry needs it.
    let left = Duration::from_secs(30);
    let (_, until) = renewed_at(|queue| (queue.place, queue.left) = (0, Some(left)));
    assert_eq!(until, at(2_010));
}

#[test]
fn a_renewal_keeps_the_number_and_the_name() {
    let (mut script, until) = renewed_at(|_| {});
    let request = script.not_called_at(until).request();
    let QueueEntry {
        lock,
        waiter,
        number,
        since,
        ..
    } = entry(&request);
    assert_eq!(
        (lock.token, *waiter, *number),
        (draw(1).token, draw(1).token, 7)
    );
    assert_eq!((*since, request.deadline), (5_000_000, at(2_060)));
}

#[test]
fn a_renewal_without_a_majority_keeps_the_place_and_is_repeated_after_a_pause() {
    let (mut script, until) = renewed_at(|_| {});
    let mut now = until;
    script.not_called_at(now).request();
    for failure in 0..20 {
        now = now.after(Duration::from_millis(50));
        let next = script.answer_at(now, votes_of("yyfff")).wait();
        let pause = next.since(now);
        assert!(
            !pause.is_zero() && pause <= Duration::from_millis(500),
            "{failure}: {pause:?}"
        );
        // Each may cost the others the time of a reservation.
        assert!(
            failure < 10 || pause == Duration::from_millis(500),
            "{failure}: {pause:?}"
        );
        assert_eq!(script.operation().place(), Some(2), "{failure}");
        now = next;
        script.wake_at(now, draw(failure));
        let request = script.not_called_at(now).request();
        assert_eq!(entry(&request).number, 7, "{failure}");
        assert_eq!(
            token_of(&request),
            draw(1).token,
            "no token is lost without a turn"
        );
    }
    script.answer_at(now, placed(1)).queue_wait();
}

#[test]
fn a_waiter_whom_too_few_nodes_will_tell_asks_soon_and_then_less_often() {
    let (mut script, mut until) = renewed_at(|queue| {
        (queue.place, queue.listening) = (0, nodes("yy---"));
    });
    let mut pauses = vec![until.since(at(1_010)).as_millis()];
    for _ in 0..5 {
        script.not_called_at(until).request();
        let mut answers = placed(0);
        answers.queue.listening = nodes("yy---");
        let next = script.answer_at(until, answers).queue_wait().until;
        pauses.push(next.since(until).as_millis());
        until = next;
    }
    // Ten times the base of the pauses between attempts, up to their cap.
    assert_eq!(
        pauses[0],
        10 * 2,
        "the place was unknown before, which is as if it had been first"
    );
    assert_eq!(pauses[1..], [40, 80, 100, 100, 100]);
}

#[test]
fn a_waiter_that_moves_up_asks_soon_again() {
    let deaf = |place| {
        let mut answers = placed(place);
        answers.queue.listening = NodeSet::EMPTY;
        answers
    };
    let (mut script, mut until) = renewed_at(|queue| {
        (queue.place, queue.listening) = (2, NodeSet::EMPTY);
    });
    // Further back it asks less often.
    assert_eq!(until, at(1_010 + 30));
    for (place, expected) in [(2, 60), (2, 120), (1, 20), (1, 40), (0, 10), (0, 20)] {
        script.not_called_at(until).request();
        let next = script.answer_at(until, deaf(place)).queue_wait().until;
        assert_eq!(
            next,
            until.after(Duration::from_millis(expected)),
            "{place}"
        );
        until = next;
    }
}

#[test]
fn a_lock_counts_as_held_by_another_client_until_the_next_renewal_is_answered() {
    for place in [2, 56] {
        let (mut script, until) = renewed_at(|queue| queue.place = place);
        let (_, next) = renew(&mut script, until, place);
        let round = rules(5).node_timeout;
        assert_eq!(
            script.operation().held_elsewhere_until(),
            Some(next.after(round)),
            "{place}"
        );
        // Still so while the entry is being renewed.
        script.not_called_at(next).request();
        assert_eq!(
            script.operation().held_elsewhere_until(),
            Some(next.after(round)),
            "{place}"
        );
    }
}

#[test]
fn no_lock_counts_as_held_by_another_client_before_the_waiter_has_a_place() {
    let (mut script, _) = refused(waiting(Wait::Forever));
    assert_eq!(script.operation().held_elsewhere_until(), None);
    script.answer(1_010, placed(2)).queue_wait();
    assert!(script.operation().held_elsewhere_until().is_some());
}

#[test]
fn no_lock_counts_as_held_by_another_client_once_too_few_nodes_answer() {
    for (votes, is_known) in [("yyfff", false), ("-----", false), ("yyy--", true)] {
        let (mut script, until) = renewed_at(|_| {});
        script.not_called_at(until).request();
        script.answer_at(until, votes_of(votes));
        assert!(script.operation().place().is_some(), "{votes}");
        let held_until = script.operation().held_elsewhere_until();
        assert_eq!(held_until.is_some(), is_known, "{votes}: {held_until:?}");
    }
}

#[test]
fn what_keeps_a_waiter_may_last_only_if_it_has_no_ttl() {
    for (left, expected) in [(None, true), (Some(Duration::from_secs(20)), false)] {
        let (mut script, _) = renewed_at(|queue| queue.left = left);
        assert_eq!(script.operation().may_last(), expected, "{left:?}");
    }
    // Nothing tells a caller that has no place in the queue.
    let mut once = Script::new(waiting(Wait::No));
    assert!(once.operation().may_last());
}

#[test]
fn a_waiter_that_was_taken_out_of_the_queue_four_times_joins_it_anew() {
    let out = |nodes_out| {
        let mut answers = placed(1);
        answers.queue.out = nodes(nodes_out);
        answers
    };
    for (answers, is_over) in [("yyy--", true), ("yy---", false)] {
        let (mut script, mut until) = renewed_at(|_| {});
        // The renewal that puts it back counts with the one before; on a minority, none counts.
        for nodes_out in [
            "yyyyy", "yyyyy", "-----", "yyy--", "yy---", answers, answers, "-----",
        ] {
            script.not_called_at(until).request();
            until = script.answer_at(until, out(nodes_out)).queue_wait().until;
        }
        script.not_called_at(until).request();
        script.answer_at(until, out(answers));
        if is_over {
            script.undo();
        } else {
            script.queue_wait();
        }
        assert_eq!(script.operation().place().is_none(), is_over, "{answers}");
    }
}

#[test]
fn a_waiter_that_is_taken_out_whenever_it_comes_back_joins_anew() {
    let (mut script, mut until) = renewed_at(|_| {});
    for renewal in 1..=7 {
        script.not_called_at(until).request();
        let mut answers = placed(1);
        answers.queue.out = nodes("yyy--");
        script.answer_at(until, answers);
        if renewal == 7 {
            script.undo();
        } else {
            until = script.queue_wait().until;
        }
    }
}

#[test]
fn a_waiter_that_is_called_on_to_ask_does_not_ask_without_end() {
    let (mut script, _) = refused(waiting(Wait::Forever));
    script.answer(1_010, placed(0)).queue_wait();
    let mut now = at(1_020);
    for _ in 0..10 {
        assert_eq!(script.not_called_at(now).request().verb(), Verb::Queue);
        script.answer_at(now, placed(0)).queue_wait();
        // At once again, and then after the shortest pause between two attempts.
        let next = script.not_called_at(now).wait();
        assert_eq!(next, now.after(rules(5).retry_base));
        now = next;
        let request = script.wake_at(now, draw(3)).not_called_at(now).request();
        assert_eq!(request.verb(), Verb::Queue);
        script.answer_at(now, placed(0)).queue_wait();
        now = now.after(Duration::from_millis(50));
    }
}

#[test]
fn only_the_first_waiter_has_the_nodes_tell_when_the_key_changes() {
    for (place, expected) in [(0, true), (1, false), (9, false)] {
        let (mut script, _) = refused(waiting(Wait::Forever));
        let wait = script.answer(1_010, placed(place)).queue_wait();
        assert_eq!(wait.watches, expected, "{place}");
    }
}
