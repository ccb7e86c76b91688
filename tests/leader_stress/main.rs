//! The Leader/Followers pattern with real threads and locks: `net/leader_followers.rs` over a toy
//! event loop that replies irregularly. tests/leader_model runs all interleavings of a few steps;
//! this runs many thousands of steps in the interleavings that happen.

#[path = "../../src/net/follower.rs"]
#[allow(dead_code, reason = "tests/leader_model nudges threads")]
mod follower;
#[path = "../../src/net/leader_followers.rs"]
#[allow(dead_code, reason = "tests/leader_model nudges threads")]
mod leader_followers;
#[path = "../../src/net/sync.rs"]
mod sync;

use follower::{Batch, Follower};
use leader_followers::{EventLoop, LeaderFollowers};
use std::sync::mpsc;
use std::sync::{Arc, Condvar, Mutex, PoisonError, Weak};
use std::thread;
use std::time::Duration;

/// For the whole test, on a busy machine.
const LIMIT: Duration = Duration::from_secs(120);

const THREADS: u64 = 8;
const PAIRS: u64 = 5_000;

/// Wakes a sleeping leader.
#[derive(Default)]
struct Waker {
    is_woken: Mutex<bool>,
    woken: Condvar,
}

impl Waker {
    fn wake(&self) {
        *self.is_woken.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.woken.notify_one();
    }
}

/// A request: the number of its thread, and its number within that thread.
type Request = (u64, u64);

/// Replies to a request with the number of the last posted request before it of the same thread. It
/// replies a few at a time, sometimes to the newest first, and at other times it has no reply, so
/// the leader sleeps until it is woken.
struct Toy {
    waker: Arc<Waker>,
    open: Vec<(Request, Arc<Follower<u64>>)>,
    posted: [u64; THREADS as usize],
    steps: u64,
}

impl EventLoop for Toy {
    type Order = Request;
    type Message = Request;
    type Outcome = u64;

    fn open(&mut self, request: Request, follower: Arc<Follower<u64>>) {
        let (thread, number) = request;
        assert_eq!(
            self.posted[thread as usize], number,
            "posted requests are sent before later ones"
        );
        self.open.push((request, follower));
    }

    fn post(&mut self, (thread, number): Request) {
        let last = &mut self.posted[thread as usize];
        assert_eq!(
            *last + 1,
            number,
            "posted requests of a thread are sent in order, none is lost"
        );
        *last = number;
    }

    fn flush(&mut self) -> bool {
        false
    }

    fn run_once(&mut self, may_sleep: impl FnOnce() -> bool) {
        self.steps += 1;
        // Every third step finds no reply, as if the node had not sent one yet.
        let has_reply = self.steps % 3 != 0 && !self.open.is_empty();
        if has_reply {
            let index = if self.steps % 2 == 0 {
                0
            } else {
                self.open.len() - 1
            };
            let ((thread, _), follower) = self.open.swap_remove(index);
            return follower.deliver(self.posted[thread as usize]);
        }
        if may_sleep() {
            let is_woken = self
                .waker
                .is_woken
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            // Nodes reply some time later, also without a wake-up.
            let nap = Duration::from_micros(50);
            let woken = self
                .waker
                .woken
                .wait_timeout_while(is_woken, nap, |is_woken| !*is_woken);
            *woken.unwrap_or_else(PoisonError::into_inner).0 = false;
        }
    }

    fn set_poisoned(&mut self) {}

    fn next_follower(&self) -> Option<&Arc<Follower<u64>>> {
        self.open.first().map(|(_, follower)| follower)
    }
}

fn run_thread(shared: &LeaderFollowers<Toy>, thread: u64) {
    for number in 0..PAIRS {
        assert_eq!(
            shared.submit((thread, number), LIMIT),
            Some(number),
            "all earlier requests of the thread were sent"
        );
        shared.post((thread, number + 1));
    }
}

