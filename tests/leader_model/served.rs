//! A thread that does nothing but drive: it serves everybody, ends when it is told to, and whoever
//! does not wait for it to the end gets nobody else's outcome.

use super::batches::batch_of_two;
use super::*;
use crate::batch::Batch;

/// A model with such a thread.
fn served(gathering: usize) -> (Model, loom::thread::JoinHandle<()>) {
    let model = model_of(gathering, true);
    let turn = Arc::clone(&model.turn);
    (model, loom::thread::spawn(move || turn.serve()))
}

#[test]
fn two_threads_are_served_by_a_third() {
    for gathering in [0, 2, AT_ONCE] {
        explore(2, move || {
            let (model, server) = served(gathering);
            let other = submits(&model, 1);
            assert_eq!(submit(&model.turn, 2), 4);
            other.join().unwrap();
            model.turn.close();
            server.join().unwrap();
        });
    }
}

#[test]
fn requests_of_one_thread_are_all_served_by_another() {
    explore(2, || {
        let (model, server) = served(0);
        batch_of_two(&model.turn, 3);
        model.turn.close();
        server.join().unwrap();
    });
}

#[test]
fn what_was_left_before_it_ends_is_sent_in_its_order() {
    explore(4, || {
        let (model, server) = served(0);
        model.turn.post(7);
        assert_eq!(submit(&model.turn, 8), 16);
        model.turn.post(9);
        model.turn.close();
        server.join().unwrap();
        assert_eq!(*model.order.lock().unwrap(), [7, 8, 9]);
    });
}

#[test]
fn who_leaves_early_never_gets_the_outcome_of_another_request() {
    explore(3, || {
        let (model, server) = served(0);
        let early = model.turn.submit(1, Duration::ZERO);
        assert!(matches!(early, None | Some(2)));
        assert_eq!(submit(&model.turn, 2), 4);
        model.turn.close();
        server.join().unwrap();
        assert_eq!(*model.order.lock().unwrap(), [1, 2], "what was left is sent all the same");
    });
}

#[test]
fn a_batch_that_is_left_early_is_told_of_once_and_the_next_gets_its_own() {
    explore(2, || {
        let (model, server) = served(0);
        let mut batch = Batch::new(&model.turn);
        batch.begin(&model.turn, 1);
        let mut told = Vec::new();
        if batch.collect(&model.turn, Duration::ZERO, |_, outcome| told.push(outcome)) {
            assert_eq!(told, [2]);
        } else {
            assert!(told.is_empty());
            batch.abandon(0);
        }
        assert!(!batch.is_open());
        assert_eq!(batch.begin(&model.turn, 3), 0);
        assert!(batch.collect(&model.turn, Duration::MAX, |index, outcome| {
            assert_eq!((index, outcome), (0, 6));
        }));
        assert!(!batch.is_open());
        model.turn.close();
        server.join().unwrap();
    });
}

#[test]
fn no_caller_drives_where_a_thread_does() {
    explore(2, || {
        // Nobody serves: whoever drove by itself would get an outcome.
        let model = model_of(0, true);
        assert_eq!(model.turn.submit(1, Duration::ZERO), None);
        model.turn.post(2);
        assert!(model.order.lock().unwrap().is_empty());
    });
}
