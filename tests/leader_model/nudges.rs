//! A thread with several orders is told elsewhere what to begin next, and is nudged to look.
//!
//! Its first order is answered only after its second was begun: if a nudge is lost, loom reports a
//! deadlock.

use super::*;
use crate::follower::Batch;

/// A thread whose first order waits until it is told to begin the second.
struct Owner {
    shared: Arc<LeaderFollowers<Toy>>,
    batch: Batch<Toy>,
    is_told: Arc<Mutex<bool>>,
}

/// Who tells it.
struct Teller {
    shared: Arc<LeaderFollowers<Toy>>,
    waits_at: Arc<Follower<u32>>,
    is_told: Arc<Mutex<bool>>,
}

impl Owner {
    fn new(model: &Model) -> (Self, Teller) {
        let owner = Self {
            shared: Arc::clone(&model.shared),
            batch: Batch::new(&model.shared),
            is_told: Arc::new(Mutex::new(false)),
        };
        let teller = Teller {
            shared: Arc::clone(&model.shared),
            waits_at: Arc::clone(owner.batch.waits_at()),
            is_told: Arc::clone(&owner.is_told),
        };
        (owner, teller)
    }

    /// Begins this order, the next one when it is told to, and waits for both.
    fn run(mut self, first: u32) {
        self.batch.begin(&self.shared, first);
        let mut outcomes = Vec::new();
        let mut has_begun_second = false;
        while self.batch.is_open() {
            if !has_begun_second && *self.is_told.lock().unwrap() {
                self.batch.begin(&self.shared, first + 1);
                has_begun_second = true;
            }
            self.batch
                .collect(&self.shared, Duration::MAX, |_, outcome| {
                    outcomes.push(outcome);
                });
        }
        outcomes.sort_unstable();
        assert_eq!(outcomes, [first * 2, first * 2 + 2]);
    }

    fn spawn(self, first: u32) -> loom::thread::JoinHandle<()> {
        loom::thread::spawn(move || self.run(first))
    }
}

impl Teller {
    fn tell(&self) {
        *self.is_told.lock().unwrap() = true;
        self.shared.nudge(&self.waits_at);
    }
}

#[test]
fn a_thread_that_leads_and_sleeps_is_nudged() {
    explore(4, || {
        let model = model(2);
        let (owner, teller) = Owner::new(&model);
        let owner = owner.spawn(1);
        teller.tell();
        owner.join().unwrap();
    });
}

#[test]
fn a_thread_is_nudged_whether_it_leads_follows_or_is_being_promoted() {
    explore(2, || {
        let model = model(3);
        let (owner, teller) = Owner::new(&model);
        let owner = owner.spawn(2);
        let other = spawn_submit(&model, 1);
        teller.tell();
        owner.join().unwrap();
        other.join().unwrap();
    });
}

#[test]
fn a_nudge_and_a_post_of_another_thread_both_arrive() {
    explore(3, || {
        let model = model(2);
        let (owner, teller) = Owner::new(&model);
        let owner = owner.spawn(1);
        let shared = Arc::clone(&model.shared);
        let poster = loom::thread::spawn(move || shared.post(7));
        teller.tell();
        poster.join().unwrap();
        owner.join().unwrap();
        let order = model.order.lock().unwrap();
        assert!(order.contains(&7), "{order:?}");
    });
}

#[test]
#[ignore = "it takes ten seconds: ./check runs it"]
fn a_thread_that_was_nudged_leads_if_it_was_promoted_as_well() {
    explore(2, || {
        let model = model(4);
        let (owner, teller) = Owner::new(&model);
        let owner = owner.spawn(3);
        let others = [spawn_submit(&model, 1), spawn_submit(&model, 2)];
        teller.tell();
        owner.join().unwrap();
        others.into_iter().for_each(|other| other.join().unwrap());
    });
}

#[test]
fn two_threads_with_several_orders_are_nudged_each() {
    explore(2, || {
        let model = model(4);
        let (first, first_teller) = Owner::new(&model);
        let (second, second_teller) = Owner::new(&model);
        let first = first.spawn(1);
        let second = second.spawn(3);
        first_teller.tell();
        second_teller.tell();
        first.join().unwrap();
        second.join().unwrap();
    });
}

#[test]
fn a_thread_is_nudged_by_way_of_the_io_thread() {
    explore(2, || {
        let model = model_of(2, true);
        let shared = Arc::clone(&model.shared);
        let io_thread = loom::thread::spawn(move || shared.run());
        let (owner, teller) = Owner::new(&model);
        let owner = owner.spawn(1);
        teller.tell();
        owner.join().unwrap();
        model.shared.close();
        io_thread.join().unwrap();
    });
}
