//! Waiting for a share of a lock.

use super::*;
use crate::engine::{PermitSet, Share};

const ANY: Share = Share::Permit {
    of: 4,
    number: None,
};

fn waiting_for(share: Share) -> Acquire {
    let attributes = LockAttributes {
        share: Some(share),
        ..LockAttributes::default()
    };
    waiting(Wait::Forever).with(Some(Arc::new(attributes)))
}

/// A waiter for this share whose turn begins at 1,500, and the request of its turn.
fn in_turn(share: Share) -> (Script, Request) {
    let (mut script, _) = joined(waiting_for(share), 3);
    let turn = script.called(1_500, draw(2)).request();
    (script, turn)
}

fn share_of(request: &Request) -> Option<Share> {
    request.lock().expect("it is about a lock").share()
}

#[test]
fn a_share_is_waited_for_in_the_nodes_queue_and_taken_in_turn() {
    for (share, permit) in [(Share::Reader, None), (ANY, Some(3))] {
        let (_, request) = refused(waiting_for(share));
        assert_eq!(
            (entry(&request).number, share_of(&request)),
            (0, Some(share))
        );
        let (mut script, turn) = in_turn(share);
        assert_eq!(
            (turn.verb(), turn.waiter()),
            (Verb::Turn, Some(draw(1).token))
        );
        assert_eq!(
            (token_of(&turn), share_of(&turn)),
            (draw(2).token, Some(share))
        );
        let answers = Votes {
            permit,
            ..votes_of("yyynn")
        };
        let Acquired::Held(held) = script.answer(1_505, answers).done() else {
            panic!()
        };
        assert_eq!(
            held.id().share().and_then(Share::permit),
            permit,
            "{share:?}"
        );
        assert_eq!(
            held.waiter,
            Some(draw(1).token),
            "it may still stand in some queues"
        );
        let undo = held.undo(at(1_600), &rules(5));
        assert_eq!(
            (undo.waiter(), undo.lock()),
            (held.waiter, Some(&held.id()))
        );
    }
}

#[test]
fn a_permit_that_some_nodes_gave_is_withdrawn_by_the_request_to_join() {
    let mut script = Script::new(waiting_for(ANY));
    script.attempt(1_000, draw(1).at(5_000_000));
    let request = script
        .answer(
            1_005,
            Votes {
                permit: Some(1),
                ..votes_of("yynnn")
            },
        )
        .request();
    let QueueEntry { lock, waiter, .. } = entry(&request);
    assert_eq!((lock.token, *waiter), (draw(1).token, draw(1).token));
    assert_eq!(lock.share(), Some(ANY), "whatever they gave");
    assert_eq!(request.nodes, NodeSet::all(5));
}

#[test]
fn a_failed_turn_for_a_share_is_withdrawn_and_the_place_kept() {
    for (share, permit) in [(Share::Reader, None), (ANY, Some(3))] {
        for votes in ["yynnn", "nnn--", "fff--"] {
            let (mut script, _) = in_turn(share);
            let answers = Votes {
                permit,
                ..votes_of(votes)
            };
            let request = script.answer(1_510, answers).request();
            let QueueEntry {
                lock,
                waiter,
                number,
                ..
            } = entry(&request);
            assert_eq!((*waiter, *number), (draw(1).token, 7), "{votes}");
            assert_eq!(
                (lock.token, lock.share()),
                (draw(2).token, Some(share)),
                "{votes}"
            );
            assert_eq!(request.nodes, NodeSet::all(5), "{votes}");
            script.answer(1_520, placed(1)).queue_wait();
        }
    }
}

#[test]
fn a_turn_whose_number_is_not_confirmed_is_withdrawn_for_any_permit() {
    let attributes = LockAttributes {
        share: Some(ANY),
        fence: Some(ttl(9_000)),
        ..LockAttributes::default()
    };
    let acquire = waiting(Wait::Forever).with(Some(Arc::new(attributes)));
    let (mut script, _) = joined(acquire, 0);
    script.called(1_500, draw(2)).request();
    let answers = fenced_votes("yyy--", [7, 9, 7, 0, 0]);
    let request = script
        .answer(
            1_505,
            Votes {
                permit: Some(3),
                ..answers
            },
        )
        .request();
    assert_eq!(request.verb(), Verb::Fence);
    let request = script.answer(1_510, votes_of("ynn--")).request();
    let QueueEntry { lock, waiter, .. } = entry(&request);
    assert_eq!((lock.token, *waiter), (draw(2).token, draw(1).token));
    assert_eq!(lock.share().map(Share::permits), Some(4));
}

