//! Threads that wait for a reservation share the event loop with threads that ask the nodes: a wait
//! is a round that gets no reply, and ends with a push from a node or by a request to end it.
//!
//! Loom reports a deadlock if a push wakes nobody: if the thread that led has left, and no thread
//! that waits has become the leader.

use super::explore;
use super::follower::{Batch, Follower};
use super::leader_followers::{EventLoop, LeaderFollowers};
use loom::sync::{Condvar, Mutex};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

/// The request that waits for the push.
const WAIT: u32 = 100;
/// The request that ends all waits.
const END_WAITS: u32 = 101;

/// What wakes a leader that sleeps: another thread, or a push.
#[derive(Default)]
struct Events {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    is_woken: bool,
    is_pushed: bool,
}

impl Events {
    fn push(&self) {
        self.state.lock().unwrap().is_pushed = true;
        self.changed.notify_one();
    }

    fn wake(&self) {
        self.state.lock().unwrap().is_woken = true;
        self.changed.notify_one();
    }
}

/// Replies to each request but [`WAIT`], one reply per turn, and hands a push to all waits.
struct Nodes {
    events: Arc<Events>,
    open: VecDeque<(u32, Arc<Follower<u32>>)>,
    waits: Vec<Arc<Follower<u32>>>,
    are_waits_over: bool,
}

impl Nodes {
    fn end_waits(&mut self) {
        self.waits
            .drain(..)
            .for_each(|follower| follower.deliver(WAIT));
    }
}

impl EventLoop for Nodes {
    type Order = u32;
    type Message = u32;
    type Outcome = u32;

    fn open(&mut self, request: u32, follower: Arc<Follower<u32>>) {
        if request == WAIT {
            self.waits.push(follower);
        } else {
            self.open.push_back((request, follower));
        }
        if self.are_waits_over {
            self.end_waits();
        }
    }

    fn post(&mut self, request: u32) {
        if request == END_WAITS {
            self.are_waits_over = true;
            self.end_waits();
        }
    }

    fn flush(&mut self) -> bool {
        false
    }

    fn run_once(&mut self, may_sleep: impl FnOnce() -> bool) {
        let is_to_sleep = may_sleep() && self.open.is_empty();
        let mut state = self.events.state.lock().unwrap();
        // A push is there until it is read, as bytes on a socket are.
        while is_to_sleep && !state.is_woken && (!state.is_pushed || self.waits.is_empty()) {
            state = self.events.changed.wait(state).unwrap();
        }
        state.is_woken = false;
        let is_pushed = state.is_pushed;
        drop(state);
        // As the rounds keep it for a waiter that is about to wait.
        if is_pushed {
            self.end_waits();
        }
        if let Some((request, follower)) = self.open.pop_front() {
            follower.deliver(request);
        }
    }

    fn set_poisoned(&mut self) {}

    fn next_follower(&self) -> Option<&Arc<Follower<u32>>> {
        self.open
            .front()
            .map(|(_, follower)| follower)
            .or(self.waits.first())
    }
}

type Shared = Arc<LeaderFollowers<Nodes>>;

fn model() -> (Shared, Arc<Events>) {
    let events = Arc::new(Events::default());
    let open = VecDeque::new();
    let waits = Vec::new();
    let nodes = Nodes {
        events: Arc::clone(&events),
        open,
        waits,
        are_waits_over: false,
    };
    let waker = Arc::clone(&events);
    let wake = Box::new(move || waker.wake());
    (Arc::new(LeaderFollowers::new(nodes, wake, false)), events)
}

fn submit(shared: &Shared, request: u32) {
    let outcome = shared.submit(request, Duration::MAX);
    assert_eq!(outcome, Some(request));
}

fn spawn(shared: &Shared, requests: &'static [u32]) -> loom::thread::JoinHandle<()> {
    let shared = Arc::clone(shared);
    loom::thread::spawn(move || {
        requests
            .iter()
            .for_each(|request| submit(&shared, *request));
    })
}

#[test]
fn a_push_reaches_a_waiter_whoever_leads_meanwhile() {
    explore(3, || {
        let (shared, events) = model();
        let others = [spawn(&shared, &[WAIT]), spawn(&shared, &[1])];
        events.push();
        others.into_iter().for_each(|other| other.join().unwrap());
    });
}

#[test]
fn a_waiter_that_leads_replies_to_others_and_hands_the_lead_on() {
    explore(2, || {
        let (shared, events) = model();
        let waiter = spawn(&shared, &[WAIT]);
        submit(&shared, 1);
        submit(&shared, 2);
        events.push();
        waiter.join().unwrap();
    });
}

#[test]
fn a_push_wakes_all_waiters_while_a_thread_asks_the_nodes() {
    explore(2, || {
        let (shared, events) = model();
        let waiters = [spawn(&shared, &[WAIT]), spawn(&shared, &[WAIT])];
        submit(&shared, 1);
        events.push();
        waiters
            .into_iter()
            .for_each(|waiter| waiter.join().unwrap());
    });
}

#[test]
fn cancelled_waits_end_whether_they_began_before_or_after() {
    explore(3, || {
        let (shared, _) = model();
        let waiter = spawn(&shared, &[WAIT]);
        shared.post(END_WAITS);
        waiter.join().unwrap();
    });
}

#[test]
fn a_thread_is_nudged_to_end_its_wait_whoever_leads_and_leaves_meanwhile() {
    explore(2, || {
        let (shared, _) = model();
        let mut batch = Batch::new(&shared);
        let waits_at = Arc::clone(batch.waits_at());
        let is_told = Arc::new(Mutex::new(false));
        let owner = {
            let shared = Arc::clone(&shared);
            let is_told = Arc::clone(&is_told);
            loom::thread::spawn(move || {
                batch.begin(&shared, WAIT);
                while batch.is_open() {
                    if *is_told.lock().unwrap() {
                        shared.post(END_WAITS);
                    }
                    batch.collect(&shared, Duration::MAX, |_, outcome| {
                        assert_eq!(outcome, WAIT);
                    });
                }
            })
        };
        let other = spawn(&shared, &[1]);
        *is_told.lock().unwrap() = true;
        shared.nudge(&waits_at);
        other.join().unwrap();
        owner.join().unwrap();
    });
}
