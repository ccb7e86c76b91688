//! rslock, on tokio: one manager for all tasks or threads, as one client serves all threads
//! elsewhere.

use crate::work::{Blocking, HOLD, Part, Plan, Slice, TTL, Watch};
use ::rslock::{Lock, LockManager};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};
use tokio::runtime::{Builder, Runtime, RuntimeFlavor};
use tokio::sync::Barrier;
use tokio::task::block_in_place;

/// The longest pause between two attempts where a lock is contended: about what gives rslock the
/// most pairs per second in the contended scenario.
pub const RETRY_DELAY: Duration = Duration::from_millis(5);

pub fn multi_thread() -> Runtime {
    build(&mut Builder::new_multi_thread())
}

pub fn current_thread() -> Runtime {
    build(&mut Builder::new_current_thread())
}

fn build(builder: &mut Builder) -> Runtime {
    builder.enable_all().build().expect("the runtime can be built")
}

pub fn start(urls: &[String], runtime: Runtime, delay: Duration) -> Box<dyn FnMut(&Plan) -> Slice> {
    let manager = LockManager::new(urls.iter().map(String::as_str).collect());
    Box::new(move |plan| runtime.block_on(run(&manager, plan, delay)))
}

async fn run(manager: &LockManager, plan: &Plan, delay: Duration) -> Slice {
    let mut manager = manager.clone();
    // A free lock is acquired in one attempt, and if it is not, that is an error.
    manager.set_retry(if plan.is_contended() { u32::MAX } else { 1 }, delay);
    let plan = Arc::new(plan.clone());
    let barrier = Arc::new(Barrier::new(plan.threads + 1));
    let spawn = |index| {
        let (manager, plan, barrier) = (manager.clone(), Arc::clone(&plan), Arc::clone(&barrier));
        tokio::spawn(async move { run_task(&manager, &plan, index, &barrier).await })
    };
    let tasks: Vec<_> = (0..plan.threads).map(spawn).collect();
    barrier.wait().await;
    let watch = Watch::start();
    let mut parts = Vec::new();
    for task in tasks {
        parts.push(task.await.expect("no task panics"));
    }
    watch.stop(&parts)
}

async fn run_task(manager: &LockManager, plan: &Plan, index: usize, barrier: &Barrier) -> Part {
    let resource = plan.resource(index);
    let marker = plan.marker();
    let mut part = Part::new();
    barrier.wait().await;
    let mut start = Instant::now();
    let end = start + plan.duration;
    while start < end {
        let lock = manager.lock(resource.as_str(), TTL).await;
        let lock = lock.unwrap_or_else(|error| panic!("rslock takes the lock: {error}"));
        part.acquired(start.elapsed());
        if let Some(marker) = &marker {
            marker.enter();
            hold();
            marker.leave();
        }
        // It does not say whether that worked; that the key is gone is checked after the slice.
        lock.release().await;
        start = Instant::now();
    }
    part
}

/// tokio's own sleep counts in milliseconds and would be one too long. Other tasks go on meanwhile.
fn hold() {
    match tokio::runtime::Handle::current().runtime_flavor() {
        RuntimeFlavor::CurrentThread => thread::sleep(HOLD),
        _ => block_in_place(|| thread::sleep(HOLD)),
    }
}

/// rslock as a program of blocking threads would use it.
pub struct Threads {
    runtime: Runtime,
    manager: LockManager,
    patient: LockManager,
}

impl Threads {
    pub fn new(urls: &[String], runtime: Runtime, delay: Duration) -> Self {
        let mut manager = LockManager::new(urls.iter().map(String::as_str).collect());
        manager.set_retry(1, delay);
        let mut patient = manager.clone();
        patient.set_retry(u32::MAX, delay);
        Self { runtime, manager, patient }
    }
}

impl Blocking for Threads {
    type Held<'a> = Lock;

    fn acquire(&self, resource: &str, is_contended: bool) -> Lock {
        let manager = if is_contended { &self.patient } else { &self.manager };
        let lock = self.runtime.block_on(manager.lock(resource, TTL));
        lock.unwrap_or_else(|error| panic!("rslock takes the lock: {error}"))
    }

    fn release(&self, held: Lock) {
        self.runtime.block_on(held.release());
    }
}