/// Begins several requests at a time, as one thread among many.
fn run_batches(shared: &LeaderFollowers<Toy>, thread: u64) {
    let mut batch = Batch::new(shared);
    let mut number = 0;
    while number < PAIRS {
        let size = 1 + number % 5;
        (0..size).for_each(|_| _ = batch.begin(shared, (thread, number)));
        let mut collected = 0;
        while batch.is_open() {
            let is_any = batch.collect(shared, LIMIT, |_, outcome| {
                assert_eq!(
                    outcome, number,
                    "all earlier requests of the thread were sent"
                );
                collected += 1;
            });
            assert!(is_any, "no request times out");
        }
        assert_eq!(collected, size, "each outcome is collected once");
        // With an I/O thread, this request has no time.
        let hasty = batch.begin(shared, (thread, number));
        if !batch.collect(shared, Duration::ZERO, |_, outcome| {
            assert_eq!(outcome, number);
        }) {
            batch.abandon(hasty);
        }
        shared.post((thread, number + 1));
        number += 1;
    }
}

#[test]
fn requests_of_many_threads_are_sent_in_order() {
    run(false);
}

#[test]
fn requests_of_many_threads_are_sent_in_order_by_an_io_thread() {
    run(true);
}

fn run(has_io_thread: bool) {
    let waker = Arc::new(Waker::default());
    let toy = Toy {
        waker: Arc::clone(&waker),
        open: Vec::new(),
        posted: [0; 8],
        steps: 0,
    };
    let shared = Arc::new(LeaderFollowers::new(
        toy,
        Box::new(move || waker.wake()),
        has_io_thread,
    ));
    let io_thread = has_io_thread.then(|| {
        let shared = Arc::clone(&shared);
        thread::spawn(move || shared.run())
    });
    let (done, all) = mpsc::channel();
    for thread in 0..THREADS {
        let shared = Arc::clone(&shared);
        let done = done.clone();
        thread::spawn(move || {
            // Every fourth thread has several requests at a time.
            if thread % 4 == 0 {
                run_batches(&shared, thread);
            } else {
                run_thread(&shared, thread);
            }
            done.send(thread).expect("the test waits for it");
        });
    }
    drop(done);
    for _ in 0..THREADS {
        // A thread that panics drops its sender, and the other threads panic after it.
        all.recv_timeout(LIMIT)
            .expect("no thread waits for ever, and none panics");
    }
    if let Some(io_thread) = io_thread {
        shared.close();
        io_thread.join().expect("it ends when it is closed");
    }
}

/// Each message leads to another until something is written, as where thousands of threads whose
/// rounds are late undo them and try again.
struct Echo {
    shared: Weak<LeaderFollowers<Self>>,
    messages: u32,
    is_written: bool,
    open: Option<Arc<Follower<u64>>>,
}

impl EventLoop for Echo {
    type Order = ();
    type Message = ();
    type Outcome = u64;

    fn open(&mut self, (): (), follower: Arc<Follower<u64>>) {
        self.open = Some(follower);
    }

    fn post(&mut self, (): ()) {
        self.messages += 1;
        assert!(self.messages < 100, "nothing is written");
        let shared = self.shared.upgrade().filter(|_| !self.is_written);
        shared.iter().for_each(|shared| shared.post_later(()));
    }

    fn flush(&mut self) -> bool {
        self.is_written = true;
        false
    }

    fn run_once(&mut self, _: impl FnOnce() -> bool) {
        self.flush();
        self.open.iter().for_each(|follower| follower.deliver(7));
        self.open = None;
    }

    fn set_poisoned(&mut self) {}

    fn next_follower(&self) -> Option<&Arc<Follower<u64>>> {
        self.open.as_ref()
    }
}

#[test]
fn a_leader_writes_although_each_message_leads_to_another() {
    let shared = Arc::new_cyclic(|shared| {
        let echo = Echo {
            shared: Weak::clone(shared),
            messages: 0,
            is_written: false,
            open: None,
        };
        LeaderFollowers::new(echo, Box::new(|| ()), false)
    });
    shared.post_later(());
    assert_eq!(shared.submit((), LIMIT), Some(7));
}
