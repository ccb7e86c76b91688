//! Threads that stand in line.

use std::fs;
use std::sync::mpsc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::eventually;
use super::locks::LIMIT;

/// Runs `work` in a thread, and comes back when that sleeps (or is done): if all it can wait for is
/// its turn, then it stands in line.
///
/// Nothing can be seen of a line from outside, as those in it ask the servers nothing. What can be
/// seen on Linux is that a thread sleeps, and one that sleeps for some time is not merely waiting
/// for a processor or for another thread that adds itself to the line. Elsewhere it is given time.
#[track_caller]
pub fn stand<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
    let (tell, told) = mpsc::channel();
    let thread = thread::spawn(move || {
        tell.send(fs::read_link("/proc/thread-self").ok()).expect("it is listened to");
        work()
    });
    match told.recv().expect("the thread says which it is") {
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
    text.rsplit(") ").next().is_some_and(|rest| rest.starts_with('S'))
}

/// What the thread comes to, which must not take for ever.
#[track_caller]
pub fn finish<T>(thread: JoinHandle<T>) -> T {
    assert!(eventually(LIMIT, || thread.is_finished()), "the thread waits for ever");
    thread.join().expect("the thread does not panic")
}
