//! Threads with several requests at a time: they are served with all of them, and called to drive
//! whichever is still open.

use super::*;
use crate::batch::Batch;

/// Leaves two requests at a time, and waits for both.
pub(super) fn batch_of_two(turn: &LeaderFollowers<Toy, Arc<Alarm>>, first: u32) {
    let mut batch = Batch::new(turn);
    assert_eq!(batch.begin(turn, first), 0);
    assert_eq!(batch.begin(turn, first + 1), 1);
    let mut told = Vec::new();
    while batch.is_open() {
        assert!(batch.collect(turn, Duration::MAX, |index, outcome| told.push((index, outcome))));
    }
    told.sort_unstable();
    assert_eq!(told, [(0, first * 2), (1, first * 2 + 2)]);
}

#[test]
fn a_thread_with_two_requests_is_served_with_both() {
    for gathering in [0, 2, 3, AT_ONCE] {
        explore(2, move || {
            let model = model(gathering);
            let other = submits(&model, 1);
            batch_of_two(&model.turn, 2);
            other.join().unwrap();
        });
    }
}

#[test]
fn a_thread_with_two_requests_is_called_whichever_is_still_open() {
    for gathering in [0, 4] {
        explore(2, move || {
            let model = model(gathering);
            let turn = Arc::clone(&model.turn);
            let other = loom::thread::spawn(move || batch_of_two(&turn, 1));
            batch_of_two(&model.turn, 3);
            other.join().unwrap();
        });
    }
}

/// Leaves two requests, and another one as soon as the first is decided.
fn batch_that_follows(turn: &LeaderFollowers<Toy, Arc<Alarm>>, first: u32) {
    let mut batch = Batch::new(turn);
    batch.begin(turn, first);
    batch.begin(turn, first + 1);
    let (mut told, mut is_followed) = (Vec::new(), false);
    while batch.is_open() {
        batch.collect(turn, Duration::MAX, |_, outcome| told.push(outcome));
        if !std::mem::replace(&mut is_followed, true) {
            assert!(batch.begin(turn, first + 2) < 2, "a seat is used again");
        }
    }
    told.sort_unstable();
    assert_eq!(told, [first * 2, first * 2 + 2, first * 2 + 4]);
}

#[test]
fn a_thread_whose_requests_follow_one_another_leaves_nobody_waiting() {
    for gathering in [0, 2] {
        explore(2, move || {
            let model = model(gathering);
            let other = submits(&model, 1);
            batch_that_follows(&model.turn, 3);
            other.join().unwrap();
        });
    }
}

#[test]
fn what_a_thread_leaves_for_later_is_sent_before_what_it_sends_then() {
    explore(3, || {
        let model = model(0);
        let other = submits(&model, 1);
        let mut batch = Batch::new(&model.turn);
        batch.begin(&model.turn, 7);
        model.turn.post(8);
        batch.collect(&model.turn, Duration::MAX, |_, outcome| assert_eq!(outcome, 14));
        other.join().unwrap();
        let order = model.order.lock().unwrap();
        let own: Vec<u32> = order.iter().copied().filter(|number| *number > 1).collect();
        assert_eq!(own, [7, 8]);
    });
}
