//! The driver's thread: each job is an order that it begins, and it sleeps where nothing is under
//! way.
//!
//! Orders are answered when all of them were begun: if a job is not seen, loom reports a deadlock.

use super::*;
use crate::follower::Batch;
use crate::job_queue::JobQueue;

/// Gives the thread jobs.
#[derive(Clone)]
struct Remote {
    shared: Arc<LeaderFollowers<Toy>>,
    jobs: Arc<JobQueue<u32>>,
    waits_at: Arc<Follower<u32>>,
}

impl Remote {
    fn send(&self, job: u32) {
        if self.jobs.push(job) {
            self.shared.nudge(&self.waits_at);
        }
    }

    fn spawn_send(&self, job: u32) -> loom::thread::JoinHandle<()> {
        let remote = self.clone();
        loom::thread::spawn(move || remote.send(job))
    }
}

/// Starts the thread, which ends when the orders of this many jobs were answered.
fn spawn_driver(model: &Model, jobs: usize) -> (Remote, loom::thread::JoinHandle<()>) {
    let shared = Arc::clone(&model.shared);
    let mut batch = Batch::new(&shared);
    let remote = Remote {
        shared: Arc::clone(&shared),
        jobs: Arc::new(JobQueue::new()),
        waits_at: Arc::clone(batch.waits_at()),
    };
    let queue = Arc::clone(&remote.jobs);
    let thread = loom::thread::spawn(move || {
        let mut taken = Vec::new();
        let mut answered = 0;
        while answered < jobs {
            queue.take(&mut taken);
            for job in taken.drain(..) {
                batch.begin(&shared, job);
            }
            if !batch.is_open() {
                queue.sleep(None);
            } else if !queue.begin_collecting() {
                batch.collect(&shared, Duration::MAX, |_, _| answered += 1);
            }
        }
    });
    (remote, thread)
}

#[test]
fn a_job_reaches_a_thread_that_works_sleeps_or_collects() {
    explore(3, || {
        let (remote, driver) = spawn_driver(&model(2), 2);
        remote.send(1);
        remote.send(2);
        driver.join().unwrap();
    });
}

#[test]
fn jobs_of_two_threads_both_arrive() {
    explore(2, || {
        let (remote, driver) = spawn_driver(&model(2), 2);
        let other = remote.spawn_send(1);
        remote.send(2);
        other.join().unwrap();
        driver.join().unwrap();
    });
}

#[test]
fn a_job_reaches_a_thread_that_follows_another() {
    explore(2, || {
        let model = model(3);
        let (remote, driver) = spawn_driver(&model, 2);
        let other = spawn_submit(&model, 3);
        remote.send(1);
        remote.send(2);
        other.join().unwrap();
        driver.join().unwrap();
    });
}

#[test]
fn a_thread_that_collects_is_nudged_for_the_first_job_and_one_that_works_for_none() {
    loom::model(|| {
        let queue = JobQueue::new();
        let mut jobs = Vec::new();
        assert!(!queue.push(1));
        assert!(queue.begin_collecting(), "there is one");
        assert!(queue.push(2));
        assert!(!queue.push(3), "it is on its way");
        queue.take(&mut jobs);
        assert_eq!(jobs, [1, 2, 3]);
        jobs.clear();
        assert!(!queue.begin_collecting());
        queue.take(&mut jobs);
        assert!(!queue.push(4), "it works");
        queue.sleep(None);
        queue.take(&mut jobs);
        assert_eq!(jobs, [4]);
    });
}