#[test]
fn whoever_gives_up_waiting_for_a_share_leaves_with_its_last_attempt() {
    let (mut script, _) = in_turn(ANY);
    script
        .answer(
            1_510,
            Votes {
                permit: Some(3),
                ..votes_of("yynnn")
            },
        )
        .request();
    script.answer(1_515, placed(0)).queue_wait();
    script.cancel(1_600);
    let undo = script.undo();
    assert_eq!(
        (undo.waiter(), share_of(&undo)),
        (Some(draw(1).token), Some(ANY))
    );
    assert_eq!(
        (token_of(&undo), undo.nodes),
        (draw(2).token, NodeSet::all(5))
    );
    assert!(matches!(script.done(), Acquired::Contended));
}

#[test]
fn after_a_failed_turn_a_permit_is_named_that_a_majority_has_free() {
    for (share, free, number) in [
        (Share::Reader, "", None),
        (ANY, "", None), // the nodes have no permit in common
        (ANY, "0001", Some(3)),
        (ANY, "0110", Some(2)),
    ] {
        let (mut script, turn) = in_turn(share);
        assert_eq!(
            share_of(&turn),
            Some(share),
            "each node has one for the waiter"
        );
        script.answer(1_505, votes_of("yynnn")).request();
        let free = PermitSet::read(free.as_bytes()).unwrap();
        let called = placed(0);
        let queue = QueueState {
            free,
            reserved: nodes("yyy--"),
            ..called.queue
        };
        script.answer(1_510, Votes { queue, ..called });
        let entropy = Entropy { seed: 7, ..draw(3) };
        let again = script.called(1_510, entropy).request();
        assert_eq!(
            (again.verb(), share_of(&again).and_then(Share::permit)),
            (Verb::Turn, number)
        );
        assert_eq!(share_of(&again).map(Share::permits), Some(share.permits()));
        // What the nodes said counts for one turn.
        script.answer(1_515, votes_of("yynnn")).request();
        script.answer(1_520, placed(0)).queue_wait();
        let turn = script.called(1_530, draw(4)).request();
        assert_eq!(share_of(&turn).and_then(Share::permit), None);
    }
}

#[test]
fn a_single_attempt_that_is_given_different_permits_asks_in_the_queue_which_are_free() {
    let single = || {
        let attributes = LockAttributes {
            share: Some(ANY),
            ..LockAttributes::default()
        };
        Script::new(waiting(Wait::No).with(Some(Arc::new(attributes))))
    };
    let split = |script: &mut Script| {
        script.attempt(1_000, draw(1));
        script
            .answer(
                1_002,
                Votes {
                    permit: Some(2),
                    ..votes_of("ynnnn")
                },
            )
            .request()
    };
    let free = PermitSet::read(b"0001").unwrap();
    let mut script = single();
    assert_eq!(entry(&split(&mut script)).lock.token, draw(1).token);
    let called = placed(1);
    let queue = QueueState {
        free,
        reserved: nodes("yyy--"),
        ..called.queue
    };
    script.answer(1_004, Votes { queue, ..called });
    let turn = script.called(1_004, draw(2)).request();
    assert_eq!(
        (turn.verb(), share_of(&turn).and_then(Share::permit)),
        (Verb::Turn, Some(3))
    );
    assert!(turn.deadline <= at(1_050), "one round in all");
    let answers = Votes {
        permit: Some(3),
        ..votes_of("yyynn")
    };
    assert!(matches!(
        script.answer(1_006, answers).done(),
        Acquired::Held(_)
    ));

    // It does not wait.
    let mut script = single();
    split(&mut script);
    let undo = script.answer(1_004, placed(1)).undo();
    assert_eq!(
        (undo.waiter(), token_of(&undo)),
        (Some(draw(1).token), draw(1).token)
    );
    assert!(matches!(script.done(), Acquired::Contended));
    // Others have all permits.
    let mut script = single();
    script.attempt(1_000, draw(1));
    script.answer(1_002, votes_of("nnn--")).undo();
    assert!(matches!(script.done(), Acquired::Contended));
}

#[test]
fn a_waiter_for_a_share_asks_as_often_as_one_in_front_if_no_node_tells_it() {
    let asks_at = |acquire, place| {
        let (mut script, _) = refused(acquire);
        let answers = placed(place);
        let queue = QueueState {
            listening: NodeSet::EMPTY,
            ..answers.queue
        };
        script
            .answer(1_010, Votes { queue, ..answers })
            .queue_wait()
            .until
    };
    for share in [Share::Reader, ANY] {
        assert_eq!(
            asks_at(waiting_for(share), 2),
            asks_at(waiting_for(share), 7),
            "{share:?}"
        );
    }
    let waits = |place| asks_at(waiting(Wait::Forever), place);
    assert!(
        waits(2) < waits(7),
        "only one of those before it is served at a time"
    );
}
