//! An I/O thread: it leads for all callers and ends when it is closed, and a caller that gives up
//! waiting never gets the outcome of another request.

use super::batches::batch_of_two;
use super::*;
use crate::follower::Batch;

/// A model with an I/O thread.
fn model_with_io_thread(gathering: usize) -> (Model, loom::thread::JoinHandle<()>) {
    let model = model_of(gathering, true);
    let shared = Arc::clone(&model.shared);
    (model, loom::thread::spawn(move || shared.run()))
}

#[test]
fn callers_get_their_outcomes_from_the_io_thread() {
    for gathering in [0, 2, AT_ONCE] {
        explore(2, move || {
            let (model, io_thread) = model_with_io_thread(gathering);
            let other = spawn_submit(&model, 1);
            assert_eq!(submit(&model.shared, 2), 4);
            other.join().unwrap();
            model.shared.close();
            io_thread.join().unwrap();
        });
    }
}

#[test]
fn a_batch_gets_all_outcomes_from_the_io_thread() {
    explore(2, || {
        let (model, io_thread) = model_with_io_thread(0);
        batch_of_two(&model.shared, 3);
        model.shared.close();
        io_thread.join().unwrap();
    });
}

#[test]
fn requests_before_the_close_are_sent_in_order() {
    explore(4, || {
        let (model, io_thread) = model_with_io_thread(0);
        model.shared.post(7);
        assert_eq!(submit(&model.shared, 8), 16);
        model.shared.post(9);
        model.shared.close();
        io_thread.join().unwrap();
        assert_eq!(*model.order.lock().unwrap(), [7, 8, 9]);
    });
}

#[test]
fn a_caller_that_gave_up_never_gets_the_outcome_of_another_request() {
    explore(3, || {
        let (model, io_thread) = model_with_io_thread(0);
        let early = model.shared.submit(1, Duration::ZERO);
        assert!(matches!(early, None | Some(2)));
        assert_eq!(submit(&model.shared, 2), 4);
        model.shared.close();
        io_thread.join().unwrap();
        assert_eq!(
            *model.order.lock().unwrap(),
            [1, 2],
            "a request is sent although its caller gave up"
        );
    });
}

#[test]
fn a_number_of_an_abandoned_request_gets_only_the_outcome_of_its_next_request() {
    explore(2, || {
        let (model, io_thread) = model_with_io_thread(0);
        let mut batch = Batch::new(&model.shared);
        batch.begin(&model.shared, 1);
        let mut outcomes = Vec::new();
        if batch.collect(&model.shared, Duration::ZERO, |_, outcome| {
            outcomes.push(outcome);
        }) {
            assert_eq!(outcomes, [2]);
        } else {
            assert!(outcomes.is_empty());
            batch.abandon(0);
        }
        assert!(!batch.is_open());
        assert_eq!(batch.begin(&model.shared, 3), 0);
        assert!(
            batch.collect(&model.shared, Duration::MAX, |index, outcome| {
                assert_eq!((index, outcome), (0, 6));
            })
        );
        assert!(!batch.is_open());
        model.shared.close();
        io_thread.join().unwrap();
    });
}

#[test]
fn callers_never_lead_with_an_io_thread() {
    explore(2, || {
        // The I/O thread does not run: a caller gets an outcome only if it leads.
        let model = model_of(0, true);
        assert_eq!(model.shared.submit(1, Duration::ZERO), None);
        model.shared.post(2);
        assert!(model.order.lock().unwrap().is_empty());
    });
}
