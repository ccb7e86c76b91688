//! What is going to happen, in the order in which it will.

use crate::network::Side;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Something that happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Event {
    /// A connection has been made, or refused.
    Connected { connection: usize },
    /// Bytes, or the end, arrive at one side of a connection.
    Arrive { connection: usize, side: Side },
    /// A client's driver wakes up.
    Drive { client: usize, life: u64 },
    /// One of a client's threads wakes up.
    Work { client: usize, life: u64, worker: usize },
    /// Something breaks.
    Fault,
    /// A frozen node continues.
    Thaw { node: usize },
    /// A crashed node comes back.
    Restart { node: usize },
    /// A client that died is replaced by a new one.
    Rebirth { client: usize },
}

/// The events to come. Of two at the same time, the one that was put in first comes first.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    now: u64,
    serial: u64,
    events: BinaryHeap<Reverse<(u64, u64, Event)>>,
}

impl Queue {
    /// The true time, in nanoseconds.
    pub(crate) fn now(&self) -> u64 {
        self.now
    }

    pub(crate) fn at(&mut self, time: u64, event: Event) {
        self.serial += 1;
        self.events.push(Reverse((time.max(self.now), self.serial, event)));
    }

    pub(crate) fn after(&mut self, delay: u64, event: Event) {
        self.at(self.now + delay, event);
    }

    /// The next event, unless it comes after `end`; then the time is `end`.
    pub(crate) fn next_before(&mut self, end: u64) -> Option<Event> {
        match self.events.peek() {
            Some(Reverse((time, ..))) if *time <= end => {
                let Reverse((time, _, event)) = self.events.pop()?;
                self.now = time;
                Some(event)
            }
            _ => {
                self.now = self.now.max(end);
                None
            }
        }
    }
}
