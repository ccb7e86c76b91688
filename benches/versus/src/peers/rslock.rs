//! rslock, on tokio: one manager for all tasks or threads, as one client serves all threads
//! elsewhere.

use super::Run;
use crate::work::{Answer, Cycle, Kind, Note, Order, Record, TTL, cpu_time, now, sleep_until};
use ::rslock::LockManager;
use std::sync::Arc;
use std::thread;
use std::time::Duration;
use tokio::runtime::{Builder, Runtime, RuntimeFlavor};
use tokio::task::block_in_place;

/// The longest pause between two attempts where a lock is contended: about what gives rslock the
/// most pairs per second in the contended scenario. Its own default is 200 ms.
const RETRY_DELAY: Duration = Duration::from_millis(5);

pub fn multi_thread() -> Runtime {
    build(&mut Builder::new_multi_thread())
}

pub fn current_thread() -> Runtime {
    build(&mut Builder::new_current_thread())
}

fn build(builder: &mut Builder) -> Runtime {
    builder
        .enable_all()
        .build()
        .expect("the runtime can be built")
}

/// A free lock is acquired in one attempt, and if it is not, that is an error.
fn manager(urls: &[String], attempts: u32) -> LockManager {
    let mut manager = LockManager::new(urls.iter().map(String::as_str).collect());
    manager.set_retry(attempts, RETRY_DELAY);
    manager
}

/// rslock as an async program would use it.
pub fn tasks(urls: &[String], runtime: Runtime, clients: usize) -> Run {
    let manager = manager(urls, 1);
    Box::new(move |order| runtime.block_on(run(&manager, order, clients)))
}

async fn run(manager: &LockManager, order: &Order, clients: usize) -> Answer {
    let mut manager = manager.clone();
    if order.kind == Kind::Contended {
        manager.set_retry(u32::MAX, RETRY_DELAY);
    }
    let order = Arc::new(order.clone());
    // Tasks on the runtime of one thread begin when this one waits for them, the others at once.
    sleep_until(order.start);
    let before = cpu_time();
    let spawn = |index| {
        let manager = manager.clone();
        let order = Arc::clone(&order);
        tokio::spawn(async move { run_task(&manager, &order, index).await })
    };
    let tasks: Vec<_> = (0..clients).map(spawn).collect();
    let mut clients = Vec::new();
    for task in tasks {
        clients.push(task.await.expect("no task panics"));
    }
    Answer {
        cpu: cpu_time() - before,
        instructions: None,
        clients,
    }
}

async fn run_task(manager: &LockManager, order: &Order, index: usize) -> Vec<Record> {
    let resource = order.resource(index);
    let mut records = Vec::new();
    let mut asked = now();
    while asked < order.end && records.len() < order.locks_max {
        let lock = manager.lock(resource.as_str(), TTL).await;
        let lock = lock.unwrap_or_else(|error| panic!("rslock takes the lock: {error}"));
        let granted = now();
        let mut releasing = granted;
        if order.hold > 0 {
            hold(Duration::from_nanos(order.hold));
            releasing = now();
        }
        // It does not say whether that worked; that the key is gone is checked after the slice.
        lock.release().await;
        let released = now();
        records.push(Record {
            asked,
            granted,
            releasing,
            released,
            note: Note::default(),
        });
        asked = released;
    }
    records
}

/// tokio's own sleep counts in milliseconds and would be one too long. Other tasks go on meanwhile.
fn hold(duration: Duration) {
    match tokio::runtime::Handle::current().runtime_flavor() {
        RuntimeFlavor::CurrentThread => thread::sleep(duration),
        _ => block_in_place(|| thread::sleep(duration)),
    }
}

/// rslock as a program of blocking threads would use it.
pub fn threads(urls: &[String]) -> Cycle {
    let runtime = multi_thread();
    let impatient = manager(urls, 1);
    let patient = manager(urls, u32::MAX);
    Box::new(move |resource, waits, while_held| {
        let manager = if waits { &patient } else { &impatient };
        let lock = runtime.block_on(manager.lock(resource, TTL));
        let lock = lock.unwrap_or_else(|error| panic!("rslock takes the lock: {error}"));
        while_held(Note::default());
        runtime.block_on(lock.release());
    })
}
