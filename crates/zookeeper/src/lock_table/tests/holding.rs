//! What becomes of a lock that is held.

use super::*;

#[test]
fn a_check_that_is_answered_behind_the_locks_own_end_is_refused() {
    let mut talk = Talk::held();
    talk.millis += 1_100;
    talk.table.check(
        talk.time(),
        token(1),
        talk.later(9_000),
        talk.later(3_000),
        2,
    );
    assert_eq!(talk.written(), [14]);
    // Not so long that the server counts as silent.
    talk.pass(900);
    assert!(!talk.table.is_held(&token(1)), "its own end has come");
    talk.checked();
    assert_eq!(talk.told(), ["2 Refused"]);
}

#[test]
fn a_check_extends_a_lock() {
    let mut talk = Talk::held();
    talk.table
        .check(talk.time(), token(1), talk.later(2_500), talk.later(500), 2);
    assert_eq!(talk.written(), [14]);
    talk.checked();
    assert_eq!(talk.told(), ["2 Granted"]);
    talk.pass(900);
    assert_eq!(
        talk.written(),
        [14],
        "a beat, and nothing about the extension"
    );
    assert!(talk.table.is_held(&token(1)));
    // One that is not answered changes nothing.
    talk.table
        .check(talk.time(), token(1), talk.later(9_000), talk.later(50), 3);
    talk.pass(50);
    assert_eq!(talk.told(), ["3 Failed"]);
}

#[test]
fn a_lock_ends_at_its_own_end() {
    let mut talk = Talk::held();
    talk.millis += 1_999;
    assert!(talk.table.is_held(&token(1)));
    talk.pass(1);
    assert!(!talk.table.is_held(&token(1)));
    assert_eq!(talk.told(), [""; 0], "nobody is told of what it has known");
    talk.table
        .take_over(talk.time(), token(1), talk.later(1_000), 2);
    assert_eq!(talk.told(), ["2 Gone"]);
}

#[test]
fn a_release_says_whether_it_was_held() {
    let mut talk = Talk::held();
    talk.table
        .release(talk.time(), token(1), talk.later(100), 2);
    assert_eq!(talk.written(), [2]);
    talk.reply(|_| {});
    assert_eq!(talk.told(), ["2 Granted"]);
    talk.table
        .release(talk.time(), token(1), talk.later(100), 3);
    assert_eq!(talk.told(), ["3 Refused"]);
    let mut talk = Talk::held();
    talk.table
        .release(talk.time(), token(1), talk.later(100), 2);
    talk.pass(100);
    assert_eq!(talk.told(), ["2 Failed"]);
}
