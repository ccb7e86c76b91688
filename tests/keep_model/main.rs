//! Model-checks the lock that a guard and the watchdog use: `watchdog/guarded_lock.rs`, compiled
//! against loom's locks and run through every order of extension, release, drop and loss.
//!
//! The nodes are a list of the requests that were sent to them. Time is a number that one of the
//! threads sets forward, so each thread may have read the clock long before it acts on that.

#![expect(
    clippy::unwrap_used,
    reason = "a lock is poisoned only where the model has failed already"
)]

#[path = "../../src/watchdog/guarded_lock.rs"]
#[allow(dead_code, reason = "the model has no schedule")]
mod guarded_lock;

mod losses;
mod sync;

/// The names that `guarded_lock` imports from the crate.
use redlatch_protocol::engine;

mod clock {
    pub(crate) use redlatch_protocol::time::Time;
}

mod error {
    pub(crate) use redlatch::LossReason;
}

use clock::Time;
use engine::{
    Acquire, Acquired, Drift, Entropy, Extended, Extension, HeldLock, Input, Node, NodeSet, Rules,
    Step, Tally, Ttl, Vote, Votes, Wait,
};
use error::LossReason;
use guarded_lock::{GuardedLock, HoldStatus};
use loom::sync::Mutex;
use loom::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use loom::thread;
use std::sync::Arc;
use std::time::Duration;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sent {
    Extension,
    Release,
}

/// A lock of a second that was requested at 0, with its nodes, its clock and its callbacks.
struct World {
    held: GuardedLock,
    nodes: Mutex<Vec<Sent>>,
    millis: AtomicU64,
    calls: Arc<AtomicUsize>,
}

/// When the validity ends if no extension is confirmed.
const END: u64 = 988;

/// A time at which the lock is extended.
const EXTENSION: u64 = 330;

fn ttl(millis: u64) -> Ttl {
    Ttl::from_duration(Duration::from_millis(millis)).unwrap()
}

fn at(millis: u64) -> Time {
    Time::from_millis(millis)
}

/// A lock that one node granted.
fn held_lock() -> HeldLock {
    let rules = Arc::new(Rules::new(1, Drift::from_factor(0.01).unwrap()));
    let mut acquire = Acquire::new(rules, Arc::from(*b"key"), ttl(1_000), Wait::No);
    assert!(matches!(acquire.poll(), Step::Pause(_)));
    acquire.handle(
        at(0),
        Input::Attempt(Entropy::from_bytes([7; Entropy::LEN])),
    );
    assert!(matches!(acquire.poll(), Step::Send(_)));
    let mut votes = Votes::new(Tally::new(1));
    assert!(votes.tally.cast(Node::new(0), Vote::Granted));
    votes.sent = NodeSet::all(1);
    acquire.handle(at(1), Input::Votes(votes));
    let Step::Done(Acquired::Held(held)) = acquire.poll() else {
        panic!("it was granted")
    };
    assert_eq!(held.valid_until, at(END));
    held
}

impl World {
    fn new() -> Arc<Self> {
        let calls = Arc::new(AtomicUsize::new(0));
        let held = GuardedLock::new(held_lock());
        let counter = Arc::clone(&calls);
        let count_call = move |_| _ = counter.fetch_add(1, Ordering::SeqCst);
        assert!(
            held.on_lost(0, Box::new(count_call)),
            "the notifier must check it for the first callback"
        );
        let millis = AtomicU64::new(EXTENSION);
        Arc::new(Self {
            held,
            nodes: Mutex::new(Vec::new()),
            millis,
            calls,
        })
    }

    fn now(&self) -> Time {
        at(self.millis.load(Ordering::SeqCst))
    }

    fn send(&self, sent: Sent) {
        self.nodes.lock().unwrap().push(sent);
    }

    /// The keep-alive loop's work for a lock that is due: an extension that the nodes confirm.
    /// Returns the time of their answer, if the request was sent.
    fn extend(&self) -> Option<Time> {
        let now = self.now();
        let mut extended = None;
        let begun = self.held.begin_extension(now, ttl(3_000), |held| {
            self.send(Sent::Extension);
            extended = Some(held);
            true
        });
        let mut held = begun.ok().and(extended)?;
        held.valid_until = now.after(Duration::from_millis(2_968));
        held.ttl_longest = ttl(3_000);
        let answered = self.now();
        _ = self
            .held
            .finish_extension(answered, Extended::Confirmed(held));
        Some(answered)
    }

    /// What the notifier does when the lock is due in its schedule, or when it is notified.
    fn check(&self) {
        if let HoldStatus::Lost(lost, callbacks) = self.held.take_status(self.now()) {
            callbacks.into_iter().for_each(|callback| callback(lost));
        }
    }

    /// How a release, a drop and a handoff begin, and the release itself.
    fn give_up(&self) -> HeldLock {
        let held = self.held.close(self.now(), NodeSet::all(5));
        self.send(Sent::Release);
        held
    }

    fn calls(&self) -> usize {
        self.calls.load(Ordering::SeqCst)
    }
}

/// Runs `check` in every order there is.
fn explore(check: impl Fn() + Sync + Send + 'static) {
    loom::model::Builder::new().check(check);
}

