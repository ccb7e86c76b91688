//! Many requests of one thread at a time: all are left for the one who drives, then all are waited
//! for, so that they are written to each node together.
//!
//! Whoever puts the driver down calls one of those who wait, and a thread with many requests waits
//! in one place only. So its seats stand behind a leader: a call to any of them, or an outcome, is
//! a call to that.

use super::seat::Seat;
use super::turn::{Drive, Turn, Wake};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// The seats of a thread that has many requests at a time, used again and again.
pub(super) struct Batch<O> {
    leader: Arc<Seat<O>>,
    seats: Vec<Arc<Seat<O>>>,
    /// How many of the seats, from the first, are in use.
    begun: usize,
}

impl<O> Batch<O> {
    /// No requests yet. `turn` knows where to find the thread.
    pub(super) fn new<D: Drive<Outcome = O>, W: Wake>(turn: &Turn<D, W>) -> Self {
        Self { leader: turn.lock_seats().take(), seats: Vec::new(), begun: 0 }
    }

    /// Leaves a request. It is sent before whatever is left after it, and perhaps only when this is
    /// [finished](Self::finish), which must follow without delay.
    ///
    /// # Panics
    ///
    /// The driver panicked.
    pub(super) fn begin<D, W>(&mut self, turn: &Turn<D, W>, request: D::Request)
    where
        D: Drive<Outcome = O>,
        W: Wake,
    {
        turn.expect_sound();
        if self.begun == self.seats.len() {
            self.seats.push(Arc::new(Seat::behind(&self.leader)));
        }
        turn.open(request, Arc::clone(&self.seats[self.begun]));
        self.begun += 1;
    }

    /// Waits for all requests, and tells of each, by its number in the order in which they were
    /// begun, what it came to, as soon as that is known. Answers for which there was no outcome
    /// within `limit`: none, unless a thread of its own drives.
    ///
    /// # Panics
    ///
    /// The driver panicked, in this thread or in another.
    pub(super) fn finish<D, W>(
        &mut self,
        turn: &Turn<D, W>,
        limit: Duration,
        mut each: impl FnMut(usize, O),
    ) -> Vec<usize>
    where
        D: Drive<Outcome = O>,
        W: Wake,
    {
        let mut open: Vec<usize> = (0..std::mem::take(&mut self.begun)).collect();
        if open.is_empty() {
            return open;
        }
        let seats = &self.seats;
        turn.attend(&self.leader, limit, &mut || {
            open.retain(|&index| match seats[index].take() {
                Some(outcome) => {
                    each(index, outcome);
                    false
                }
                None => true,
            });
            open.is_empty().then_some(())
        });
        if !open.is_empty() {
            // What comes to these after all is for nobody.
            self.seats.clear();
            let mut seats = turn.lock_seats();
            seats.remove(&self.leader);
            self.leader = seats.take();
        }
        open
    }
}

impl<O> fmt::Debug for Batch<O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Batch").field("begun", &self.begun).finish_non_exhaustive()
    }
}
