//! Readers and permits, and writers that wait for them.

use super::*;
use redlatch_protocol::engine::Share;

pub(super) fn wanting(share: Option<Share>, waits: bool) -> Script {
    let mut plan = plan(&[b"a"]);
    (plan.share, plan.waits) = (share, waits);
    Script::of(plan)
}

pub(super) const READER: Option<Share> = Some(Share::Reader);

pub(super) fn permit(of: u32) -> Option<Share> {
    Some(Share::Permit { of, number: None })
}

/// One whose znode has the number 7, and whose lists are to be answered.
pub(super) fn joined(share: Option<Share>) -> Script {
    let mut script = wanting(share, true);
    assert_eq!(script.steps(), ["begin"]);
    assert_eq!(script.begin(), ["create c1", "list"]);
    script.created("c1-0000000007", 70);
    assert_eq!(script.steps(), ["keep c1-0000000007"]);
    script
}

/// A permit whose transaction is in flight.
pub(super) fn sharing() -> Script {
    let mut script = joined(permit(3));
    script.listed_with(&["c1-0000000007"], &["p0-8"]);
    assert_eq!(script.steps(), ["create p1-1 + delete c1-0000000007"]);
    script
}

pub(super) fn held() -> Script {
    let mut script = sharing();
    script.results(90, Ok(&["p1-1"]));
    let held = "held p1-1 by 70 slot 1";
    assert_eq!(script.steps(), ["keep p1-1", "forget c1-0000000007", held]);
    script
}

fn shares_changed(script: &mut Script) {
    script.contender.changed("/apps/locks/a~shares");
}

pub(super) fn shares(script: &mut Script, names: &[&str]) {
    let body = [list_of(names), vec![0; 68]].concat();
    let reply = EnsembleReply::decode(RequestKind::GetChildren, &body).unwrap();
    script.answer(71, Ok(reply));
}

#[test]
fn a_share_is_made_by_the_transaction_that_leaves_the_queue() {
    held();
    let mut script = joined(READER);
    script.listed_with(&["c1-0000000007", "c2-0000000008"], &["r9", "other"]);
    assert_eq!(script.steps(), ["create r1 + delete c1-0000000007"]);
    script.results(90, Ok(&["r1"]));
    assert_eq!(
        script.steps(),
        ["keep r1", "forget c1-0000000007", "held r1 by 70"]
    );
    assert_eq!(script.contender.place(), None);
}

#[test]
fn the_directory_of_shares_is_created_when_it_is_missing() {
    let container = "Container /apps/locks/a~shares";
    let multi = "create r1 + delete c1-0000000007";
    let mut script = joined(READER);
    script.listed(&["c1-0000000007"]);
    assert_eq!(script.steps(), [container, multi], "in one flight");
    script.created("x", 80);
    script.results(90, Ok(&["r1"]));
    assert_eq!(script.steps()[2], "held r1 by 70");
    // It was swept since it was read.
    let mut script = joined(READER);
    script.listed_with(&["c1-0000000007"], &[]);
    assert_eq!(script.steps(), [multi]);
    script.results(0, Err((0, -101)));
    assert_eq!(script.steps(), [container, multi]);
    script.refused(EnsembleError::NodeExists);
    script.results(0, Err((0, -101)));
    assert_eq!(
        script.steps(),
        ["list"],
        "again, and no faster than servers answer"
    );
}

#[test]
fn a_directory_of_shares_that_must_not_be_created_is_told_and_nothing_stays() {
    let mut script = joined(READER);
    script.listed(&["c1-0000000007"]);
    script.steps();
    script.refused(EnsembleError::NoAuth);
    script.results(0, Err((0, -101)));
    let refused = "refused Server(NoAuth)";
    assert_eq!(script.steps(), ["delete c1-0000000007 unheard", refused]);
    let mut script = sharing();
    script.results(0, Err((0, -102)));
    assert_eq!(script.steps(), ["delete c1-0000000007 unheard", refused]);
}

