//! Threads that wait in a queue.

use std::fs;
use std::sync::mpsc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::eventually;
use super::locks::LIMIT;

/// Runs `work` in a thread, and returns when that thread sleeps (or is done): if it can only wait
/// for a lock, it is in the wait queue by then.
///
/// A wait queue is not visible from outside, because waiters send nothing to the servers. On Linux
/// it is visible that a thread sleeps, and one that sleeps for some time does not just wait for a
/// processor or for a mutex. On other systems this waits for some time.
#[track_caller]
pub fn spawn_waiter<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
    let (sender, receiver) = mpsc::channel();
    let thread = thread::spawn(move || {
        sender
            .send(fs::read_link("/proc/thread-self").ok())
            .expect("the receiver exists");
        work()
    });
    match receiver.recv().expect("the thread sends its path") {
        Some(task) => {
            let stat = format!("/proc/{}/stat", task.display());
            let sleeps = || thread.is_finished() || (0..8).all(|_| is_asleep(&stat));
            assert!(eventually(LIMIT, sleeps), "the thread never sleeps");
        }
        None => thread::sleep(Duration::from_millis(200)),
    }
    thread
}

fn is_asleep(stat: &str) -> bool {
    thread::sleep(Duration::from_micros(500));
    let text = fs::read_to_string(stat).unwrap_or_default();
    // The state follows the name, which is in parentheses.
    text.rsplit(") ")
        .next()
        .is_some_and(|rest| rest.starts_with('S'))
}

/// The result of the thread, which must end in time.
#[track_caller]
pub fn finish<T>(thread: JoinHandle<T>) -> T {
    assert!(
        eventually(LIMIT, || thread.is_finished()),
        "the thread waits for ever"
    );
    thread.join().expect("the thread does not panic")
}
