//! A set of keys in the queue of each of them.

use super::*;

/// A set of two keys for ten seconds.
fn set() -> Acquire {
    let more_keys = vec![Arc::from(&b"more"[..])];
    let attributes = LockAttributes { more_keys, ..LockAttributes::default() };
    waiting(Wait::Forever).with(Some(Arc::new(attributes)))
}

/// Answers of nodes that reserve a part of the set, or all of it.
fn reserving(part: &str, all: &str) -> Ballot {
    let placed = placed(0);
    let queue = QueueState { part: nodes(part), reserved: nodes(all), ..placed.queue };
    Ballot { queue, ..placed }
}

#[test]
fn a_set_joins_with_all_keys() {
    let (_, request) = refused(set());
    assert_eq!(entry(&request).lock.keys().count(), 2);
}

#[test]
fn what_nodes_tell_of_a_set_is_a_reason_to_ask_and_no_turn() {
    let (mut script, _) = joined(set(), 0);
    let request = script.answer(1_500, ballot("yyyyy")).request();
    assert_eq!(request.verb(), Verb::Queue, "each may be told of another key");
    script.answer(1_505, reserving("yyyyy", "-----")).queue_wait();
    assert!(!script.operation().is_called());
    script.answer(1_600, ballot("yyyyy")).request();
    script.answer(1_605, reserving("---yy", "yyy--"));
    assert!(script.operation().is_called());
    assert_eq!(script.attempt(1_605, draw(2)).verb(), Verb::Turn);
}

#[test]
fn reservations_of_a_part_are_renewed_soon_however_far_back_the_set_stands_elsewhere() {
    let (mut script, _) = joined(set(), 40);
    let mut answers = reserving("yyy--", "-----");
    answers.queue.place = 40;
    script.answer(1_600, ballot("yyy--")).request();
    let until = script.answer(1_605, answers).queue_wait().until;
    assert!(until <= at(1_605 + 1_000), "{until:?}");
}

#[test]
fn where_nodes_tell_nothing_a_set_asks_as_often_as_the_first_wherever_it_stands() {
    let until = |place| {
        let (mut script, _) = joined(set(), place);
        script.answer(1_600, ballot("yyy--")).request();
        let mut answers = reserving("-----", "-----");
        (answers.queue.place, answers.queue.listening) = (place, NodeSet::EMPTY);
        script.answer(1_605, answers).queue_wait().until
    };
    assert!(until(40) <= until(0), "it may be the first for one of its resources");
}

/// Renews the entry, with these answers. Returns whether the set has given its place up.
fn leaves(script: &mut Script<Acquire>, now: u64, answers: Ballot) -> bool {
    assert_eq!(script.answer(now, ballot("-----")).request().verb(), Verb::Queue);
    script.answer(now + 5, answers);
    let is_gone = script.operation().place().is_none();
    if !is_gone {
        script.queue_wait();
    }
    is_gone
}

#[test]
fn a_part_is_kept_from_others_for_one_ttl_in_a_row() {
    let part = |nodes| reserving(nodes, "-----");
    let (mut script, _) = joined(set(), 0);
    for (now, nodes) in [(2_000, "yyy--"), (11_999, "--yyy"), (12_004, "-----"), (13_000, "y----")]
    {
        assert!(!leaves(&mut script, now, part(nodes)), "{now}");
    }
    let (mut script, _) = joined(set(), 0);
    assert!(!leaves(&mut script, 2_000, part("yyy--")));
    assert!(leaves(&mut script, 12_000, part("y----")));
    assert_eq!(script.undo().waiter(), Some(draw(1).token));
    let until = script.wait();
    assert_eq!(script.attempt_at(until, draw(2)).verb(), Verb::Acquire, "it joins at the end");

    // In a quarantine nobody else could have it.
    let (mut script, _) = joined(set(), 0);
    for now in [2_000, 12_500, 30_000] {
        let answers = Ballot { quarantine: Duration::from_secs(60), ..part("yyy--") };
        assert!(!leaves(&mut script, now, answers), "{now}");
    }
}
