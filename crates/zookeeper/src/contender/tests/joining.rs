//! From nothing to the lock, when all replies come.

use super::*;

#[test]
fn a_free_lock_takes_one_flight() {
    let mut script = Script::new(true);
    assert_eq!(script.steps(), ["begin"]);
    assert_eq!(script.begin(), ["create c1", "list"]);
    script.created("c1-0000000007", 70);
    script.listed(&["c1-0000000007"]);
    assert_eq!(
        script.steps(),
        ["keep c1-0000000007", "held c1-0000000007 by 70"]
    );
    assert_eq!(script.steps(), [""; 0]);
}

#[test]
fn a_lock_is_held_when_the_session_is_valid_for_long_enough() {
    let mut script = Script::joined(7);
    script.contender.plan.min_validity = std::time::Duration::from_secs(1);
    script.listed(&["c1-0000000007"]);
    for valid_until in [Time::ZERO, NOW, Time::from_millis(6_000)] {
        script.valid_until = valid_until;
        assert_eq!(script.steps(), [""; 0]);
    }
    script.valid_until = Time::from_millis(6_001);
    assert_eq!(script.steps(), ["held c1-0000000007 by 70"]);
}

#[test]
fn a_contender_waits_for_the_one_before_it_and_lists_again() {
    let mut script = Script::queued();
    script.contender.changed("/apps/locks/a/another");
    assert_eq!(script.steps(), [""; 0]);
    let before = format!("/apps/locks/a/{}", long("c9-0000000006"));
    script.contender.changed(&before);
    assert_eq!(script.steps(), ["list"]);
    // It had given up, and was not the first.
    script.listed(&["c8-0000000005", "c1-0000000007"]);
    assert_eq!(script.steps(), ["watch c8-0000000005"]);
    assert_eq!(script.contender.place(), Some(1));
    script.refused(EnsembleError::NoNode);
    assert_eq!(script.steps(), ["list"]);
    script.listed(&["c1-0000000007", "c2-0000000008"]);
    assert_eq!(script.steps(), ["held c1-0000000007 by 70"]);
    assert_eq!(script.contender.place(), None);
}

#[test]
fn an_event_before_the_reply_that_set_its_watch_is_not_lost() {
    let mut script = Script::joined(7);
    script.listed(&["c1-0000000007", "c9-0000000006"]);
    assert_eq!(script.steps(), ["watch c9-0000000006"]);
    script
        .contender
        .changed(&format!("/apps/locks/a/{}", long("c9-0000000006")));
    script.data();
    assert_eq!(script.steps(), ["list"]);
}

#[test]
fn the_directory_is_created_when_it_is_missing_and_again_when_it_was_swept() {
    let mut script = Script::new(true);
    script.steps();
    script.begin();
    script.refused(EnsembleError::NoNode);
    assert_eq!(script.steps(), ["begin"]);
    script.asked.clear();
    let directory = "Container /apps/locks/a";
    assert_eq!(script.begin(), [directory, "create c2", "list"], "a new id");
    // What is above is missing as well.
    script.refused(EnsembleError::NoNode);
    script.refused(EnsembleError::NoNode);
    script.asked.clear();
    script.steps();
    let above = ["Persistent /apps", "Persistent /apps/locks"];
    assert_eq!(
        script.begin(),
        [above[0], above[1], directory, "create c3", "list"]
    );
    script.refused(EnsembleError::NodeExists);
    script.created("/apps/locks", 60);
    script.created("/apps/locks/a", 61);
    // The sweep came between the two.
    script.refused(EnsembleError::NoNode);
    script.asked.clear();
    assert_eq!(script.steps(), ["begin"]);
    assert_eq!(
        script.begin(),
        [above[0], above[1], directory, "create c4", "list"]
    );
    for _ in 0..3 {
        script.refused(EnsembleError::NodeExists);
    }
    script.created("c4-0000000000", 62);
    script.listed(&["c4-0000000000"]);
    assert_eq!(
        script.steps(),
        ["keep c4-0000000000", "held c4-0000000000 by 62"]
    );
}

#[test]
fn a_directory_that_must_not_be_created_is_no_loop() {
    for (error, attempts) in [(EnsembleError::NoAuth, 2), (EnsembleError::NoNode, 3)] {
        let mut script = Script::new(true);
        script.steps();
        for _ in 0..attempts {
            let steps = script.begin();
            for step in &steps[..steps.len() - 1] {
                let is_parent = step.starts_with("Container");
                script.refused(if is_parent {
                    error
                } else {
                    EnsembleError::NoNode
                });
            }
            script.asked.clear();
        }
        assert_eq!(
            script.steps().last().unwrap(),
            &format!("refused Server({error:?})")
        );
    }
}

#[test]
fn what_a_server_refuses_is_told() {
    // Servers before 3.5 do not implement the first request.
    for error in [
        EnsembleError::Unimplemented,
        EnsembleError::NoAuth,
        EnsembleError::QuotaExceeded,
        EnsembleError::ThrottledOperation,
    ] {
        let mut script = Script::new(true);
        script.steps();
        script.begin();
        script.refused(error);
        assert_eq!(script.steps(), [format!("refused Server({error:?})")]);
    }
}

#[test]
fn who_does_not_wait_looks_first_and_creates_nothing_if_others_are_there() {
    let mut script = Script::new(false);
    assert_eq!(script.steps(), ["sync", "list"]);
    script.synced();
    script.listed(&["other", "c9-0000000006"]);
    assert_eq!(script.steps(), ["contended"]);
}

#[test]
fn who_does_not_wait_takes_a_lock_that_is_free() {
    let mut script = Script::new(false);
    script.steps();
    script.unanswered();
    assert_eq!(script.steps(), ["sync", "list"], "again");
    script.synced();
    script.refused(EnsembleError::NoNode);
    assert_eq!(script.steps(), ["begin"]);
    assert_eq!(
        script.begin(),
        ["Container /apps/locks/a", "create c1", "list"]
    );
    script.refused(EnsembleError::NodeExists);
    script.created("c1-0000000007", 70);
    script.steps();
    // Another one was faster.
    script.listed(&["c9-0000000006", "c1-0000000007"]);
    assert_eq!(
        script.steps(),
        ["delete c1-0000000007 unheard", "contended"]
    );
}

#[test]
fn past_the_end_of_the_numbers_the_transactions_have_the_order() {
    let mut script = Script::joined(i32::MAX);
    script.listed(&[
        "c1-2147483647",
        "c2-2147483647",
        "c3--2147483648",
        "c4-2147483647",
    ]);
    assert_eq!(script.steps(), ["stat c2-2147483647"]);
    script.stat(65);
    assert_eq!(script.steps(), ["stat c3--2147483648"]);
    script.stat(90);
    assert_eq!(script.steps(), ["stat c4-2147483647"]);
    script.refused(EnsembleError::NoNode);
    assert_eq!(script.steps(), ["watch c2-2147483647"]);
    assert_eq!(script.contender.place(), Some(1));
    script.refused(EnsembleError::NoNode);
    assert_eq!(script.steps(), ["list"]);
    script.listed(&["c1-2147483647", "c3--2147483648"]);
    assert_eq!(
        script.steps(),
        ["shares"],
        "what is known is not asked again"
    );
    script.refused(EnsembleError::NoNode);
    assert_eq!(script.steps(), ["held c1-2147483647 by 70"]);
}
