//! Shares that are lost, given up, or not known to be made.

use super::sharing::{READER, held, joined, shares, sharing, wanting};
use super::*;

#[test]
fn a_transaction_without_an_answer_is_looked_for_behind_a_sync() {
    let uncertain = || {
        let mut script = sharing();
        script.unanswered();
        assert_eq!(script.steps(), ["sync", "shares"]);
        script
    };
    let mut script = uncertain();
    script.synced();
    shares(&mut script, &["p0-8", "p1-1"]);
    assert_eq!(script.steps()[2], "held p1-1 by 70 slot 1");
    // It was not carried out, and never will be.
    let mut script = uncertain();
    script.synced();
    shares(&mut script, &["p0-8"]);
    assert_eq!(script.steps(), ["list"]);
    script.listed_with(&["c1-0000000007"], &["p0-8", "p1-9"]);
    assert_eq!(script.steps(), ["create p2-1 + delete c1-0000000007"]);
    // It was carried out, and the share was removed by force.
    let mut script = uncertain();
    script.synced();
    shares(&mut script, &["p1-9"]);
    script.steps();
    script.listed(&["c2-0000000008"]);
    assert_eq!(script.steps(), ["begin"]);
    // Nobody knows yet.
    let mut script = uncertain();
    script.refused(EnsembleError::ThrottledOperation);
    shares(&mut script, &[]);
    assert_eq!(script.steps(), ["pause", "sync", "shares"]);
    script.unanswered();
    assert_eq!(script.steps(), ["sync", "shares"]);
    script.synced();
    script.refused(EnsembleError::ThrottledOperation);
    assert_eq!(script.steps(), ["pause", "sync", "shares"]);
}

#[test]
fn a_transaction_that_fails_says_what_to_do() {
    for (failure, steps) in [
        ((0, -110), &["pause", "sync", "shares"][..]),
        ((0, -2), &["pause", "sync", "shares"]),
        ((0, -127), &["pause", "sync", "shares"]),
        // Its own znode was removed.
        ((1, -101), &["begin"]),
    ] {
        let mut script = sharing();
        script.results(0, Err(failure));
        assert_eq!(script.steps(), steps, "{failure:?}");
    }
    let mut script = sharing();
    script.contender.session_lost();
    assert_eq!(script.steps(), ["begin"]);
}

#[test]
fn a_beat_that_misses_the_znode_of_the_queue_says_nothing_new() {
    let own = format!("/apps/locks/a/{}", long("c1-0000000007"));
    let mut script = sharing();
    script.contender.removed(&own);
    script.results(90, Ok(&["p1-1"]));
    script.contender.removed(&own);
    assert_eq!(script.steps()[2], "held p1-1 by 70 slot 1");
    script.contender.removed(&own);
    assert_eq!(script.steps(), [""; 0]);
}

#[test]
fn a_share_that_is_removed_or_ends_with_its_session_is_lost() {
    let mut script = held();
    script
        .contender
        .removed(&format!("/apps/locks/a~shares/{}", long("p1-9")));
    assert_eq!(script.steps(), [""; 0], "another's with the same number");
    script
        .contender
        .removed(&format!("/apps/locks/a~shares/{}", long("p1-1")));
    assert_eq!(script.steps(), ["lost"]);
    let mut script = held();
    script.contender.session_lost();
    assert_eq!(script.steps(), ["lost"]);
    // The first of the queue was removed while it waited.
    let mut script = joined(None);
    script.listed_with(&["c1-0000000007"], &["r9"]);
    script.steps();
    shares(&mut script, &["r9"]);
    script
        .contender
        .removed(&format!("/apps/locks/a/{}", long("c1-0000000007")));
    assert_eq!(script.steps(), ["begin"]);
}

#[test]
fn a_release_deletes_the_share() {
    let mut script = held();
    script.contender.give_up();
    assert_eq!(script.steps(), ["delete p1-1"]);
    script.refused(EnsembleError::NoNode);
    assert_eq!(script.steps(), ["left WasGone"]);
}

#[test]
fn who_gives_up_while_the_share_is_made_leaves_neither_znode() {
    for is_answered in [true, false] {
        let mut script = sharing();
        if !is_answered {
            script.unanswered();
            script.steps();
            script.unanswered();
            script.steps();
            script.asked.clear();
        }
        script.contender.give_up();
        // Without this one there will be no share, if there is none yet.
        assert_eq!(script.steps(), ["delete c1-0000000007"]);
        if is_answered {
            script.results(90, Ok(&["p1-1"]));
            assert_eq!(script.steps(), [""; 0]);
        }
        script.refused(EnsembleError::NoNode);
        assert_eq!(script.steps(), ["delete p1-1"]);
        script.done();
        assert_eq!(script.steps(), ["left Deleted"]);
    }
}

#[test]
fn with_large_numbers_a_share_removes_the_directory_if_nobody_is_in_it() {
    let mut script = wanting(READER, true);
    script.steps();
    script.begin();
    script.created("c1-1073741824", 70);
    script.steps();
    script.listed_with(&["c1-1073741824"], &[]);
    assert_eq!(
        script.steps(),
        ["create r1 + delete c1-1073741824 + delete a"]
    );
    script.results(0, Err((2, -111)));
    assert_eq!(script.steps(), ["create r1 + delete c1-1073741824"]);
    script.results(90, Ok(&["r1"]));
    assert_eq!(script.steps()[2], "held r1 by 70");
}

#[test]
fn a_share_is_held_when_the_session_is_valid_for_long_enough() {
    let mut script = sharing();
    script.valid_until = Time::ZERO;
    script.results(90, Ok(&["p1-1"]));
    assert_eq!(script.steps(), ["keep p1-1", "forget c1-0000000007"]);
    script.contender.give_up();
    assert_eq!(script.steps(), ["delete p1-1"]);
}
