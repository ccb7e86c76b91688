//! Threads with several requests at a time: they get all outcomes, and can be promoted as long as
//! any of their requests is open.

use super::*;
use crate::follower::Batch;

/// Begins two requests at a time and waits for both.
pub(super) fn batch_of_two(shared: &LeaderFollowers<Toy>, first: u32) {
    let mut batch = Batch::new(shared);
    assert_eq!(batch.begin(shared, first), 0);
    assert_eq!(batch.begin(shared, first + 1), 1);
    let mut outcomes = Vec::new();
    while batch.is_open() {
        assert!(batch.collect(shared, Duration::MAX, |index, outcome| {
            outcomes.push((index, outcome));
        }));
    }
    outcomes.sort_unstable();
    assert_eq!(outcomes, [(0, first * 2), (1, first * 2 + 2)]);
}

#[test]
fn a_thread_with_two_requests_gets_both_outcomes() {
    for gathering in [0, 2, 3, AT_ONCE] {
        explore(2, move || {
            let model = model(gathering);
            let other = spawn_submit(&model, 1);
            batch_of_two(&model.shared, 2);
            other.join().unwrap();
        });
    }
}

#[test]
fn a_thread_with_two_requests_is_promoted_while_either_is_open() {
    for gathering in [0, 4] {
        explore(2, move || {
            let model = model(gathering);
            let shared = Arc::clone(&model.shared);
            let other = loom::thread::spawn(move || batch_of_two(&shared, 1));
            batch_of_two(&model.shared, 3);
            other.join().unwrap();
        });
    }
}

/// Begins two requests, and another one as soon as one of them is decided.
fn batch_that_follows(shared: &LeaderFollowers<Toy>, first: u32) {
    let mut batch = Batch::new(shared);
    batch.begin(shared, first);
    batch.begin(shared, first + 1);
    let mut outcomes = Vec::new();
    let mut has_begun_third = false;
    while batch.is_open() {
        batch.collect(shared, Duration::MAX, |_, outcome| outcomes.push(outcome));
        if !std::mem::replace(&mut has_begun_third, true) {
            assert!(batch.begin(shared, first + 2) < 2, "a number is used again");
        }
    }
    outcomes.sort_unstable();
    assert_eq!(outcomes, [first * 2, first * 2 + 2, first * 2 + 4]);
}

#[test]
fn a_thread_that_begins_requests_between_outcomes_leaves_no_thread_waiting() {
    for gathering in [0, 2] {
        explore(2, move || {
            let model = model(gathering);
            let other = spawn_submit(&model, 1);
            batch_that_follows(&model.shared, 3);
            other.join().unwrap();
        });
    }
}

/// Set once, and waited for.
#[derive(Default)]
struct Flag {
    is_set: Mutex<bool>,
    changed: Condvar,
}

impl Flag {
    fn set(&self) {
        *self.is_set.lock().unwrap() = true;
        self.changed.notify_one();
    }

    fn wait(&self) {
        let mut is_set = self.is_set.lock().unwrap();
        while !*is_set {
            is_set = self.changed.wait(is_set).unwrap();
        }
    }
}

/// As the thread of started calls: a user's waker may wait for another thread's lock.
#[test]
fn a_thread_that_works_between_outcomes_keeps_no_other_from_its_outcome() {
    explore(3, || {
        let model = model(0);
        let has_outcome = Arc::new(Flag::default());
        let shared = Arc::clone(&model.shared);
        let told = Arc::clone(&has_outcome);
        let other = loom::thread::spawn(move || {
            assert_eq!(submit(&shared, 3), 6);
            told.set();
        });
        let mut batch = Batch::new(&model.shared);
        batch.begin(&model.shared, 1);
        batch.begin(&model.shared, 2);
        let mut outcomes = Vec::new();
        batch.collect(&model.shared, Duration::MAX, |_, outcome| {
            outcomes.push(outcome);
        });
        has_outcome.wait();
        while batch.is_open() {
            batch.collect(&model.shared, Duration::MAX, |_, outcome| {
                outcomes.push(outcome);
            });
        }
        outcomes.sort_unstable();
        assert_eq!(outcomes, [2, 4]);
        other.join().unwrap();
    });
}

/// The same, where its first outcome comes while it follows: it has not seen it yet when the leader
/// steps down.
#[test]
fn a_thread_that_has_an_outcome_keeps_no_other_from_its_outcome() {
    explore(1, || {
        let model = model(4);
        let have_outcomes = [(); 2].map(|()| Arc::new(Flag::default()));
        let others = [0, 1].map(|index: usize| {
            let shared = Arc::clone(&model.shared);
            let told = Arc::clone(&have_outcomes[index]);
            loom::thread::spawn(move || {
                submit(&shared, 3);
                told.set();
            })
        });
        let mut batch = Batch::new(&model.shared);
        batch.begin(&model.shared, 1);
        batch.begin(&model.shared, 2);
        let mut outcomes = 0;
        batch.collect(&model.shared, Duration::MAX, |_, _| outcomes += 1);
        have_outcomes.iter().for_each(|outcome| outcome.wait());
        while batch.is_open() {
            batch.collect(&model.shared, Duration::MAX, |_, _| outcomes += 1);
        }
        assert_eq!(outcomes, 2);
        for other in others {
            other.join().unwrap();
        }
    });
}

/// The same, where its work is a request.
#[test]
fn a_thread_that_makes_a_request_between_outcomes_gets_its_outcome() {
    explore(3, || {
        let model = model(0);
        let other = spawn_submit(&model, 5);
        let mut batch = Batch::new(&model.shared);
        batch.begin(&model.shared, 1);
        batch.begin(&model.shared, 2);
        let mut outcomes = Vec::new();
        while batch.is_open() {
            batch.collect(&model.shared, Duration::MAX, |_, outcome| {
                outcomes.push(outcome);
            });
            assert_eq!(submit(&model.shared, 7), 14);
        }
        outcomes.sort_unstable();
        assert_eq!(outcomes, [2, 4]);
        other.join().unwrap();
    });
}

#[test]
fn a_request_of_a_batch_is_sent_before_a_later_post_of_its_thread() {
    explore(3, || {
        let model = model(0);
        let other = spawn_submit(&model, 1);
        let mut batch = Batch::new(&model.shared);
        batch.begin(&model.shared, 7);
        model.shared.post(8);
        batch.collect(&model.shared, Duration::MAX, |_, outcome| {
            assert_eq!(outcome, 14);
        });
        other.join().unwrap();
        let order = model.order.lock().unwrap();
        let own: Vec<u32> = order.iter().copied().filter(|number| *number > 1).collect();
        assert_eq!(own, [7, 8]);
    });
}
