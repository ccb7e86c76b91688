//! Several locks together.

use super::*;

fn set(waits: bool) -> Script {
    let mut plan = plan(&[b"a", b"b", b"a"]);
    plan.waits = waits;
    Script::of(plan)
}

/// One whose transaction and lists are to be answered.
fn joining() -> Script {
    let mut script = set(true);
    assert_eq!(script.steps(), ["begin"]);
    assert_eq!(script.begin(), ["create c1 + create c1", "list", "list b"]);
    script
}

/// One that has joined both queues, and whose lists are to be answered.
fn joined() -> Script {
    let mut script = joining();
    script.results(
        70,
        Ok(&["/apps/locks/a/c1-0000000007", "/apps/locks/b/c1-0000000003"]),
    );
    assert_eq!(script.steps(), ["keep c1-0000000007", "keep c1-0000000003"]);
    script
}

fn held() -> Script {
    let mut script = joined();
    script.listed(&["c1-0000000007"]);
    script.listed(&["c1-0000000003"]);
    assert_eq!(script.steps(), ["held c1-0000000007 c1-0000000003 by 70"]);
    script
}

fn path(lock: &str, name: &str) -> String {
    format!("/apps/locks/{lock}/{}", long(name))
}

#[test]
fn a_set_is_joined_by_one_transaction_and_has_one_token() {
    held();
}

#[test]
fn a_set_waits_until_it_is_the_first_everywhere() {
    let mut script = joined();
    script.listed(&["c1-0000000007", "c9-0000000006"]);
    assert_eq!(script.steps(), ["watch c9-0000000006"]);
    script.listed(&["c1-0000000003", "c8-0000000002"]);
    script.data();
    assert_eq!(script.contender.place(), Some(1));
    script.contender.changed(&path("a", "c9-0000000006"));
    assert_eq!(script.steps(), ["list", "list b"]);
    script.listed(&["c1-0000000007"]);
    script.listed(&["c1-0000000003", "c8-0000000002"]);
    assert_eq!(script.steps(), ["watch c8-0000000002"]);
    script.data();
    script.contender.changed(&path("a", "c8-0000000002"));
    assert_eq!(script.steps(), [""; 0], "of another lock");
    script.contender.changed(&path("b", "c8-0000000002"));
    assert_eq!(script.steps(), ["list b"]);
    script.listed_with(&["c1-0000000003"], &["r9"]);
    assert_eq!(script.steps(), ["watch shares b"]);
    script.refused(EnsembleError::NoNode);
    assert_eq!(script.steps(), ["held c1-0000000007 c1-0000000003 by 70"]);
}

#[test]
fn all_directories_are_created_when_one_is_missing() {
    let mut script = set(true);
    script.steps();
    script.begin();
    script.results(0, Err((1, -101)));
    script.asked.clear();
    script.steps();
    let directories = ["Container /apps/locks/a", "Container /apps/locks/b"];
    let join = "create c2 + create c2";
    assert_eq!(
        script.begin(),
        [directories[0], directories[1], join, "list", "list b"]
    );
    script.refused(EnsembleError::NodeExists);
    script.refused(EnsembleError::NoAuth);
    script.results(0, Err((1, -101)));
    assert_eq!(script.steps(), ["refused Server(NoAuth)"]);
}

#[test]
fn what_is_above_is_missing_for_each_directory_of_a_set() {
    let mut script = joining();
    script.results(70, Err((0, -101)));
    script.listed(&[]);
    script.listed(&[]);
    assert_eq!(script.steps(), ["begin"]);
    script.begin();
    // The answers for both directories come before the next attempt.
    script.refused(EnsembleError::NoNode);
    script.refused(EnsembleError::NoNode);
    script.results(71, Err((0, -101)));
    script.listed(&[]);
    script.listed(&[]);
    assert_eq!(
        script.steps(),
        ["begin"],
        "not refused: the way to the directories is created"
    );
}

#[test]
fn a_set_that_does_not_wait_looks_at_all_locks_first() {
    for (first, second, step) in [
        (&["c9-0000000006"][..], &[][..], "contended"),
        (&[], &["r9"], "contended"),
        (&[], &[], "begin"),
    ] {
        let mut script = set(false);
        assert_eq!(script.steps(), ["sync", "list", "list b"]);
        script.synced();
        script.listed_with(first, &[]);
        script.listed_with(&[], second);
        assert_eq!(script.steps(), [step]);
    }
    let mut script = set(false);
    script.steps();
    script.synced();
    script.listed(&[]);
    script.listed(&[]);
    script.steps();
    script.begin();
    script.results(
        70,
        Ok(&["/apps/locks/a/c1-0000000007", "/apps/locks/b/c1-0000000003"]),
    );
    script.steps();
    script.listed(&["c1-0000000007"]);
    script.listed(&["c1-0000000003", "c9-0000000002"]);
    let first = "delete c1-0000000007 unheard";
    let second = "delete c1-0000000003 unheard";
    assert_eq!(script.steps(), [first, second, "contended"]);
}

