//! Waiting in the nodes' queue: who joins, and what a waiter is told.

mod leaving;
mod quarantine;
mod renewals;
mod sets;
mod shares;
mod turns;

use super::*;
use crate::engine::fixture::fenced_votes;
use crate::engine::{ClaimTime, LockId, Node, QueueEntry, QueueState, QueueWait, Token};

/// A lock for ten seconds, of five nodes, for a client that queues.
fn waiting(wait: Wait) -> Acquire {
    let rules = Rules {
        waiter_lease: Some(ttl(1_500)),
        ..(*rules(5)).clone()
    };
    Acquire::new(Arc::new(rules), Arc::from(&b"key"[..]), ttl(10_000), wait)
}

fn ttl(millis: u64) -> Ttl {
    Ttl::from_duration(Duration::from_millis(millis)).unwrap()
}

fn at(millis: u64) -> Time {
    Time::from_millis(millis)
}

fn until(millis: u64) -> Wait {
    Wait::Until(at(millis))
}

/// The nodes `y` of these five.
fn nodes(marks: &str) -> NodeSet {
    let marked = marks.bytes().enumerate().filter(|(_, mark)| *mark == b'y');
    marked.map(|(index, _)| Node::new(index)).collect()
}

/// Answers to a waiter. Each node that answers gives a number, and will tell of reservations.
fn numbered(numbers: [u64; 5]) -> Votes {
    let votes: String = numbers
        .map(|number| if number > 0 { 'y' } else { '-' })
        .iter()
        .collect();
    let queue = QueueState {
        place: 2,
        listening: NodeSet::all(5),
        ..QueueState::default()
    };
    Votes {
        queue,
        ..fenced_votes(&votes, numbers)
    }
}

/// Answers of a majority that agree on the number 7, with this many waiters before.
fn placed(place: u64) -> Votes {
    let votes = numbered([7, 7, 7, 0, 0]);
    Votes {
        queue: QueueState {
            place,
            ..votes.queue
        },
        ..votes
    }
}

/// The entry that a request to the queue is about.
fn entry(request: &Request) -> &QueueEntry {
    request
        .queue_entry()
        .unwrap_or_else(|| panic!("{request:?}"))
}

/// A waiter whose try at 1,000 was refused 5 ms later, and its request to enter the queue.
fn refused(acquire: Acquire) -> (Script, Request) {
    let mut script = Script::new(acquire);
    script.attempt(1_000, draw(1).at(5_000_000));
    let request = script.answer(1_005, votes_of("nnn--")).request();
    (script, request)
}

/// A waiter that is in the queue since 1,010, and its wait.
fn joined(acquire: Acquire, place: u64) -> (Script, QueueWait) {
    let (mut script, _) = refused(acquire);
    let wait = script.answer(1_010, placed(place)).queue_wait();
    (script, wait)
}

#[test]
fn a_refused_try_of_a_waiting_caller_joins_and_is_withdrawn_by_the_same_request() {
    for votes in ["nnn--", "yynnn", "ynnnf", "ynnff"] {
        let mut script = Script::new(waiting(Wait::Forever));
        script.attempt(1_000, draw(1).at(5_000_000));
        let request = script.answer(1_005, votes_of(votes)).request();
        let first = draw(1).token;
        let expected = QueueEntry {
            lock: LockId {
                key: Arc::from(&b"key"[..]),
                token: first,
                attributes: None,
            },
            ttl: ttl(10_000),
            waiter: first,
            number: 0,
            since: 5_000_000,
            lease: ttl(1_500),
            lease_in_front: ttl(1_500),
            claim: ClaimTime {
                notified: ttl(150),
                asking: ttl(350),
            },
            channel: None,
        };
        assert_eq!(entry(&request), &expected, "{votes}");
        assert_eq!(
            (request.started, request.deadline),
            (at(1_005), at(1_055)),
            "{votes}"
        );
        assert_eq!(request.nodes, NodeSet::all(5), "{votes}");
        assert_eq!(
            script.operation().place(),
            None,
            "not before the nodes have answered"
        );
    }
}

#[test]
fn a_caller_that_makes_a_single_attempt_never_joins() {
    for wait in [Wait::No, until(1_000), until(900)] {
        let mut script = Script::new(waiting(wait));
        script.attempt(1_000, draw(1));
        assert_eq!(
            script.answer(1_005, votes_of("nnn--")).undo().waiter(),
            None
        );
        assert!(matches!(script.done(), Acquired::Contended), "{wait:?}");
    }
}

#[test]
fn a_client_without_a_lease_for_waiters_never_joins() {
    let key = Arc::from(&b"key"[..]);
    let mut script = Script::new(Acquire::new(rules(5), key, ttl(1_000), Wait::Forever));
    for attempt in 0..20 {
        let now = 1_000 + 200 * attempt;
        assert_eq!(script.attempt(now, draw(attempt)).verb(), Verb::Acquire);
        assert_eq!(
            script.answer(now + 5, votes_of("nnn--")).undo().waiter(),
            None
        );
    }
}

#[test]
fn a_try_that_too_few_nodes_answered_or_that_was_too_slow_does_not_join() {
    for (now, votes) in [(1_005, "fff--"), (1_005, "ynfff"), (10_990, "yyyyy")] {
        let mut script = Script::new(waiting(Wait::Forever));
        script.attempt(1_000, draw(1));
        assert_eq!(
            script.answer(now, votes_of(votes)).undo().waiter(),
            None,
            "{votes}"
        );
        assert!(script.wait() > at(now), "{votes}");
    }
}

