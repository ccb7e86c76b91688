//! A set of keys in the queue of each of them.

use super::*;

/// A set of two keys for ten seconds.
fn set() -> Acquire {
    let more_keys = vec![Arc::from(&b"more"[..])];
    let attributes = LockAttributes {
        more_keys,
        ..LockAttributes::default()
    };
    waiting(Wait::Forever).with(Some(Arc::new(attributes)))
}

/// Answers of nodes that reserve a part of the set, or all of it.
fn reserving(part: &str, all: &str) -> Votes {
    let placed = placed(0);
    let part = nodes(part);
    let lacks = (!part.is_empty()).then_some(1);
    let lacking = lacks.map_or(0, |index| 1 << index);
    let queue = QueueState {
        part,
        lacks,
        lacking,
        reserved: nodes(all),
        ..placed.queue
    };
    Votes { queue, ..placed }
}

#[test]
fn a_set_joins_with_all_keys() {
    let (_, request) = refused(set());
    assert_eq!(entry(&request).lock.keys().count(), 2);
}

#[test]
fn reservations_of_a_part_are_renewed_soon_however_far_back_the_set_stands_elsewhere() {
    let (mut script, _) = joined(set(), 40);
    let mut answers = reserving("yyy--", "-----");
    answers.queue.place = 40;
    script.not_called(1_600).request();
    let until = script.answer(1_605, answers).queue_wait().until;
    assert!(until <= at(1_605 + 1_000), "{until:?}");
}

#[test]
fn where_nodes_tell_nothing_a_set_asks_as_often_as_the_first_wherever_it_stands() {
    let until = |place| {
        let (mut script, _) = joined(set(), place);
        script.not_called(1_600).request();
        let mut answers = reserving("-----", "-----");
        (answers.queue.place, answers.queue.listening) = (place, NodeSet::EMPTY);
        script.answer(1_605, answers).queue_wait().until
    };
    assert!(
        until(40) <= until(0),
        "it may be the first for one of its resources"
    );
}

/// Asks the nodes, with these answers.
fn renew(script: &mut Script, now: u64, answers: Votes) -> &mut Script {
    assert_eq!(script.not_called(now).request().verb(), Verb::Queue);
    script.answer(now + 5, answers)
}

/// The keys of a lock.
fn keys(lock: &LockId) -> Vec<&[u8]> {
    lock.keys().collect()
}

/// A set of which a part was kept from others for its ttl, and its request for the rest alone.
fn set_alone() -> (Script, Request) {
    let (mut script, _) = joined(set(), 0);
    renew(&mut script, 11_010, reserving("y----", "-----"));
    let undo = script.undo();
    let lock = undo.lock().unwrap();
    assert_eq!(
        (undo.waiter(), keys(lock)),
        (Some(draw(1).token), vec![&b"key"[..]])
    );
    let request = script.request();
    (script, request)
}

#[test]
fn a_part_is_kept_from_others_until_a_set_has_waited_for_its_ttl() {
    let (mut script, _) = joined(set(), 0);
    let wait = renew(&mut script, 10_500, reserving("yyy--", "-----")).queue_wait();
    assert_eq!(
        wait.until,
        at(1_005 + 10_000),
        "it asks when the time is over, and not later"
    );
    assert_eq!(
        &*wait.key, b"more",
        "each renewal changes what is kept for it"
    );

    // Nothing is kept from others, the lock is its own, or nobody else could have it.
    for answers in [reserving("-----", "-----"), reserving("--yy-", "yyy--")] {
        let (mut script, _) = joined(set(), 0);
        renew(&mut script, 20_000, answers);
        assert_eq!(script.operation().place.as_ref().unwrap().alone, None);
    }
}

#[test]
fn then_it_waits_for_the_key_that_it_lacks_alone_with_its_number() {
    let (mut script, request) = set_alone();
    assert_eq!(
        (keys(&entry(&request).lock), entry(&request).number),
        (vec![&b"more"[..]], 7)
    );
    let wait = script.answer(11_020, placed(3)).queue_wait();
    assert_eq!((&*wait.key, wait.waiter), (&b"more"[..], draw(1).token));
    assert_eq!(script.operation().place(), Some(3));
    let request = script.not_called(11_500).request();
    assert_eq!(keys(&entry(&request).lock).len(), 1);
    script
        .answer(11_505, reserving("-----", "yy---"))
        .queue_wait();
}

#[test]
fn it_waits_for_all_again_when_that_key_is_reserved_for_it() {
    let (mut script, _) = set_alone();
    script.answer(11_020, reserving("-----", "yyy--"));
    let request = script.called(11_020, draw(2)).request();
    assert_eq!(
        (keys(&entry(&request).lock).len(), entry(&request).number),
        (2, 7)
    );
    // It was out of the other queue, and has missed nothing. Again it may keep a part for a ttl.
    let mut answers = reserving("yyyyy", "-----");
    answers.queue.out = nodes("yyyyy");
    script.answer(11_025, answers).queue_wait();
    assert_eq!(script.operation().place.as_ref().unwrap().misses, 0);
    renew(&mut script, 21_000, reserving("yyyyy", "-----")).queue_wait();
    renew(&mut script, 21_030, reserving("yyyyy", "-----")).undo();
    script.request();
    script.answer(21_040, reserving("-----", "yyyyy"));
    let request = script.called(21_040, draw(3)).request();
    assert_eq!(request.verb(), Verb::Queue);
    script.answer(21_045, reserving("-----", "yyyyy"));
    let turn = script.called(21_045, draw(4)).request();
    assert_eq!(
        (turn.verb(), keys(turn.lock().unwrap()).len()),
        (Verb::Turn, 2)
    );
}

#[test]
fn a_set_waits_for_another_key_the_next_time_if_nodes_say_different_things() {
    // The last key was reserved at once: only a minority has it.
    for (lacking, last, expected) in [(0b10, 1, 1), (0b11, 1, 0), (0b11, 0, 1)] {
        let (mut script, _) = joined(set(), 0);
        script.operation().place.as_mut().unwrap().alone_last = Some(last);
        let mut answers = reserving("yy---", "-----");
        answers.queue.lacking = lacking;
        renew(&mut script, 11_010, answers);
        let place = script.operation().place.as_ref().unwrap();
        assert_eq!(place.alone, Some(expected), "{lacking:b} after {last}");
    }
}

#[test]
fn a_set_that_ends_its_wait_leaves_all_queues() {
    let (mut script, _) = set_alone();
    script.answer(11_020, placed(3)).queue_wait();
    let undo = script.cancel(11_100).undo();
    assert_eq!(
        (undo.waiter(), keys(undo.lock().unwrap()).len()),
        (Some(draw(1).token), 2)
    );
}

#[test]
fn a_part_may_be_kept_for_longer_in_a_quarantine() {
    let (mut script, _) = joined(set(), 0);
    for now in [2_000, 12_500, 30_000] {
        let part = reserving("yyy--", "-----");
        let answers = Votes {
            quarantine: Duration::from_secs(60),
            ..part
        };
        let until = renew(&mut script, now, answers).queue_wait().until;
        assert!(until > at(now + 100), "{now} {until:?}");
    }
}
