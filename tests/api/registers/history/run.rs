//! Threads of several clients that use registers while faults happen, and the check of what they
//! saw.

use super::checker;
use super::faulty_servers::{FaultyServers, hasty_client};
use super::operation::{Operation, Outcome, now};
use super::worker::{Progress, Worker};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use support::chance::Chance;

const STEP: Duration = Duration::from_millis(15);

/// How long any operation may take, on a busy machine and with all nodes lost for a while.
const OPERATION_LIMIT: Duration = Duration::from_secs(40);

/// For how much longer faults may go on until each worker has had success.
const FAULTS_LIMIT: Duration = Duration::from_secs(40);

/// How long a worker may take until an operation succeeds when all faults are over.
const RECOVERY_LIMIT: Duration = Duration::from_secs(40);

/// Workers in threads of this process.
pub(crate) struct Run {
    threads: Vec<JoinHandle<Worker>>,
    progress: Vec<Arc<Progress>>,
}

impl Run {
    /// This many clients, each with this many threads.
    pub(crate) fn start(urls: &[String], (clients, threads): (usize, usize), seed: u64) -> Self {
        let mut run = Self {
            threads: Vec::new(),
            progress: Vec::new(),
        };
        for client in 0..clients {
            let client_of_all = hasty_client(urls);
            for thread in 0..threads {
                let number = 1 + client * threads + thread;
                let journal = Box::new(|_: &Operation| ());
                let mut worker = Worker::new(&client_of_all, number, seed, journal);
                run.progress.push(Arc::clone(&worker.progress));
                run.threads.push(thread::spawn(move || {
                    worker.run();
                    let start = Instant::now();
                    while !worker.run_to_success() {
                        assert!(start.elapsed() < RECOVERY_LIMIT, "it does not recover");
                        thread::sleep(STEP);
                    }
                    worker
                }));
            }
        }
        run
    }

    /// Do faults go on that have lasted since `start` and are to last for this time? They do until
    /// each worker has had success: a proxy that hangs up, or a command that arrives late, can cost
    /// a client all of a short time.
    #[track_caller]
    pub(crate) fn goes_on(&self, start: Instant, time: Duration) -> bool {
        self.assert_nobody_hangs();
        let done: Vec<u64> = self
            .progress
            .iter()
            .map(|it| it.done.load(Ordering::SeqCst))
            .collect();
        let starves = done.contains(&0);
        assert!(
            !starves || start.elapsed() < time + FAULTS_LIMIT,
            "somebody starves: {done:?}"
        );
        starves || start.elapsed() < time
    }

    /// Injects faults for this time, and calls `step` now and then.
    pub(crate) fn suffer(
        &self,
        time: Duration,
        servers: &mut FaultyServers,
        chance: &mut Chance,
        mut step: impl FnMut(&mut Chance),
    ) {
        let start = Instant::now();
        while self.goes_on(start, time) {
            servers.step(chance);
            step(chance);
            thread::sleep(STEP);
        }
    }

    fn assert_nobody_hangs(&self) {
        for (index, progress) in self.progress.iter().enumerate() {
            let since = progress.busy_since.load(Ordering::SeqCst);
            let busy = Duration::from_nanos(now().saturating_sub(since));
            let hangs = since > 0 && busy > OPERATION_LIMIT;
            assert!(!hangs, "the operation of worker {index} has taken {busy:?}");
        }
    }

    /// Ends the workers, when all faults are over. Each must have success again.
    pub(crate) fn finish(self) -> Vec<Operation> {
        self.progress
            .iter()
            .for_each(|it| it.is_over.store(true, Ordering::SeqCst));
        while !self.threads.iter().all(JoinHandle::is_finished) {
            self.assert_nobody_hangs();
            thread::sleep(STEP);
        }
        let workers = self
            .threads
            .into_iter()
            .map(|thread| thread.join().expect("no panic"));
        workers.flat_map(|worker| worker.operations).collect()
    }
}

/// Checks a history, and prints what was in it.
#[track_caller]
pub(crate) fn check(name: &str, operations: &[Operation], faults: &BTreeMap<&'static str, u64>) {
    let count = |is_counted: &dyn Fn(&Operation) -> bool| {
        operations
            .iter()
            .filter(|operation| is_counted(operation))
            .count()
    };
    let unsure = count(&|it| it.outcome == Outcome::Unsure);
    let failed = count(&|it| it.outcome == Outcome::Failed);
    let sure = operations.iter().filter(|it| it.outcome != Outcome::Unsure);
    let longest = sure.map(|it| it.returned - it.called).max().unwrap_or(0);
    let start = Instant::now();
    let result = checker::check(operations);
    eprintln!(
        "{name}: {} operations, {unsure} unsure, {failed} failed, the longest took {:?}, checked \
         in {:?}; faults: {faults:?}",
        operations.len(),
        Duration::from_nanos(longest),
        start.elapsed()
    );
    if let Err(why) = result {
        panic!("{name}: {why}");
    }
}
