//! Lost replies, connections, znodes and sessions.

use super::*;

/// One whose creation was not answered.
fn unknown() -> Script {
    let mut script = Script::new(true);
    script.steps();
    script.begin();
    script.unanswered();
    assert_eq!(script.steps(), ["sync", "list"]);
    script
}

#[test]
fn a_create_without_an_answer_is_looked_for_behind_a_sync() {
    let mut script = unknown();
    script.synced();
    script.listed(&["c9-0000000006", "c1-0000000007"]);
    assert_eq!(script.steps(), ["keep c1-0000000007", "stat c1-0000000007"]);
    script.stat(66);
    assert_eq!(script.steps(), ["list"]);
    script.listed(&["c1-0000000007"]);
    assert_eq!(
        script.steps(),
        ["held c1-0000000007 by 66"],
        "its own transaction"
    );
}

#[test]
fn a_create_that_is_not_found_is_made_anew_under_another_id() {
    let mut script = unknown();
    script.synced();
    script.listed(&["c9-0000000006"]);
    assert_eq!(script.steps(), ["begin"]);
    assert_eq!(script.begin(), ["create c2", "list"]);
    script.created("c2-0000000008", 71);
    // It has come anyway, and would never be released.
    script.listed(&["c1-0000000007", "c2-0000000008"]);
    assert_eq!(
        script.steps(),
        [
            "keep c2-0000000008",
            "delete c1-0000000007 unheard",
            "watch c1-0000000007"
        ]
    );
}

#[test]
fn it_is_looked_for_until_somebody_says_what_became_of_it() {
    let mut script = unknown();
    for _ in 0..3 {
        script.unanswered();
        assert_eq!(script.steps(), ["sync", "list"]);
        script.synced();
        script.refused(EnsembleError::ThrottledOperation);
        assert_eq!(script.steps(), ["pause", "sync", "list"]);
    }
    script.synced();
    script.refused(EnsembleError::NoNode);
    assert_eq!(script.steps(), ["begin"]);
    assert_eq!(
        script.begin(),
        ["Container /apps/locks/a", "create c2", "list"]
    );
}

#[test]
fn a_list_without_an_answer_is_asked_for_again() {
    let mut script = Script::joined(7);
    script.unanswered();
    assert_eq!(script.steps(), ["list"]);
    script.listed(&["c1-0000000007", "c9-0000000006"]);
    assert_eq!(script.steps(), ["watch c9-0000000006"]);
    script.unanswered();
    assert_eq!(script.steps(), ["watch c9-0000000006"]);
    script.data();
    assert_eq!(script.steps(), [""; 0]);
}

#[test]
fn a_waiter_watches_again_on_another_connection() {
    let mut script = Script::queued();
    script.contender.connected();
    assert_eq!(script.steps(), ["watch c9-0000000006"]);
    script.contender.connected();
    assert_eq!(script.steps(), [""; 0], "it is on its way");
    script.refused(EnsembleError::NoNode);
    assert_eq!(script.steps(), ["list"], "its turn may have come meanwhile");
}

#[test]
fn who_lost_its_session_begins_again_and_who_held_the_lock_is_told() {
    let mut script = Script::queued();
    script.contender.session_lost();
    assert_eq!(
        (script.steps(), script.contender.place()),
        (vec!["begin".to_owned()], None)
    );
    assert_eq!(script.begin(), ["create c2", "list"]);
    let mut script = Script::held();
    script.contender.session_lost();
    assert_eq!(script.steps(), ["lost"]);
    script.contender.session_lost();
    assert_eq!(script.steps(), [""; 0]);
}

#[test]
fn a_session_that_is_lost_while_joining_takes_the_id_with_it() {
    let mut script = Script::new(true);
    script.steps();
    script.begin();
    script.contender.session_lost();
    script.answer(0, Err(&Failure::SessionLost));
    script.answer(0, Err(&Failure::SessionLost));
    assert_eq!(script.steps(), ["begin"]);
    assert_eq!(script.begin(), ["create c2", "list"]);
    script.created("c2-0000000008", 71);
    // The former session's znode is about to go with it: it is another's.
    script.listed(&["c1-0000000007", "c2-0000000008"]);
    assert_eq!(
        script.steps(),
        ["keep c2-0000000008", "watch c1-0000000007"]
    );
}

