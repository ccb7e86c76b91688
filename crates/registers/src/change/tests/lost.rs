//! Changes whose answers were lost or refused: were they made?

use super::*;

/// The ballot after one that was lost: it is far above the one that was promised with it.
const NEXT: u64 = 6 + 256;

/// The change after its accept, with ballot 5, was lost, and the next prepare has shown this.
fn lost_and_found(found: Option<Accepted>, floor: u64) -> Talk {
    let mut talk = Talk::new(Proposer::new(OWNER));
    talk.prepares();
    talk.hear([passed(4), passed(2), None]);
    assert_eq!(talk.prepares(), 5);
    let before = value(&[ballot(2, OTHER)]);
    talk.hear([
        promise(Some(accepted(&before, ballot(2, OTHER)))),
        promise(None),
        None,
    ]);
    assert_eq!(talk.proposes(), (ballot(5, OWNER), "2x".to_owned()));
    talk.hear([None, None, None]);
    assert_eq!(talk.prepares(), NEXT);
    let shown = Some(RegisterReply::Promise {
        accepted: found,
        floor,
    });
    talk.hear([shown, promise(None), None]);
    talk
}

#[test]
fn a_lost_change_that_was_made_is_not_made_again() {
    let made = value(&[ballot(2, OTHER), ballot(5, OWNER)]);
    let mut talk = lost_and_found(Some(accepted(&made, ballot(5, OWNER))), 0);
    assert_eq!(
        talk.accepts(),
        (ballot(NEXT, OWNER), "5".to_owned()),
        "once more, as it is"
    );
    talk.hear([DONE, DONE, None]);
    assert_eq!(talk.end(), ChangeEnd::Committed(ballot(5, OWNER)));
    // Another client has gone on with it.
    let newer = value(&[ballot(2, OTHER), ballot(5, OWNER), ballot(8, OTHER)]);
    let mut talk = lost_and_found(Some(accepted(&newer, ballot(8, OTHER))), 0);
    assert_eq!(talk.accepts().1, "8");
    talk.hear([DONE, preempted(11), preempted(11)]);
    talk.prepares();
    talk.hear([
        promise(Some(accepted(&newer, ballot(8, OTHER)))),
        promise(None),
        None,
    ]);
    assert_eq!(
        talk.accepts().1,
        "8",
        "it is made when a majority has a value that has it"
    );
}

#[test]
fn a_lost_change_that_was_not_made_is_made() {
    let before = value(&[ballot(2, OTHER)]);
    let newer = value(&[ballot(2, OTHER), ballot(8, OTHER)]);
    let same_number = value(&[ballot(2, OTHER), ballot(5, OTHER)]);
    for (found, expected) in [
        (None, "x"),
        (Some(accepted(&before, ballot(2, OTHER))), "2x"),
        (Some(accepted(&before, ballot(8, OTHER))), "2x"),
        (Some(accepted(&newer, ballot(8, OTHER))), "8x"),
        (Some(accepted(&same_number, ballot(5, OTHER))), "5x"),
    ] {
        let mut talk = lost_and_found(found.clone(), 0);
        assert_eq!(
            talk.proposes(),
            (ballot(NEXT, OWNER), expected.to_owned()),
            "{found:?}"
        );
    }
}

/// By so many clients that a ninth one is forgotten.
fn often_changed() -> Accepted {
    let by = |number: u8| ballot(u64::from(number), Token::new([number; Token::LEN]));
    accepted(&value(&(10..20).map(by).collect::<Vec<_>>()), by(19))
}

#[test]
fn a_lost_change_of_which_no_trace_can_be_left_is_unknown() {
    let often_changed = often_changed();
    let another = Stored::changed(Err(6), (ballot(7, OTHER), 0), Arc::from([]), 0);
    let deleted = Accepted {
        ballot: ballot(8, OTHER),
        value: None,
    };
    for (found, floor) in [
        (Some(often_changed), 0),
        (Some(accepted(&another, ballot(7, OTHER))), 0),
        (Some(deleted), 0),
        (None, 5),
    ] {
        let mut talk = lost_and_found(found.clone(), floor);
        assert_eq!(talk.end(), ChangeEnd::Unknown, "{found:?}");
    }
    // A floor below it says nothing.
    assert_eq!(lost_and_found(None, 4).proposes().1, "x");
}