#[test]
fn the_first_of_the_queue_waits_for_shares_that_are_in_its_way() {
    for (wanted, there, still, then, step) in [
        (
            None,
            &["r8", "r9"][..],
            &["r8"][..],
            &["x"][..],
            "held c1-0000000007 by 70",
        ),
        (
            READER,
            &["p0-8"],
            &["p0-8"],
            &["r9"],
            "create r1 + delete c1-0000000007",
        ),
        (
            permit(2),
            &["r8"],
            &["r8"],
            &["p0-9"],
            "create p1-1 + delete c1-0000000007",
        ),
        (
            permit(1),
            &["p0-8"],
            &["p0-8"],
            &["p7-9"],
            "create p0-1 + delete c1-0000000007",
        ),
    ] {
        let mut script = joined(wanted);
        script.listed_with(&["c1-0000000007"], there);
        assert_eq!(script.steps(), ["watch shares"]);
        shares(&mut script, there);
        assert_eq!(
            (script.steps(), script.contender.place()),
            (vec![], Some(0))
        );
        script.contender.changed("/apps/locks/a");
        assert_eq!(script.steps(), [""; 0]);
        shares_changed(&mut script);
        assert_eq!(script.steps(), ["watch shares"]);
        shares(&mut script, still);
        assert_eq!(script.steps(), [""; 0]);
        shares_changed(&mut script);
        script.steps();
        shares(&mut script, then);
        assert_eq!(script.steps(), [step]);
    }
}

#[test]
fn only_the_first_of_the_queue_looks_at_the_shares() {
    let mut script = joined(None);
    script.listed_with(&["c1-0000000007", "c9-0000000006"], &["r9"]);
    assert_eq!(script.steps(), ["watch c9-0000000006"]);
    script.data();
    shares_changed(&mut script);
    assert_eq!(script.steps(), [""; 0]);
}

#[test]
fn a_change_of_the_shares_is_not_lost() {
    // Before the reply that set its watch.
    let mut script = joined(None);
    script.listed_with(&["c1-0000000007"], &["r9"]);
    script.steps();
    shares_changed(&mut script);
    shares(&mut script, &["r9"]);
    assert_eq!(script.steps(), ["watch shares"]);
    shares(&mut script, &["r9"]);
    // While there was no connection.
    script.contender.connected();
    assert_eq!(script.steps(), ["watch shares"]);
    script.contender.connected();
    assert_eq!(script.steps(), [""; 0], "it is on its way");
    script.unanswered();
    assert_eq!(script.steps(), ["shares"]);
    script.refused(EnsembleError::NoNode);
    assert_eq!(script.steps(), ["held c1-0000000007 by 70"]);
}

#[test]
fn who_does_not_wait_looks_at_both_lists_first() {
    for (wanted, queue, there, expected) in [
        (None, &[][..], &["r9"][..], "contended"),
        (None, &["c9-0000000006"], &[], "contended"),
        (READER, &[], &["r9"], "begin"),
        (READER, &[], &["p0-9"], "contended"),
        (READER, &["c9-0000000006"], &[], "contended"),
        (permit(2), &[], &["p0-9"], "begin"),
        (permit(1), &[], &["p0-9"], "contended"),
    ] {
        let mut script = wanting(wanted, false);
        assert_eq!(script.steps(), ["sync", "list"]);
        script.synced();
        script.listed_with(
            queue,
            if expected == "contended" && !queue.is_empty() {
                &[]
            } else {
                there
            },
        );
        assert_eq!(script.steps(), [expected]);
    }
    // Others were faster.
    let mut script = wanting(permit(1), false);
    script.steps();
    script.synced();
    script.listed(&[]);
    script.steps();
    script.begin();
    script.created("c1-0000000007", 70);
    script.steps();
    script.listed_with(&["c1-0000000007"], &["p0-9"]);
    assert_eq!(
        script.steps(),
        ["delete c1-0000000007 unheard", "contended"]
    );
}