#[test]
fn a_znode_that_was_removed_is_lost_or_made_anew() {
    let own = format!("/apps/locks/a/{}", long("c1-0000000007"));
    let mut script = Script::held();
    script.contender.removed("/apps/locks/b/another");
    assert_eq!(script.steps(), [""; 0]);
    script.contender.removed(&own);
    assert_eq!(script.steps(), ["lost"]);
    let mut script = Script::queued();
    script.contender.removed(&own);
    assert_eq!(script.steps(), ["begin"]);
    let mut script = Script::joined(7);
    script.listed(&["c9-0000000006"]);
    assert_eq!(script.steps(), ["begin"], "it is not in the list");
}

#[test]
fn a_znode_that_is_removed_behind_a_list_is_noticed_in_time() {
    let own = format!("/apps/locks/a/{}", long("c1-0000000007"));
    let mut script = Script::joined(7);
    script.listed(&["c1-0000000007", "c9-0000000006"]);
    assert_eq!(script.steps(), ["watch c9-0000000006"]);
    script.contender.removed(&own);
    script.data();
    assert_eq!(script.steps(), ["begin"]);
    let own = format!("/apps/locks/a/{}", long("c1-2147483647"));
    let mut script = Script::joined(i32::MAX);
    script.listed(&["c1-2147483647", "c9-2147483647"]);
    assert_eq!(script.steps(), ["stat c9-2147483647"]);
    script.contender.removed(&own);
    script.refused(EnsembleError::NoNode);
    assert_eq!(script.steps(), ["begin"]);
}

#[test]
fn answers_that_nobody_waits_for_change_nothing() {
    let mut script = Script::queued();
    let before = format!("{:?}", script.contender.state);
    for serial in 0..10 {
        for reply in [
            Ok(EnsembleReply::Done),
            Err(Failure::Unanswered),
            Err(Failure::SessionLost),
        ] {
            script
                .contender
                .answered(Serial(serial), 1, reply.as_ref().copied());
        }
    }
    assert_eq!(
        (format!("{:?}", script.contender.state), script.steps()),
        (before, vec![])
    );
}

#[test]
fn a_list_whose_sync_was_refused_does_not_say_that_there_is_nothing() {
    for given_up in [false, true] {
        let mut script = unknown();
        if given_up {
            script.contender.give_up();
        }
        script.refused(EnsembleError::ThrottledOperation);
        script.listed(&["c9-0000000006"]);
        assert_eq!(script.steps(), ["pause", "sync", "list"]);
        script.refused(EnsembleError::ThrottledOperation);
        script.refused(EnsembleError::NoNode);
        assert_eq!(script.steps(), ["pause", "sync", "list"]);
        // What is there is there.
        script.refused(EnsembleError::ThrottledOperation);
        script.listed(&["c1-0000000007"]);
        let steps = script.steps();
        let expected: &[&str] = if given_up {
            &["delete c1-0000000007"]
        } else {
            &["keep c1-0000000007", "stat c1-0000000007"]
        };
        assert_eq!(steps, expected);
    }
}

#[test]
fn an_error_that_does_not_say_whether_it_was_created_is_no_answer() {
    for error in [EnsembleError::RequestTimeout, EnsembleError::Other(-1)] {
        for given_up in [false, true] {
            let mut script = Script::new(true);
            script.steps();
            script.begin();
            if given_up {
                script.contender.give_up();
            }
            script.refused(error);
            assert_eq!(script.steps(), ["pause", "sync", "list"], "{error}");
        }
    }
}

#[test]
fn of_many_creates_that_were_lost_the_latest_are_remembered() {
    let mut script = unknown();
    for _ in 0..100 {
        script.synced();
        script.listed(&[]);
        script.steps();
        script.begin();
        script.unanswered();
        script.steps();
    }
    assert_eq!(script.contender.given_up.len(), 16);
    assert_eq!(
        script.contender.given_up.last(),
        Some(&ContenderId::from_random([100; 16]))
    );
}

#[test]
fn who_is_the_first_looks_again_on_another_connection() {
    let mut script = Script::joined(7);
    script.valid_until = Time::ZERO;
    script.listed(&["c1-0000000007"]);
    assert_eq!(
        script.steps(),
        [""; 0],
        "the session is not valid for long enough"
    );
    script.contender.connected();
    assert_eq!(script.steps(), ["list"]);
    script.listed(&["c9-0000000008"]);
    assert_eq!(
        script.steps(),
        ["begin"],
        "it was removed meanwhile, and another one is the first"
    );
}