/// A change that seemed not to be made was on the node that had not answered, and another client
/// has gone on with it.
#[test]
fn each_ballot_of_a_change_may_have_made_it_and_not_only_the_last() {
    let mut talk = lost_and_found(None, 0);
    assert_eq!(talk.proposes(), (ballot(NEXT, OWNER), "x".to_owned()));
    talk.hear([preempted(300), preempted(300), None]);
    talk.prepares();
    let value = value(&[ballot(2, OTHER), ballot(5, OWNER), ballot(300, OTHER)]);
    talk.hear([
        promise(Some(accepted(&value, ballot(300, OTHER)))),
        promise(None),
        None,
    ]);
    assert_eq!(talk.accepts().1, "300");
    talk.hear([DONE, DONE, DONE]);
    assert_eq!(
        talk.end(),
        ChangeEnd::Committed(ballot(5, OWNER)),
        "and its draft counts"
    );
}

#[test]
fn a_register_is_not_known_to_be_empty_while_a_ballot_of_this_change_may_live() {
    let mut talk = lost_and_found(None, 0);
    let ChangeStep::Draft(draft) = talk.change.poll() else {
        panic!("a draft")
    };
    talk.change.propose(draft);
    assert_eq!(
        talk.accepts(),
        (ballot(NEXT, OWNER), String::new()),
        "it is written"
    );
    talk.hear([DONE, DONE, None]);
    assert_eq!(talk.end(), ChangeEnd::Unchanged(ballot(NEXT, OWNER)));
}

/// A change whose accept with ballot 1 got these answers, and which looks next.
fn refused(by: [Option<RegisterReply>; 3]) -> Talk {
    let mut talk = Talk::new(Proposer::new(OWNER));
    talk.prepares();
    talk.hear([promise(None), promise(None), promise(None)]);
    talk.proposes();
    talk.hear(by);
    talk
}

#[test]
fn a_ballot_is_dead_when_all_nodes_have_refused_it_or_a_majority_has_gone_on_without() {
    let often_changed = often_changed();
    let by = |accepted: &Accepted| {
        Some(RegisterReply::Preempted {
            least: 9,
            accepted: Some(accepted.clone()),
            floor: 0,
        })
    };
    let without = accepted(
        &value(&[ballot(1, OTHER), ballot(4, OTHER)]),
        ballot(4, OTHER),
    );
    let another = Accepted {
        ballot: ballot(6, OTHER),
        ..without.clone()
    };
    let deleted = Accepted {
        ballot: ballot(4, OTHER),
        value: None,
    };
    for (replies, is_dead) in [
        ([preempted(9), preempted(9), preempted(9)], true),
        ([preempted(9), preempted(9), DONE], false),
        ([preempted(9), preempted(9), None], false),
        ([by(&without), by(&without), None], true),
        ([by(&without), by(&another), DONE], false),
        ([by(&deleted), by(&deleted), DONE], false),
    ] {
        let mut talk = refused(replies.clone());
        if is_dead {
            talk.is_preempted();
        }
        talk.prepares();
        talk.hear([promise(Some(often_changed.clone())), promise(None), None]);
        match talk.change.poll() {
            ChangeStep::Draft(_) => assert!(is_dead, "{replies:?}"),
            ChangeStep::Done(ChangeEnd::Unknown) => assert!(!is_dead, "{replies:?}"),
            other => panic!("{other:?}"),
        }
    }
    // A majority has gone on with it: it is made.
    let mut made = value(&[ballot(1, OWNER)]);
    made = Stored::changed(Ok(&made), (ballot(4, OTHER), 0), made.bytes().clone(), 0);
    let made = accepted(&made, ballot(4, OTHER));
    let mut talk = refused([by(&made), by(&made), DONE]);
    assert_eq!(talk.end(), ChangeEnd::Committed(ballot(1, OWNER)));
}

#[test]
fn nodes_that_promise_and_never_accept_end_the_change() {
    let mut talk = Talk::new(Proposer::new(OWNER));
    for _ in 0..3 {
        talk.prepares();
        talk.hear([promise(None), promise(None), promise(None)]);
        talk.proposes();
        talk.hear([DONE, None, None]);
    }
    assert_eq!(
        talk.end(),
        ChangeEnd::NoQuorum {
            may_have_happened: true
        }
    );
}