#[test]
fn a_transaction_without_an_answer_is_looked_for_in_all_queues() {
    let unknown = || {
        let mut script = set(true);
        script.steps();
        script.begin();
        script.unanswered();
        assert_eq!(script.steps(), ["sync", "list", "list b"]);
        // Not both lists of each.
        script
    };
    let mut script = unknown();
    script.synced();
    script.listed(&["c1-0000000007"]);
    script.listed(&["c1-0000000003", "c9-0000000002"]);
    let keep = ["keep c1-0000000007", "keep c1-0000000003"];
    assert_eq!(script.steps(), [keep[0], keep[1], "stat c1-0000000007"]);
    script.stat(66);
    assert_eq!(script.steps(), ["list", "list b"]);
    let mut script = unknown();
    script.synced();
    script.listed(&["c9-0000000002"]);
    script.refused(EnsembleError::NoNode);
    assert_eq!(script.steps(), ["begin"]);
    // One of them was removed by force.
    let mut script = unknown();
    script.synced();
    script.listed(&["c9-0000000002"]);
    script.listed(&["c1-0000000003"]);
    assert_eq!(script.steps(), ["delete c1-0000000003 unheard", "begin"]);
    // Carried out between the two lists.
    let mut script = unknown();
    script.refused(EnsembleError::ThrottledOperation);
    script.listed(&["c9-0000000002"]);
    script.listed(&["c1-0000000003"]);
    assert_eq!(script.steps(), ["pause", "sync", "list", "list b"]);
    script.contender.give_up();
    script.synced();
    script.listed(&["c1-0000000007"]);
    script.listed(&["c1-0000000003"]);
    assert_eq!(
        script.steps(),
        ["delete c1-0000000007 + delete c1-0000000003"]
    );
}

#[test]
fn a_set_is_released_by_one_transaction_or_one_by_one() {
    let multi = "delete c1-0000000007 + delete c1-0000000003";
    let released = || {
        let mut script = held();
        script.contender.give_up();
        assert_eq!(script.steps(), [multi]);
        script
    };
    let mut script = released();
    script.results(80, Ok(&[]));
    assert_eq!(
        script.steps(),
        [
            "forget c1-0000000007",
            "forget c1-0000000003",
            "left Deleted"
        ]
    );
    // Was it carried out?
    let mut script = released();
    script.unanswered();
    assert_eq!(script.steps(), ["delete c1-0000000007"]);
    script.refused(EnsembleError::NoNode);
    assert_eq!(script.steps(), ["delete c1-0000000003"]);
    script.refused(EnsembleError::NoNode);
    assert_eq!(script.steps(), ["left Deleted"]);
    // One was removed by force.
    let mut script = released();
    script.results(0, Err((1, -101)));
    assert_eq!(script.steps(), ["delete c1-0000000007"]);
    script.done();
    script.steps();
    script.refused(EnsembleError::NoNode);
    assert_eq!(script.steps(), ["left WasGone"]);
}

#[test]
fn of_a_set_that_was_lost_nothing_stays() {
    let mut script = held();
    script.contender.removed(&path("b", "c1-0000000003"));
    assert_eq!(script.steps(), ["delete c1-0000000007 unheard", "lost"]);
    let mut script = joined();
    script.listed(&["c1-0000000007", "c9-0000000006"]);
    script.steps();
    script.contender.removed(&path("b", "c1-0000000003"));
    assert_eq!(script.steps(), ["delete c1-0000000007 unheard", "begin"]);
    let mut script = joined();
    script.listed(&["c1-0000000007"]);
    script.listed(&["c9-0000000002"]);
    let deletes = [
        "delete c1-0000000007 unheard",
        "delete c1-0000000003 unheard",
    ];
    assert_eq!(script.steps(), [deletes[0], deletes[1], "begin"]);
}

#[test]
fn large_numbers_are_renewed_in_each_directory_that_is_empty() {
    let mut script = set(true);
    script.steps();
    script.begin();
    script.results(
        70,
        Ok(&["/apps/locks/a/c1-1073741824", "/apps/locks/b/c1-1073741825"]),
    );
    script.contender.give_up();
    let own = "delete c1-1073741824 + delete c1-1073741825";
    assert_eq!(
        script.steps().last().unwrap(),
        &format!("{own} + delete a + delete b")
    );
    script.asked.drain(..4);
    script.results(0, Err((2, -111)));
    assert_eq!(script.steps(), [format!("{own} + delete b")]);
    script.results(80, Ok(&[]));
    assert_eq!(script.steps().last().unwrap(), "left Deleted");
}