fn spawn<T: 'static>(
    world: &Arc<World>,
    run: impl FnOnce(&World) -> T + 'static,
) -> thread::JoinHandle<T> {
    let world = Arc::clone(world);
    thread::spawn(move || run(&world))
}

#[test]
fn no_extension_comes_after_the_release() {
    explore(|| {
        let world = World::new();
        let watchdog = spawn(&world, |world| {
            world.extend();
            world.extend();
        });
        let held = world.give_up();
        let nodes = world.nodes.lock().unwrap().clone();
        watchdog.join().unwrap();
        let after = world.nodes.lock().unwrap().clone();
        assert_eq!(nodes, after, "nothing is sent after the release");
        assert_eq!(after.last(), Some(&Sent::Release));
        if after.len() > 1 {
            assert_eq!(
                held.ttl_longest,
                ttl(3_000),
                "the release knows how long the key may live"
            );
            // Either the extension has finished and says where the key is, or it may be anywhere.
            let is_settled = held.valid_until > at(END);
            assert!(is_settled || held.nodes == NodeSet::all(5));
        }
        world.millis.store(60_000, Ordering::SeqCst);
        world.check();
        assert_eq!(world.calls(), 0, "it was released before it was lost");
    });
}

#[test]
fn a_lock_that_a_thread_saw_lost_does_not_come_back() {
    explore(|| {
        let world = World::new();
        let watchdog = spawn(&world, World::extend);
        let holder = spawn(&world, |world| {
            world.millis.store(END, Ordering::SeqCst);
            world.held.check(world.now())
        });
        let answered = watchdog.join().unwrap();
        let seen = holder.join().unwrap();
        let stands = world.held.check(world.now());
        assert_eq!(seen.is_err(), stands.is_err());
        let in_time = answered.is_some_and(|answered| answered < at(END));
        assert!(
            in_time || stands.is_err(),
            "an answer that comes too late brings nothing back"
        );
        world.check();
        world.check();
        assert_eq!(
            world.calls(),
            usize::from(stands.is_err()),
            "once, if it was lost"
        );
        assert_eq!(stands.unwrap_or(at(END)) > at(END), stands.is_ok());
    });
}

#[test]
fn a_callback_is_called_once_or_the_lock_was_released_before() {
    explore(|| {
        let world = World::new();
        let clock = spawn(&world, |world| world.millis.store(END, Ordering::SeqCst));
        let watchdog = spawn(&world, |world| {
            world.check();
            world.extend();
            world.check();
        });
        let held = world.give_up();
        clock.join().unwrap();
        watchdog.join().unwrap();
        let last = world.nodes.lock().unwrap().last().copied();
        assert_eq!(last, Some(Sent::Release));
        // The guard is gone; the callbacks of an earlier loss are still called.
        world.check();
        match world.held.take_status(world.now()) {
            HoldStatus::Lost(lost, rest) => {
                assert_eq!(
                    (lost, rest.len(), world.calls()),
                    (LossReason::Expired, 0, 1)
                );
                assert!(
                    held.valid_until <= world.now(),
                    "its release says that it is too late"
                );
            }
            HoldStatus::Released => assert_eq!(world.calls(), 0),
            HoldStatus::Held(_) => panic!("it was released"),
        }
    });
}

#[test]
fn two_extensions_at_once_add_up() {
    explore(|| {
        let world = World::new();
        let watchdog = spawn(&world, World::extend);
        let mut own = None;
        let begin = |held| own.replace(held).is_none();
        world
            .held
            .begin_extension(world.now(), ttl(500), begin)
            .unwrap();
        let mut held = own.unwrap();
        held.nodes = NodeSet::all(3);
        world
            .held
            .finish_extension(world.now(), Extended::Unanswered(held))
            .unwrap();
        watchdog.join().unwrap();
        let held = world.give_up();
        assert_eq!(
            (held.ttl_longest, held.nodes),
            (ttl(3_000), NodeSet::all(3))
        );
        assert_eq!(held.valid_until, at(EXTENSION + 2_968));
    });
}

#[test]
fn a_late_confirmation_ends_no_lock_that_another_extension_kept() {
    explore(|| {
        let world = World::new();
        let rules = Rules::new(1, Drift::from_factor(0.01).unwrap());
        // The extension by the guard is sent; its answer comes only after the old validity.
        let mut own = None;
        world
            .held
            .begin_extension(world.now(), ttl(1_000), |held| {
                let extension = Extension {
                    held,
                    ttl: ttl(1_000),
                    began: at(EXTENSION),
                    is_resumed: false,
                };
                assert!(extension.request(&rules).is_ok());
                own = Some(extension);
                true
            })
            .unwrap();
        let watchdog = spawn(&world, World::extend);
        let clock = spawn(&world, |world| world.millis.store(END, Ordering::SeqCst));
        let is_extended = watchdog
            .join()
            .unwrap()
            .is_some_and(|answered| answered < at(END));
        clock.join().unwrap();

        let mut votes = Votes::new(Tally::new(1));
        assert!(votes.tally.cast(Node::new(0), Vote::Granted));
        votes.sent = NodeSet::all(1);
        let outcome = own.unwrap().conclude(at(END), &votes, &rules);
        let settled = world.held.finish_extension(at(END), outcome);
        assert_eq!(settled.is_ok(), is_extended, "{settled:?}");
        assert_eq!(settled.err(), (!is_extended).then_some(LossReason::Expired));
    });
}
