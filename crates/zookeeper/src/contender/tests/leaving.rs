//! Giving up from every state.

use super::*;

#[test]
fn a_release_deletes_the_znode_and_says_what_became_of_it() {
    for (error, left) in [
        (None, "left Deleted"),
        (Some(Failure::Server(EnsembleError::NoNode)), "left WasGone"),
        (Some(Failure::SessionLost), "left WasGone"),
        (
            Some(Failure::Server(EnsembleError::NoAuth)),
            "left Refused(NoAuth)",
        ),
    ] {
        let mut script = Script::held();
        script.contender.give_up();
        assert_eq!(script.steps(), ["delete c1-0000000007"]);
        script.contender.give_up();
        script
            .contender
            .removed(&format!("/apps/locks/a/{}", long("c1-0000000007")));
        assert_eq!(script.steps(), [""; 0]);
        match error {
            None => script.done(),
            Some(failure) => script.answer(71, Err(&failure)),
        }
        assert_eq!(script.steps(), [left]);
        script.contender.give_up();
        assert_eq!(script.steps(), [""; 0]);
    }
}

#[test]
fn who_has_created_nothing_leaves_nothing() {
    for waits in [true, false] {
        let mut script = Script::new(waits);
        script.contender.give_up();
        assert_eq!(script.steps().last().unwrap(), "left Nothing");
        assert_eq!(script.begin(), [""; 0]);
    }
}

#[test]
fn who_waits_deletes_its_znode() {
    let mut script = Script::queued();
    script.contender.give_up();
    assert_eq!(
        (script.steps(), script.contender.place()),
        (vec!["delete c1-0000000007".to_owned()], None)
    );
    script
        .contender
        .changed(&format!("/apps/locks/a/{}", long("c9-0000000006")));
    script.contender.connected();
    assert_eq!(script.steps(), [""; 0]);
    let mut script = Script::joined(7);
    script.contender.give_up();
    assert_eq!(script.steps(), ["delete c1-0000000007"]);
    script.listed(&["c1-0000000007"]);
    assert_eq!(script.steps(), [""; 0], "the list is of no use any more");
}

#[test]
fn a_create_in_flight_is_waited_for_and_deleted() {
    let joining = || {
        let mut script = Script::new(true);
        script.steps();
        script.begin();
        script.contender.give_up();
        assert_eq!(script.steps(), [""; 0]);
        script
    };
    let mut script = joining();
    script.created("c1-0000000007", 70);
    assert_eq!(script.steps(), ["delete c1-0000000007"]);
    let mut script = joining();
    script.refused(EnsembleError::NoNode);
    assert_eq!(script.steps(), ["left Nothing"]);
    let mut script = joining();
    script.contender.session_lost();
    assert_eq!(script.steps(), ["left WasGone"]);
    let mut script = joining();
    script.unanswered();
    assert_eq!(script.steps(), ["sync", "list"]);
    script.synced();
    script.listed(&["c1-0000000007"]);
    assert_eq!(script.steps(), ["delete c1-0000000007"]);
}

#[test]
fn a_create_without_an_answer_is_searched_until_it_is_known() {
    let mut script = Script::new(true);
    script.steps();
    script.begin();
    script.unanswered();
    script.steps();
    script.contender.give_up();
    assert_eq!(script.steps(), [""; 0]);
    script.unanswered();
    assert_eq!(script.steps(), ["sync", "list"]);
    script.synced();
    script.refused(EnsembleError::ThrottledOperation);
    assert_eq!(script.steps(), ["pause", "sync", "list"]);
    script.synced();
    script.listed(&["c9-0000000006"]);
    assert_eq!(script.steps(), ["left Nothing"]);
}

#[test]
fn with_large_numbers_the_directory_is_deleted_too_if_nobody_is_in_it() {
    for (results, steps) in [
        (Ok(&[][..]), &["forget c1-1073741824", "left Deleted"][..]),
        (Err((1, -111)), &["delete c1-1073741824"]),
        (Err((0, -101)), &["forget c1-1073741824", "left WasGone"]),
    ] {
        let mut script = Script::joined(1 << 30);
        script.listed(&["c1-1073741824"]);
        script.steps();
        script.contender.give_up();
        assert_eq!(script.steps(), ["delete c1-1073741824 + delete a"]);
        script.results(71, results);
        assert_eq!(script.steps(), steps);
    }
}

#[test]
fn deleting_both_without_an_answer_is_followed_by_a_delete_that_is_not_forgotten() {
    let mut script = Script::joined(1 << 30);
    script.contender.give_up();
    script.steps();
    script.unanswered();
    assert_eq!(script.steps(), ["delete c1-1073741824"]);
    script.refused(EnsembleError::NoNode);
    assert_eq!(script.steps(), ["left Deleted"]);
}
