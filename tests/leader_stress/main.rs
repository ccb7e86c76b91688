//! Who drives, with real threads and the locks that are in use: `net/leader_followers.rs` over a
//! toy that answers at random moments. The model beside this goes through every order of a few
//! steps; this goes through many thousands of steps in whatever order the machine finds.

#[path = "../../src/net/batch.rs"]
mod batch;
#[path = "../../src/net/drive.rs"]
mod drive;
#[path = "../../src/net/follower.rs"]
mod follower;
#[path = "../../src/net/inbox.rs"]
mod inbox;
#[path = "../../src/net/leader.rs"]
mod leader;
#[path = "../../src/net/leader_followers.rs"]
mod leader_followers;
#[path = "../../src/net/sync.rs"]
mod sync;

use batch::Batch;
use follower::Follower;
use leader_followers::{Drive, LeaderFollowers, Wake};
use std::sync::mpsc;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// For all of it, on a machine that is busy with other things.
const LIMIT: Duration = Duration::from_secs(120);

const THREADS: u64 = 8;
const PAIRS: u64 = 5_000;

/// What a sleeping driver waits for.
#[derive(Default)]
struct Alarm {
    is_rung: Mutex<bool>,
    rung: Condvar,
}

impl Wake for Arc<Alarm> {
    fn wake(&self) {
        *self.is_rung.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.rung.notify_one();
    }
}

/// A request: whose it is, and which of theirs.
type Request = (u64, u64);

/// Answers a request with the number of the last removal before it from the same thread. It answers
/// a few at a time, the newest first now and then, and has nothing to do at other times, so that
/// its driver sleeps until it is woken.
struct Toy {
    alarm: Arc<Alarm>,
    open: Vec<(Request, Arc<Follower<u64>>)>,
    posted: [u64; THREADS as usize],
    steps: u64,
}

impl Drive for Toy {
    type Request = Request;
    type Outcome = u64;

    fn look(&mut self) {}

    fn open(&mut self, request: Request, seat: Arc<Follower<u64>>) {
        let (thread, number) = request;
        assert_eq!(self.posted[thread as usize], number, "what was left before is sent before");
        self.open.push((request, seat));
    }

    fn post(&mut self, (thread, number): Request) {
        let last = &mut self.posted[thread as usize];
        assert_eq!(*last + 1, number, "what a thread leaves comes in its order, and all of it");
        *last = number;
    }

    fn flush(&mut self) -> bool {
        false
    }

    fn step(&mut self, may_sleep: impl FnOnce() -> bool) {
        self.steps += 1;
        // Every third step finds no answer, as if a node had yet to send one.
        let has_answer = self.steps % 3 != 0 && !self.open.is_empty();
        if has_answer {
            let index = if self.steps % 2 == 0 { 0 } else { self.open.len() - 1 };
            let ((thread, _), seat) = self.open.swap_remove(index);
            return seat.hand(self.posted[thread as usize]);
        }
        if may_sleep() {
            let is_rung = self.alarm.is_rung.lock().unwrap_or_else(PoisonError::into_inner);
            // Nodes answer by and by, even if nobody else comes.
            let nap = Duration::from_micros(50);
            let woken = self.alarm.rung.wait_timeout_while(is_rung, nap, |is_rung| !*is_rung);
            *woken.unwrap_or_else(PoisonError::into_inner).0 = false;
        }
    }

    fn abandon(&mut self) {}

    fn waiter(&self) -> Option<&Arc<Follower<u64>>> {
        self.open.first().map(|(_, seat)| seat)
    }
}

fn run_thread(turn: &LeaderFollowers<Toy, Arc<Alarm>>, thread: u64) {
    for number in 0..PAIRS {
        assert_eq!(
            turn.submit((thread, number), LIMIT),
            Some(number),
            "all that was left before is done"
        );
        turn.post((thread, number + 1));
    }
}

/// Leaves several requests at a time, as a thread among many.
fn run_batches(turn: &LeaderFollowers<Toy, Arc<Alarm>>, thread: u64) {
    let mut batch = Batch::new(turn);
    let mut number = 0;
    while number < PAIRS {
        let size = 1 + number % 5;
        (0..size).for_each(|_| _ = batch.begin(turn, (thread, number)));
        let mut told = 0;
        while batch.is_open() {
            let is_any = batch.collect(turn, LIMIT, |_, outcome| {
                assert_eq!(outcome, number, "all that was left before is done");
                told += 1;
            });
            assert!(is_any, "nobody gives up");
        }
        assert_eq!(told, size, "each is told of once");
        // One for which there is no time, where a thread of its own drives.
        let left = batch.begin(turn, (thread, number));
        if !batch.collect(turn, Duration::ZERO, |_, outcome| assert_eq!(outcome, number)) {
            batch.abandon(left);
        }
        turn.post((thread, number + 1));
        number += 1;
    }
}

#[test]
fn many_threads_are_all_served_in_their_order() {
    run(false);
}

#[test]
fn many_threads_are_all_served_in_their_order_by_a_thread_that_does_nothing_else() {
    run(true);
}

fn run(is_served: bool) {
    let alarm = Arc::new(Alarm::default());
    let toy = Toy { alarm: Arc::clone(&alarm), open: Vec::new(), posted: [0; 8], steps: 0 };
    let turn = Arc::new(LeaderFollowers::new(toy, alarm, is_served));
    let server = is_served.then(|| {
        let turn = Arc::clone(&turn);
        thread::spawn(move || turn.serve())
    });
    let (done, all) = mpsc::channel();
    for thread in 0..THREADS {
        let (turn, done) = (Arc::clone(&turn), done.clone());
        thread::spawn(move || {
            // Every fourth leaves several requests at a time.
            if thread % 4 == 0 {
                run_batches(&turn, thread);
            } else {
                run_thread(&turn, thread);
            }
            done.send(thread).expect("somebody waits for it");
        });
    }
    drop(done);
    for _ in 0..THREADS {
        // A thread that panics takes its sender with it, and so do those that panic after it.
        all.recv_timeout(LIMIT).expect("no thread is left waiting, and none panics");
    }
    if let Some(server) = server {
        turn.close();
        server.join().expect("it ends when it is told to");
    }
}