#[test]
fn no_place_is_taken_when_no_time_is_left_for_another_round() {
    let mut script = Script::new(waiting(until(1_010)));
    script.attempt(1_000, draw(1));
    assert_eq!(
        script.answer(1_005, votes_of("nnn--")).undo().waiter(),
        None
    );
    assert_eq!(script.wait(), at(1_010));
    script.oversleep(1_010, draw(2));
    assert!(matches!(script.done(), Acquired::Contended));
    let mut script = Script::new(waiting(until(1_011)));
    script.attempt(1_000, draw(1));
    let request = script.answer(1_005, votes_of("nnn--")).request();
    assert_eq!((request.verb(), request.deadline), (Verb::Queue, at(1_011)));
}

#[test]
fn numbers_on_which_a_majority_agrees_need_no_second_round() {
    for numbers in [
        [7, 7, 7, 0, 0],
        [7, 7, 7, 3, 1],
        [9, 0, 9, 3, 9],
        [1, 1, 1, 1, 1],
    ] {
        let (mut script, _) = refused(waiting(Wait::Forever));
        let wait = script.answer(1_010, numbered(numbers)).queue_wait();
        assert_eq!((&*wait.key, wait.waiter), (&b"key"[..], draw(1).token));
        assert_eq!(script.operation().place(), Some(2), "{numbers:?}");
        // The next renewal tells the number.
        let request = script.not_called(2_010).request();
        assert_eq!(
            entry(&request).number,
            *numbers.iter().max().unwrap(),
            "{numbers:?}"
        );
    }
}

#[test]
fn numbers_on_which_no_majority_agrees_are_settled_by_the_largest() {
    for numbers in [[7, 9, 7, 0, 0], [7, 7, 9, 9, 8], [1, 2, 3, 4, 9]] {
        let (mut script, first) = refused(waiting(Wait::Forever));
        let request = script.answer(1_010, numbered(numbers)).request();
        assert_eq!(
            entry(&request),
            &QueueEntry {
                number: 9,
                ..entry(&first).clone()
            }
        );
        assert_eq!(
            (request.started, request.deadline),
            (at(1_010), at(1_060)),
            "a new round"
        );
        // A node that does not know it yet does not lead to a third.
        script.answer(1_015, numbered([9, 9, 9, 0, 0])).queue_wait();
    }
}

#[test]
fn the_place_is_what_the_nodes_said_last() {
    let (mut script, _) = joined(waiting(Wait::Forever), 5);
    assert_eq!(script.operation().place(), Some(5));
    script.not_called(2_010).request();
    script.answer(2_015, placed(3)).queue_wait();
    assert_eq!(script.operation().place(), Some(3));
}

#[test]
fn neither_a_refusal_nor_a_place_in_a_quarantine_means_that_others_hold_the_lock() {
    // Short enough for the wait to go on: it may end earlier.
    let quarantine = Duration::from_millis(500);
    let none = Duration::ZERO;
    // What counts is whether nodes could grant the lock when they answered last.
    for (votes, quarantines, is_contended) in [
        ("fff--", [quarantine, quarantine], false),
        ("nnn--", [quarantine, quarantine], false),
        ("nnn--", [none, quarantine], false),
        ("nnn--", [quarantine, none], true),
        ("nnn--", [none, none], true),
    ] {
        let [at_first, at_last] = quarantines;
        let mut script = Script::new(waiting(until(1_020)));
        script.attempt(1_000, draw(1));
        script
            .answer(
                1_005,
                Votes {
                    quarantine: at_first,
                    ..votes_of(votes)
                },
            )
            .request();
        script
            .answer(
                1_020,
                Votes {
                    quarantine: at_last,
                    ..placed(0)
                },
            )
            .undo();
        let outcome = script.done();
        let found = matches!(outcome, Acquired::Contended);
        assert_eq!(found, is_contended, "{votes} {quarantines:?}: {outcome:?}");
        assert!(
            found || matches!(outcome, Acquired::Unanswered),
            "{outcome:?}"
        );
    }
    let mut script = Script::new(waiting(Wait::No));
    script.attempt(1_000, draw(1));
    script
        .answer(
            1_005,
            Votes {
                quarantine,
                ..votes_of("nnn--")
            },
        )
        .undo();
    assert!(matches!(script.done(), Acquired::Unanswered));
}

#[test]
fn a_try_in_quarantine_joins_and_takes_its_turn_after_it() {
    let quarantined = Votes {
        quarantine: Duration::from_secs(40),
        ..votes_of("fff--")
    };
    let mut script = Script::new(waiting(Wait::Forever));
    script.attempt(1_000, draw(1));
    assert_eq!(
        script.answer(1_005, quarantined).request().verb(),
        Verb::Queue
    );
    let mut now = at(1_010);
    script.answer_at(now, placed(0));
    // It renews its entry meanwhile, with all the nodes' reservations.
    for renewal in 1..=39 {
        let next = script.called_at(now, draw(2)).wait();
        assert_eq!(next, now.after(Duration::from_secs(1)), "{renewal}");
        now = next;
        script.wake_at(now, draw(2));
        let request = script.called_at(now, draw(2)).request();
        assert_eq!(request.verb(), Verb::Queue, "{renewal}");
        script.answer_at(now, placed(0));
    }
    let (begins_at, turn) = script.turn(now, draw(3));
    assert_eq!((begins_at, turn.verb()), (at(41_005), Verb::Turn));
}
