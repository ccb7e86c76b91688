//! The checker rejects wrong histories of each kind, and accepts the right ones beside them.

use super::checker::check;
use super::operation::{Call, Operation, Outcome, Seen};

/// An operation of the register 0.
fn operation(called: u64, returned: u64, call: Call, outcome: Outcome) -> Operation {
    Operation {
        register: 0,
        worker: 0,
        called,
        returned,
        call,
        outcome,
    }
}

fn seen(version: u64, ids: &[u64]) -> Option<Seen> {
    Some(Seen {
        version,
        ids: ids.to_vec(),
        fence: 0,
    })
}

fn fenced(version: u64, id: u64, fence: u64) -> Option<Seen> {
    Some(Seen {
        version,
        ids: vec![id],
        fence,
    })
}

/// A change that appends its version as its id.
fn change(called: u64, returned: u64, version: u64, before: Option<Seen>) -> Operation {
    let outcome = Outcome::Changed {
        version: Some(version),
        before,
    };
    operation(called, returned, Call::Change(version), outcome)
}

fn read(called: u64, returned: u64, value: Option<Seen>) -> Operation {
    operation(called, returned, Call::Read, Outcome::Is(value))
}

fn delete(called: u64, returned: u64, before: Option<Seen>) -> Operation {
    operation(
        called,
        returned,
        Call::Delete,
        Outcome::Changed {
            version: None,
            before,
        },
    )
}

fn write(called: u64, token: u64, id: u64, outcome: Outcome) -> Operation {
    operation(called, called + 1, Call::Fenced { token, id }, outcome)
}

fn set(called: u64, before: Option<u64>, id: u64, outcome: Outcome) -> Operation {
    operation(called, called + 1, Call::Set { seen: before, id }, outcome)
}

fn unsure(called: u64, id: u64) -> Operation {
    operation(called, called, Call::Change(id), Outcome::Unsure)
}

#[track_caller]
fn assert_right(history: &[Operation]) {
    if let Err(why) = check(history) {
        panic!("it is right: {why}");
    }
}

#[track_caller]
fn assert_wrong(history: &[Operation]) {
    assert!(check(history).is_err(), "it is wrong: {history:#?}");
}

#[test]
fn a_stale_read_is_wrong_and_one_beside_the_change_is_not() {
    let changes = [change(1, 2, 1, None), change(3, 6, 2, seen(1, &[1]))];
    let with = |read: Operation| [&changes[..], &[read]].concat();
    assert_right(&with(read(4, 8, seen(1, &[1]))));
    assert_right(&with(read(4, 5, seen(2, &[1, 2]))));
    assert_wrong(&with(read(7, 8, seen(1, &[1]))));
    assert_wrong(&with(read(7, 8, None)));
    // One read sees the change, and a later one does not.
    let both = [read(4, 4, seen(2, &[1, 2])), read(5, 5, seen(1, &[1]))];
    assert_wrong(&[&changes[..], &both].concat());
}

#[test]
fn a_lost_change_is_wrong() {
    let first = change(1, 2, 1, None);
    assert_wrong(&[first.clone(), change(3, 4, 2, None)]);
    assert_wrong(&[
        first.clone(),
        change(3, 4, 2, seen(1, &[1])),
        read(5, 6, seen(1, &[1])),
    ]);
    // Two changes of the same value.
    let both = [
        change(3, 9, 2, seen(1, &[1])),
        change(3, 9, 3, seen(1, &[1])),
    ];
    assert_wrong(&[&[first][..], &both].concat());
}

#[test]
fn a_double_change_is_wrong() {
    let first = change(1, 2, 1, None);
    assert_wrong(&[first.clone(), read(3, 4, seen(1, &[1, 1]))]);
    assert_wrong(&[first.clone(), unsure(3, 7), read(4, 5, seen(9, &[1, 7, 7]))]);
    // It was made again after it had been deleted.
    let deleted = delete(6, 7, seen(7, &[1, 7]));
    let again = read(8, 9, seen(7, &[7]));
    assert_wrong(&[first, unsure(3, 7), deleted, again]);
}

#[test]
fn a_value_from_nowhere_is_wrong_and_so_is_one_of_a_change_that_has_failed() {
    let first = change(1, 2, 1, None);
    assert_wrong(&[first.clone(), read(3, 4, seen(8, &[8]))]);
    let failed = operation(3, 4, Call::Change(8), Outcome::Failed);
    assert_right(&[first.clone(), failed.clone(), read(5, 6, seen(1, &[1]))]);
    assert_wrong(&[first, failed, read(5, 6, seen(8, &[1, 8]))]);
}

#[test]
fn an_unsure_change_happens_late_or_never_but_not_before_its_call() {
    let first = change(1, 2, 1, None);
    let old = |at: u64| read(at, at + 1, seen(1, &[1]));
    let new = |at: u64| read(at, at + 1, seen(7, &[1, 7]));
    assert_right(&[first.clone(), unsure(3, 7), old(5), old(7)]);
    assert_right(&[first.clone(), unsure(3, 7), old(5), new(7)]);
    assert_wrong(&[first.clone(), unsure(3, 7), new(5), old(7)]);
    assert_wrong(&[first, unsure(9, 7), new(5)]);
}

#[test]
fn a_deletion_is_once_and_versions_go_on_after_it() {
    let begin = [change(1, 2, 5, None), delete(3, 4, seen(5, &[5]))];
    let with = |more: &[Operation]| [&begin[..], more].concat();
    assert_right(&with(&[change(5, 6, 6, None), read(7, 8, seen(6, &[6]))]));
    assert_wrong(&with(&[change(5, 6, 4, None)]));
    assert_wrong(&with(&[read(5, 6, seen(5, &[5]))]));
    assert_wrong(&with(&[delete(5, 6, seen(5, &[5]))]));
    assert_right(&with(&[delete(5, 6, None)]));
    assert_wrong(&[change(1, 2, 5, None), read(3, 4, seen(6, &[5]))]);
}

#[test]
fn a_smaller_token_and_another_version_write_nothing() {
    let begin = [write(1, 7, 10, Outcome::Set(10))];
    let with = |more: &[Operation]| [&begin[..], more].concat();
    assert_right(&with(&[
        read(3, 4, fenced(10, 10, 7)),
        write(5, 8, 11, Outcome::Set(11)),
    ]));
    assert_right(&with(&[write(5, 6, 11, Outcome::Stale(7))]));
    assert_wrong(&with(&[write(5, 6, 11, Outcome::Set(11))]));
    assert_wrong(&with(&[write(5, 9, 11, Outcome::Stale(7))]));
    assert_wrong(&with(&[read(3, 4, fenced(10, 10, 6))]));
    assert_right(&with(&[
        set(5, Some(10), 11, Outcome::Set(11)),
        read(8, 9, fenced(11, 11, 7)),
    ]));
    assert_wrong(&with(&[
        set(5, Some(10), 11, Outcome::Set(11)),
        read(8, 9, fenced(11, 11, 0)),
    ]));
    assert_wrong(&with(&[set(5, Some(9), 11, Outcome::Set(11))]));
    assert_wrong(&with(&[set(5, None, 11, Outcome::Set(11))]));
    assert_wrong(&with(&[set(
        5,
        Some(10),
        11,
        Outcome::Is(fenced(10, 10, 7)),
    )]));
    assert_right(&with(&[set(5, None, 11, Outcome::Is(fenced(10, 10, 7)))]));
}
