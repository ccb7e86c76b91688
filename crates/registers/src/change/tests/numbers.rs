//! The numbers of ballots: who came first, and who goes on.

use super::*;

#[test]
fn a_promise_that_another_client_has_gone_beyond_is_no_contention() {
    let mut talk = Talk::new(Proposer::new(OWNER));
    talk.prepares();
    talk.hear([promise(None), promise(None), None]);
    talk.proposes();
    talk.hear([DONE, DONE, DONE]);
    talk.end();
    let mut talk = Talk::new(talk.change.into_proposer());
    assert_eq!(talk.proposes().0.number(), 2, "in one round");
    talk.hear([passed(7), passed(7), passed(7)]);
    assert_eq!(talk.prepares(), 7 + 1);
    // Unless somebody is about to change it.
    let mut talk = Talk::new(Proposer::new(OWNER));
    talk.prepares();
    talk.hear([passed(7), preempted(9), None]);
    assert_eq!(talk.is_preempted(), 1);
}

#[test]
fn the_floor_that_a_deletion_has_left_is_no_contention() {
    let deleted = || {
        Some(RegisterReply::Preempted {
            least: 7,
            accepted: None,
            floor: 7,
        })
    };
    let mut talk = Talk::new(Proposer::new(OWNER));
    talk.prepares();
    talk.hear([deleted(), deleted(), None]);
    assert_eq!(talk.prepares(), 7 + 1);
    // Somebody has prepared since.
    let mut talk = Talk::new(Proposer::new(OWNER));
    talk.prepares();
    let prepared = Some(RegisterReply::Preempted {
        least: 9,
        accepted: None,
        floor: 7,
    });
    talk.hear([deleted(), prepared, None]);
    assert_eq!(talk.is_preempted(), 1);
}

#[test]
fn who_counts_from_the_time_is_above_all_that_came_before() {
    let mut proposer = Proposer::new(OWNER);
    proposer.enter(&group(3));
    proposer.count_from(1000);
    assert_eq!(Talk::new(proposer.clone()).prepares(), (3 << 40) + 1001);
    proposer.count_from(900);
    assert_eq!(
        Talk::new(proposer.clone()).prepares(),
        (3 << 40) + 1001,
        "a clock went back"
    );
    proposer.count_from(u64::MAX);
    assert_eq!(Talk::new(proposer).prepares(), 4 << 40);
}

#[test]
fn after_a_refusal_the_ballot_is_above_the_one_that_came_first() {
    let mut talk = Talk::new(Proposer::new(OWNER));
    talk.prepares();
    talk.hear([promise(None), passed(7), passed(5)]);
    // It could not know the numbers. That is not contention.
    assert_eq!(talk.prepares(), 7 + 1);
    talk.hear([promise(None), preempted(9), preempted(5)]);
    assert_eq!(talk.is_preempted(), 1);
    assert_eq!(talk.prepares(), 9 + 4);
    talk.hear([preempted(15), preempted(14), preempted(15)]);
    assert_eq!(talk.is_preempted(), 2);
    assert_eq!(talk.prepares(), 15 + 16, "more each time");
}

#[test]
fn a_promise_of_a_former_group_is_not_used() {
    let mut proposer = Proposer::new(OWNER);
    proposer.enter(&group(1));
    let mut talk = Talk::new(proposer);
    talk.prepares();
    talk.hear([promise(None), promise(None), None]);
    talk.proposes();
    talk.hear([DONE, DONE, None]);
    talk.end();
    let mut proposer = talk.change.into_proposer();
    // All nodes have forgotten, and were made a group once more.
    proposer.enter(&Group { id: 2, ..group(1) });
    assert!(Talk::new(proposer).prepares() > 1 << 40);
}
