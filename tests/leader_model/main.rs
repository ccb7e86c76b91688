//! Model-checks the Leader/Followers pattern: `net/leader_followers.rs` and `net/follower.rs`,
//! compiled with loom's locks and run in all interleavings of the threads, up
//! to a number of preemptions.
//!
//! The event loop is a toy: a node replies to each request as soon as it was opened, one reply per
//! `run_once`, and without a reply to process the loop sleeps until it is woken. Loom reports a
//! deadlock if a thread never gets its outcome: if all threads wait as followers, or the leader
//! sleeps although the inbox is not empty.

#![expect(
    clippy::unwrap_used,
    reason = "a lock is poisoned only after the model has failed"
)]

#[path = "../../src/net/follower.rs"]
mod follower;
#[path = "../../src/driver/job_queue.rs"]
mod job_queue;
#[path = "../../src/net/leader_followers.rs"]
mod leader_followers;

mod sync;

mod batches;
mod io_thread;
mod jobs;
mod nudges;
mod waits;

use follower::Follower;
use leader_followers::{EventLoop, LeaderFollowers};
use loom::sync::{Condvar, Mutex};
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

/// Wakes a sleeping leader.
#[derive(Default)]
struct Waker {
    is_woken: Mutex<bool>,
    woken: Condvar,
}

impl Waker {
    fn wake(&self) {
        *self.is_woken.lock().unwrap() = true;
        self.woken.notify_one();
    }
}

/// Instead of a number of requests: each request is decided as soon as it is opened, as when all
/// nodes refuse connections.
const AT_ONCE: usize = usize::MAX;

/// The request that makes the event loop panic.
const PANIC: u32 = 13;

/// Replies to each request with its number doubled, the oldest first. The first `gathering`
/// requests get replies only when all of them are open, so the leader must sleep and be woken.
struct Toy {
    waker: Arc<Waker>,
    open: VecDeque<(u32, Arc<Follower<u32>>)>,
    opened: usize,
    gathering: usize,
    /// The requests that were opened or posted and are not written yet.
    output: Vec<u32>,
    /// The requests that were written, in the order in which a node would see them.
    order: Arc<Mutex<Vec<u32>>>,
    is_poisoned: bool,
}

impl EventLoop for Toy {
    type Order = u32;
    type Message = u32;
    type Outcome = u32;

    fn open(&mut self, request: u32, follower: Arc<Follower<u32>>) {
        assert!(
            !self.is_poisoned,
            "no thread uses an event loop that panicked"
        );
        if request == PANIC {
            sync::panic();
        }
        self.opened += 1;
        self.output.push(request);
        if self.gathering == AT_ONCE {
            return follower.deliver(request * 2);
        }
        self.open.push_back((request, follower));
    }

    fn post(&mut self, request: u32) {
        assert!(
            !self.is_poisoned,
            "no thread uses an event loop that panicked"
        );
        self.output.push(request);
    }

    fn flush(&mut self) -> bool {
        self.order.lock().unwrap().append(&mut self.output);
        false
    }

    fn run_once(&mut self, may_sleep: impl FnOnce() -> bool) {
        self.flush();
        let has_reply = self.opened >= self.gathering && !self.open.is_empty();
        if may_sleep() && !has_reply {
            let mut is_woken = self.waker.is_woken.lock().unwrap();
            while !*is_woken {
                is_woken = self.waker.woken.wait(is_woken).unwrap();
            }
            *is_woken = false;
        } else if has_reply {
            if let Some((request, follower)) = self.open.pop_front() {
                follower.deliver(request * 2);
            }
        }
    }

    fn set_poisoned(&mut self) {
        self.is_poisoned = true;
    }

    fn next_follower(&self) -> Option<&Arc<Follower<u32>>> {
        self.open.front().map(|(_, follower)| follower)
    }
}

struct Model {
    shared: Arc<LeaderFollowers<Toy>>,
    order: Arc<Mutex<Vec<u32>>>,
}

/// A model without an I/O thread.
fn model(gathering: usize) -> Model {
    model_of(gathering, false)
}

fn model_of(gathering: usize, has_io_thread: bool) -> Model {
    let waker = Arc::new(Waker::default());
    let order = Arc::new(Mutex::new(Vec::new()));
    let toy = Toy {
        waker: Arc::clone(&waker),
        open: VecDeque::new(),
        opened: 0,
        gathering,
        output: Vec::new(),
        order: Arc::clone(&order),
        is_poisoned: false,
    };
    let wake = Box::new(move || waker.wake());
    Model {
        shared: Arc::new(LeaderFollowers::new(toy, wake, has_io_thread)),
        order,
    }
}

/// Runs `check` in all interleavings with at most this many preemptions. Without a bound, two
/// threads already take minutes, and the mistakes that are possible here show with few preemptions.
fn explore(preemptions: usize, check: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(check);
}

