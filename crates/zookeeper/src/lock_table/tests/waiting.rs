//! What becomes of a call that waits for a lock.

use super::*;

#[test]
fn the_place_is_told_at_once_and_a_grant_is_kept_for_the_caller() {
    let mut talk = Talk::new();
    talk.contend(1, true);
    talk.connect();
    talk.written();
    talk.created(2);
    talk.listed(&["other-lock-0000000001", &Talk::name(2)]);
    talk.refuse(-101);
    assert_eq!(talk.told(), ["1 waits Some(1)"]);
    // The one before it has gone, while nobody waits here.
    talk.refuse(-101);
    talk.listed(&[&Talk::name(2)]);
    talk.refuse(-101);
    assert_eq!(talk.told(), [""; 0]);
    assert!(!talk.table.is_held(&token(1)));
    talk.table.wait(talk.time(), token(1), talk.later(500), 2);
    assert_eq!(talk.told(), ["2 granted"]);
    assert!(talk.table.is_held(&token(1)));
}

#[test]
fn a_call_that_has_no_answer_ends_in_time() {
    let mut talk = Talk::new();
    talk.contend(1, true);
    talk.pass(999);
    assert_eq!(talk.told(), [""; 0]);
    talk.pass(1);
    assert_eq!(talk.told(), ["1 waits None"]);
}

#[test]
fn waits_that_were_ended_stay_ended() {
    for all in [true, false] {
        let mut talk = Talk::new();
        talk.contend(1, true);
        talk.table.end_waits((!all).then_some(token(1)));
        assert_eq!(talk.told(), ["1 waits None"]);
        talk.table.wait(talk.time(), token(1), talk.later(500), 2);
        assert_eq!(talk.told(), ["2 waits None"]);
    }
}

#[test]
fn without_random_numbers_there_is_no_lock() {
    let mut talk = Talk::with_random(false);
    talk.contend(1, true);
    assert_eq!(talk.told(), ["1 NoEntropy"]);
    talk.table.wait(talk.time(), token(1), talk.later(500), 2);
    assert_eq!(talk.told(), ["2 Gone"]);
}

#[test]
fn others_are_a_reason_to_end_a_call_that_does_not_wait() {
    let mut talk = Talk::new();
    talk.contend(1, false);
    talk.connect();
    assert_eq!(talk.written(), [9, 12, 12]);
    talk.reply(|frame| {
        frame.text("/locks/a");
    });
    talk.listed(&["other-lock-0000000001"]);
    assert_eq!(talk.told(), ["1 Contended"]);
}

#[test]
fn paths_are_bounded_also_of_znodes_that_are_not_created_yet() {
    let mut talk = Talk::new();
    let length = contend_with_long_path(&mut talk, 0);
    let room = u32::try_from(PATHS_MAX / length).unwrap();
    for number in 1..room {
        contend_with_long_path(&mut talk, number);
    }
    assert_eq!(talk.told(), [""; 0]);
    contend_with_long_path(&mut talk, room);
    assert_eq!(talk.told(), [format!("{room} NoRoom")]);
    talk.table.remove(numbered(0));
    contend_with_long_path(&mut talk, room + 1);
    assert_eq!(talk.told(), [""; 0]);
    contend_with_long_path(&mut talk, room + 2);
    assert_eq!(talk.told(), [format!("{} NoRoom", room + 2)]);
}

/// Returns how many bytes its path has at most.
fn contend_with_long_path(talk: &mut Talk, number: u32) -> usize {
    let root = Root::new("/locks").unwrap();
    let name = format!("{number:0200}");
    let directory = Directory::new(&root, b"", name.as_bytes()).unwrap();
    let plan = ContenderPlan::of_set(&root, vec![directory]);
    let length = plan.path_bytes();
    let call = (number, talk.later(1_000));
    let hold = Duration::from_secs(2);
    talk.table
        .contend(talk.time(), numbered(number), plan, hold, call);
    length
}

fn numbered(number: u32) -> Token {
    let mut bytes = [0; Token::LEN];
    bytes[..4].copy_from_slice(&number.to_be_bytes());
    Token::new(bytes)
}
