//! Telling of a loss. Each callback runs on a thread of its own: one that panics, blocks, or wants
//! the same lock harms neither the watchdog nor another callback.

use super::hold::Callback;
use crate::clock::Time;
use crate::error::Lost;
use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// When the system has no thread to give for a callback, it is asked again after this time.
const AGAIN: Duration = Duration::from_millis(100);

/// A callback, for whoever comes to call it.
type Slot = Arc<Mutex<Option<Callback>>>;

/// Those who are to be told.
pub(super) struct Bell {
    /// There was no thread for these.
    waiting: Vec<(Lost, Slot)>,
    again_at: Option<Time>,
    spawn: fn(Lost, &Slot) -> io::Result<()>,
}

impl Bell {
    pub(super) fn new() -> Self {
        Self { waiting: Vec::new(), again_at: None, spawn }
    }

    /// Calls all of these, each on a thread of its own.
    pub(super) fn ring(&mut self, now: Time, lost: Lost, callbacks: Vec<Callback>) {
        for callback in callbacks {
            let slot = Arc::new(Mutex::new(Some(callback)));
            if (self.spawn)(lost, &slot).is_err() {
                self.waiting.push((lost, slot));
                self.again_at = Some(now.after(AGAIN));
            }
        }
    }

    /// When to [ring again](Self::ring_again).
    pub(super) fn next(&self) -> Option<Time> {
        self.again_at
    }

    /// Calls those for whom there was no thread, if it is time.
    pub(super) fn ring_again(&mut self, now: Time) {
        if self.again_at.is_some_and(|at| at <= now) {
            self.waiting.retain(|(lost, slot)| (self.spawn)(*lost, slot).is_err());
            self.again_at = (!self.waiting.is_empty()).then(|| now.after(AGAIN));
        }
    }
}

fn spawn(lost: Lost, slot: &Slot) -> io::Result<()> {
    let slot = Arc::clone(slot);
    let call = move || {
        let callback = slot.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(callback) = callback {
            callback(lost);
        }
    };
    thread::Builder::new().name("redlatch-lost".to_owned()).spawn(call).map(drop)
}

impl fmt::Debug for Bell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bell").field("waiting", &self.waiting.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::{RecvTimeoutError, channel};

    const LIMIT: Duration = Duration::from_secs(20);

    #[test]
    fn without_a_thread_to_give_it_is_tried_again_and_each_is_called_once() {
        let mut bell = Bell { spawn: |_, _| Err(io::ErrorKind::WouldBlock.into()), ..Bell::new() };
        let (sender, told) = channel();
        let callback = |number: u8| -> Callback {
            let sender = sender.clone();
            Box::new(move |lost| sender.send((number, lost)).unwrap())
        };
        let at = Time::from_millis;
        bell.ring(at(1_000), Lost::Expired, vec![callback(1), callback(2)]);
        drop(sender);
        assert_eq!(bell.next(), Some(at(1_100)));
        bell.ring_again(at(1_100));
        assert_eq!((bell.waiting.len(), bell.next()), (2, Some(at(1_200))));
        bell.spawn = spawn;
        bell.ring_again(at(1_199));
        assert_eq!(bell.waiting.len(), 2, "it is not time");
        bell.ring_again(at(1_200));
        assert_eq!((bell.waiting.len(), bell.next()), (0, None));
        let mut seen = [told.recv_timeout(LIMIT).unwrap(), told.recv_timeout(LIMIT).unwrap()];
        seen.sort_unstable_by_key(|(number, _)| *number);
        assert_eq!(seen, [(1, Lost::Expired), (2, Lost::Expired)]);
        assert_eq!(told.recv_timeout(LIMIT), Err(RecvTimeoutError::Disconnected));
    }
}
