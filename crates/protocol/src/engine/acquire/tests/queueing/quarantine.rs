//! A place in the queue while nodes are in quarantine.

use super::turns::in_front;
use super::*;

#[test]
fn quarantine_delays_the_turn_and_keeps_the_place() {
    let mut script = in_front(waiting(Wait::Forever));
    script.called(1_500, draw(2)).request();
    let quarantined = Votes {
        quarantine: Duration::from_millis(700),
        ..votes_of("yyfff")
    };
    let request = script.answer(1_505, quarantined).request();
    assert_eq!(entry(&request).number, 7);
    script.answer(1_510, placed(0));
    let (until, turn) = script.turn(at(1_510), draw(3));
    assert!(until > at(2_205) && until <= at(2_305), "{until:?}");
    assert_eq!(
        (turn.verb(), turn.waiter()),
        (Verb::Turn, Some(draw(1).token))
    );
}

/// How long a node reserves the lock for the waiter of this request, in milliseconds.
fn claim(request: &Request) -> (u128, u128) {
    let ClaimTime { notified, asking } = entry(request).claim;
    (
        notified.as_duration().as_millis(),
        asking.as_duration().as_millis(),
    )
}

#[test]
fn a_reservation_outlasts_the_quarantine_in_which_it_cannot_be_claimed() {
    let second = Duration::from_secs(1);
    let quarantined = |seconds| Votes {
        quarantine: second * seconds,
        ..placed(0)
    };
    let mut script = Script::new(waiting(Wait::Forever));
    script.attempt(1_000, draw(1).at(5_000_000));
    let joins = Votes {
        quarantine: second * 20,
        ..votes_of("fff--")
    };
    assert_eq!(
        claim(&script.answer(1_005, joins).request()),
        (20_150, 20_350)
    );
    let mut now = at(1_010);
    for (left, expected) in [
        (9, (9_150, 9_350)),
        (59, (59_150, 59_350)),
        // Longer than a node reserves a lock: not one that ends just before the quarantine does.
        (60, (30_000, 30_000)),
        (600, (30_000, 30_000)),
        (0, (150, 350)),
    ] {
        now = script.answer_at(now, quarantined(left)).queue_wait().until;
        let renewal = script.not_called_at(now).request();
        assert_eq!(claim(&renewal), expected, "{left}");
    }
}

#[test]
fn a_reservation_that_could_not_be_claimed_in_a_quarantine_is_not_missed() {
    for quarantine in [Duration::ZERO, Duration::from_secs(30)] {
        let (mut script, wait) = joined(waiting(Wait::Forever), 0);
        let mut now = wait.until;
        for miss in 1..=8 {
            let out = QueueState {
                out: nodes("yyy--"),
                ..placed(0).queue
            };
            script.not_called_at(now).request();
            script.answer_at(
                now,
                Votes {
                    quarantine,
                    queue: out,
                    ..placed(0)
                },
            );
            if quarantine.is_zero() && miss == 4 {
                script.undo();
                break;
            }
            // The next answer says that it is in the queue again.
            now = script.queue_wait().until;
            script.not_called_at(now).request();
            now = script
                .answer_at(
                    now,
                    Votes {
                        quarantine,
                        ..placed(0)
                    },
                )
                .queue_wait()
                .until;
        }
    }
}

#[test]
fn who_was_taken_out_before_a_quarantine_is_put_back_in_it_at_once() {
    let (mut script, wait) = joined(waiting(Wait::Forever), 0);
    let quarantine = Duration::from_secs(30);
    let out = QueueState {
        out: nodes("yyy--"),
        ..placed(0).queue
    };
    script.not_called_at(wait.until).request();
    let until = script.answer_at(
        wait.until,
        Votes {
            quarantine,
            queue: out,
            ..placed(0)
        },
    );
    assert!(until.queue_wait().until <= wait.until.after(Duration::from_millis(50)));
}

#[test]
fn a_waiter_leaves_when_a_quarantine_begins_that_its_wait_cannot_outlast() {
    for (seconds, stays) in [(40, false), (9, true)] {
        let (mut script, wait) = joined(waiting(until(12_000)), 0);
        script.not_called_at(wait.until).request();
        let quarantine = Duration::from_secs(seconds);
        script.answer_at(
            wait.until,
            Votes {
                quarantine,
                ..placed(0)
            },
        );
        if stays {
            script.queue_wait();
            continue;
        }
        assert_eq!(
            script.undo().waiter(),
            Some(draw(1).token),
            "it leaves the queue"
        );
        assert!(matches!(script.done(), Acquired::Unanswered));
    }
}
