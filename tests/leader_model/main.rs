//! Model-checks who drives: `net/leader_followers.rs` and `net/follower.rs`, compiled against
//! loom's locks and run through every order in which threads can meet there.
//!
//! The driver is a toy: a node answers each request as soon as it was opened, one answer a step,
//! and a driver that has no answer to take in sleeps until it is woken. What loom would find is a
//! thread that is never served: everyone parked, or a driver asleep beside a full inbox, is a
//! deadlock to it.

#![expect(
    clippy::unwrap_used,
    reason = "a lock is poisoned only where the model has failed already"
)]

#[path = "../../src/net/batch.rs"]
mod batch;
#[path = "../../src/net/drive.rs"]
mod drive;
#[path = "../../src/net/follower.rs"]
mod follower;
#[path = "../../src/net/leader.rs"]
mod leader;
#[path = "../../src/net/leader_followers.rs"]
mod leader_followers;

mod sync;

mod inbox;

mod batches;
mod served;

use follower::Follower;
use leader_followers::{Drive, LeaderFollowers, Wake};
use loom::sync::{Condvar, Mutex};
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

/// What a sleeping driver waits for.
#[derive(Default)]
struct Alarm {
    is_rung: Mutex<bool>,
    rung: Condvar,
}

impl Wake for Arc<Alarm> {
    fn wake(&self) {
        *self.is_rung.lock().unwrap() = true;
        self.rung.notify_one();
    }
}

/// In the place of a number of requests: all are decided as soon as they are opened, as when every
/// node refuses connections.
const AT_ONCE: usize = usize::MAX;

/// The request that makes the driver panic.
const PANIC: u32 = 13;

/// Answers each request with its number doubled, the oldest first. The first `gathering` requests
/// are answered only when all of them have been opened, so that whoever drives must sleep and be
/// woken.
struct Toy {
    alarm: Arc<Alarm>,
    open: VecDeque<(u32, Arc<Follower<u32>>)>,
    opened: usize,
    gathering: usize,
    /// What was opened and posted, in the order in which a node would see it.
    order: Arc<Mutex<Vec<u32>>>,
    is_abandoned: bool,
}

impl Drive for Toy {
    type Request = u32;
    type Outcome = u32;

    fn look(&mut self) {}

    fn open(&mut self, request: u32, seat: Arc<Follower<u32>>) {
        assert!(!self.is_abandoned, "nobody takes a driver that has panicked");
        if request == PANIC {
            sync::panic();
        }
        self.opened += 1;
        self.order.lock().unwrap().push(request);
        if self.gathering == AT_ONCE {
            return seat.hand(request * 2);
        }
        self.open.push_back((request, seat));
    }

    fn post(&mut self, request: u32) {
        assert!(!self.is_abandoned, "nobody takes a driver that has panicked");
        self.order.lock().unwrap().push(request);
    }

    fn flush(&mut self) -> bool {
        false
    }

    fn step(&mut self, may_sleep: impl FnOnce() -> bool) {
        let has_answer = self.opened >= self.gathering && !self.open.is_empty();
        if may_sleep() && !has_answer {
            let mut is_rung = self.alarm.is_rung.lock().unwrap();
            while !*is_rung {
                is_rung = self.alarm.rung.wait(is_rung).unwrap();
            }
            *is_rung = false;
        } else if has_answer {
            if let Some((request, seat)) = self.open.pop_front() {
                seat.hand(request * 2);
            }
        }
    }

    fn abandon(&mut self) {
        self.is_abandoned = true;
    }

    fn waiter(&self) -> Option<&Arc<Follower<u32>>> {
        self.open.front().map(|(_, seat)| seat)
    }
}

struct Model {
    turn: Arc<LeaderFollowers<Toy, Arc<Alarm>>>,
    order: Arc<Mutex<Vec<u32>>>,
}

/// Without a thread that does nothing but drive.
fn model(gathering: usize) -> Model {
    model_of(gathering, false)
}

fn model_of(gathering: usize, is_served: bool) -> Model {
    let (alarm, order) = (Arc::new(Alarm::default()), Arc::new(Mutex::new(Vec::new())));
    let toy = Toy {
        alarm: Arc::clone(&alarm),
        open: VecDeque::new(),
        opened: 0,
        gathering,
        order: Arc::clone(&order),
        is_abandoned: false,
    };
    Model { turn: Arc::new(LeaderFollowers::new(toy, alarm, is_served)), order }
}