fn submit(shared: &LeaderFollowers<Toy>, number: u32) -> u32 {
    shared
        .submit(number, Duration::MAX)
        .expect("without a limit there is an outcome")
}

fn spawn_submit(model: &Model, number: u32) -> loom::thread::JoinHandle<()> {
    let shared = Arc::clone(&model.shared);
    loom::thread::spawn(move || assert_eq!(submit(&shared, number), number * 2))
}

#[test]
fn two_threads_both_get_their_outcome() {
    explore(3, || {
        let model = model(0);
        let other = spawn_submit(&model, 1);
        assert_eq!(submit(&model.shared, 2), 4);
        other.join().unwrap();
    });
}

#[test]
fn a_sleeping_leader_is_woken_for_a_new_request() {
    explore(3, || {
        let model = model(2);
        let other = spawn_submit(&model, 1);
        assert_eq!(submit(&model.shared, 2), 4);
        other.join().unwrap();
    });
}

#[test]
fn a_leader_does_not_sleep_when_its_round_is_decided_at_once() {
    explore(4, || {
        let model = model(AT_ONCE);
        let other = spawn_submit(&model, 1);
        assert_eq!(submit(&model.shared, 2), 4);
        other.join().unwrap();
    });
}

#[test]
fn three_threads_all_get_their_outcomes() {
    for gathering in [0, 2, 3] {
        explore(2, move || {
            let model = model(gathering);
            let others = [spawn_submit(&model, 1), spawn_submit(&model, 2)];
            assert_eq!(submit(&model.shared, 3), 6);
            others.into_iter().for_each(|other| other.join().unwrap());
        });
    }
}

#[test]
fn requests_that_are_left_for_later_are_sent_in_order() {
    explore(3, || {
        let model = model(0);
        let other = spawn_submit(&model, 1);
        for request in [7, 8] {
            model.shared.post_later(request);
        }
        model.shared.flush();
        other.join().unwrap();
        let order = model.order.lock().unwrap();
        let later: Vec<u32> = order.iter().copied().filter(|it| *it != 1).collect();
        assert_eq!(later, [7, 8]);
    });
}

#[test]
fn a_request_posted_while_another_thread_leads_is_sent() {
    explore(3, || {
        let model = model(0);
        let other = spawn_submit(&model, 1);
        model.shared.post(7);
        other.join().unwrap();
        // Both threads are done: no later thread would empty the inbox.
        assert!(model.order.lock().unwrap().contains(&7));
    });
}

#[test]
fn requests_of_one_thread_are_sent_in_order() {
    explore(4, || {
        let model = model(0);
        let other = spawn_submit(&model, 1);
        // A lock guard is dropped and the lock is acquired again: the removal is sent first.
        model.shared.post(7);
        assert_eq!(submit(&model.shared, 8), 16);
        other.join().unwrap();
        let order = model.order.lock().unwrap();
        let own: Vec<u32> = order.iter().copied().filter(|number| *number > 1).collect();
        assert_eq!(own, [7, 8]);
    });
}

#[test]
fn a_follower_can_be_used_again() {
    explore(2, || {
        let model = model(0);
        let other = spawn_submit(&model, 1);
        assert_eq!(submit(&model.shared, 2), 4);
        assert_eq!(submit(&model.shared, 3), 6);
        other.join().unwrap();
    });
}

/// Submits in a thread of its own. The thread returns whether there was an outcome: there is none
/// only if the event loop panicked.
fn spawn_try_submit(model: &Model, number: u32) -> loom::thread::JoinHandle<bool> {
    let shared = Arc::clone(&model.shared);
    loom::thread::spawn(move || try_submit(&shared, number))
}

fn try_submit(shared: &LeaderFollowers<Toy>, number: u32) -> bool {
    let caught = catch_unwind(AssertUnwindSafe(|| submit(shared, number)));
    sync::recover();
    match caught {
        Ok(outcome) => assert_eq!(outcome, number * 2),
        Err(cause) => {
            let text = cause.downcast_ref::<String>().map(String::as_str);
            let text = text
                .or_else(|| cause.downcast_ref::<&str>().copied())
                .unwrap_or_default();
            assert!(
                text == sync::PLANNED || text.ends_with("panicked"),
                "{text}"
            );
            return false;
        }
    }
    true
}

#[test]
fn a_panic_of_the_event_loop_leaves_no_thread_waiting() {
    for (gathering, others) in [(0, 1), (2, 1), (0, 2), (2, 2)] {
        explore(2, move || {
            let model = model(gathering);
            let others: Vec<_> = (1..=others)
                .map(|number| spawn_try_submit(&model, number))
                .collect();
            assert!(
                !try_submit(&model.shared, PANIC),
                "no thread gets a reply to this request"
            );
            others.into_iter().for_each(|other| {
                other.join().unwrap();
            });
            // Later requests fail as well, and a guard that is dropped does not panic.
            assert!(!try_submit(&model.shared, 3));
            model.shared.post(4);
        });
    }
}
