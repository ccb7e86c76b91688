//! The queue of future events, ordered by time.

use crate::network::Side;
use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// An event.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Event {
    /// A connection was made or refused.
    Connected { connection: usize },
    /// Bytes, or the end, arrive at one side of a connection.
    Arrive { connection: usize, side: Side },
    /// An unsolicited reply arrives.
    Stray { stray: usize },
    /// A client's event loop wakes up.
    Drive { client: usize, life: u64 },
    /// One of a client's threads wakes up.
    Work {
        client: usize,
        life: u64,
        worker: usize,
    },
    /// A fault is injected.
    Fault,
    /// The nodes look for expired keys.
    Sweep,
    /// A program that knows no queue releases its lock.
    Foreign { turn: usize },
    /// A waiter that never claims the lock renews its entry.
    Idle { turn: usize },
    /// A frozen node resumes.
    Thaw { node: usize },
    /// A crashed node restarts.
    Restart { node: usize },
    /// The next write arrives at a replica, over this link.
    Replicate { server: usize, link: u64 },
    /// The acknowledgement of a write arrives at the master.
    Acked {
        server: usize,
        link: u64,
        offset: u64,
    },
    /// A server of a group learns who is the master.
    Follow { server: usize },
    /// A command that blocks a connection has waited for as long as it may.
    Unblock { connection: usize },
    /// A client that died is replaced by a new one.
    Rebirth { client: usize },
}

/// The future events. Of two at the same time, the one that was added first comes first.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    now: u64,
    serial: u64,
    events: BinaryHeap<Entry>,
}

/// An event and its time. The greatest entry of a heap comes first, so the earliest is the
/// greatest.
#[derive(Debug)]
struct Entry {
    time: u64,
    serial: u64,
    event: Event,
}

impl Ord for Entry {
    fn cmp(&self, other: &Self) -> Ordering {
        (other.time, other.serial).cmp(&(self.time, self.serial))
    }
}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Entry {}

impl Queue {
    /// The true time, in nanoseconds.
    pub(crate) fn now(&self) -> u64 {
        self.now
    }

    pub(crate) fn at(&mut self, time: u64, event: Event) {
        self.serial += 1;
        self.events.push(Entry {
            time: time.max(self.now),
            serial: self.serial,
            event,
        });
    }

    pub(crate) fn after(&mut self, delay: u64, event: Event) {
        self.at(self.now + delay, event);
    }

    /// The next event, or `None` if that is after `end`; the time is `end` then.
    pub(crate) fn next_before(&mut self, end: u64) -> Option<Event> {
        match self.events.peek() {
            Some(entry) if entry.time <= end => {
                self.now = entry.time;
                self.events.pop().map(|entry| entry.event)
            }
            _ => {
                self.now = self.now.max(end);
                None
            }
        }
    }
}