/// Runs `check` in every order of at most this many preemptions. Without a bound two threads alone
/// take minutes, and what goes wrong here goes wrong with few.
fn explore(preemptions: usize, check: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(check);
}

fn submit(turn: &LeaderFollowers<Toy, Arc<Alarm>>, number: u32) -> u32 {
    turn.submit(number, Duration::MAX).expect("it is waited for")
}

fn submits(model: &Model, number: u32) -> loom::thread::JoinHandle<()> {
    let turn = Arc::clone(&model.turn);
    loom::thread::spawn(move || assert_eq!(submit(&turn, number), number * 2))
}

#[test]
fn two_threads_are_both_served() {
    explore(3, || {
        let model = model(0);
        let other = submits(&model, 1);
        assert_eq!(submit(&model.turn, 2), 4);
        other.join().unwrap();
    });
}

#[test]
fn a_sleeping_driver_is_woken_for_the_second_request() {
    explore(3, || {
        let model = model(2);
        let other = submits(&model, 1);
        assert_eq!(submit(&model.turn, 2), 4);
        other.join().unwrap();
    });
}

#[test]
fn what_is_decided_at_once_is_not_waited_for() {
    explore(4, || {
        let model = model(AT_ONCE);
        let other = submits(&model, 1);
        assert_eq!(submit(&model.turn, 2), 4);
        other.join().unwrap();
    });
}

#[test]
fn three_threads_are_all_served() {
    for gathering in [0, 2, 3] {
        explore(2, move || {
            let model = model(gathering);
            let others = [submits(&model, 1), submits(&model, 2)];
            assert_eq!(submit(&model.turn, 3), 6);
            others.into_iter().for_each(|other| other.join().unwrap());
        });
    }
}

#[test]
fn what_is_posted_while_another_drives_is_not_left_lying() {
    explore(3, || {
        let model = model(0);
        let other = submits(&model, 1);
        model.turn.post(7);
        other.join().unwrap();
        // Both threads are done, and nobody will come again.
        assert!(model.order.lock().unwrap().contains(&7));
    });
}

#[test]
fn what_one_thread_leaves_is_sent_in_its_order() {
    explore(4, || {
        let model = model(0);
        let other = submits(&model, 1);
        // A guard is dropped, and the lock taken again: the removal must not be overtaken.
        model.turn.post(7);
        assert_eq!(submit(&model.turn, 8), 16);
        other.join().unwrap();
        let order = model.order.lock().unwrap();
        let own: Vec<u32> = order.iter().copied().filter(|number| *number > 1).collect();
        assert_eq!(own, [7, 8]);
    });
}

#[test]
fn one_thread_after_another_uses_the_same_seat() {
    explore(2, || {
        let model = model(0);
        let other = submits(&model, 1);
        assert_eq!(submit(&model.turn, 2), 4);
        assert_eq!(submit(&model.turn, 3), 6);
        other.join().unwrap();
    });
}

/// Submits in a thread of its own, and says whether there was an outcome. There is none only if the
/// driver panicked.
fn tries(model: &Model, number: u32) -> loom::thread::JoinHandle<bool> {
    let turn = Arc::clone(&model.turn);
    loom::thread::spawn(move || try_submit(&turn, number))
}

fn try_submit(turn: &LeaderFollowers<Toy, Arc<Alarm>>, number: u32) -> bool {
    let caught = catch_unwind(AssertUnwindSafe(|| submit(turn, number)));
    sync::recover();
    match caught {
        Ok(outcome) => assert_eq!(outcome, number * 2),
        Err(cause) => {
            let text = cause.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| cause.downcast_ref::<&str>().copied()).unwrap_or_default();
            assert!(text == sync::PLANNED || text.ends_with("panicked"), "{text}");
            return false;
        }
    }
    true
}

#[test]
fn a_driver_that_panics_leaves_nobody_waiting() {
    for (gathering, others) in [(0, 1), (2, 1), (0, 2), (2, 2)] {
        explore(2, move || {
            let model = model(gathering);
            let others: Vec<_> = (1..=others).map(|number| tries(&model, number)).collect();
            assert!(!try_submit(&model.turn, PANIC), "whoever drives, this cannot be answered");
            others.into_iter().for_each(|other| {
                other.join().unwrap();
            });
            // Nor is it for those who come later, and what is dropped does not panic.
            assert!(!try_submit(&model.turn, 3));
            model.turn.post(4);
        });
    }
}
