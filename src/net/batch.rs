//! Many requests of one thread at a time: left for the one who drives, so that they are written to
//! each node together, and collected as they are decided, so that others can follow meanwhile.
//!
//! Whoever puts the driver down calls one of those who wait, and a thread with many requests waits
//! in one place only. So its seats stand behind a leader: a call to any of them, or an outcome, is
//! a call to that.

use super::follower::Follower;
use super::leader_followers::{Drive, LeaderFollowers, Wake};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// The seats of a thread that has many requests at a time, used again and again.
pub(super) struct Batch<O> {
    leader: Arc<Follower<O>>,
    seats: Vec<Arc<Follower<O>>>,
    /// The numbers of those whose requests are not decided.
    open: Vec<usize>,
    /// The numbers of the others.
    free: Vec<usize>,
}

impl<O> Batch<O> {
    /// No requests yet. `turn` knows where to find the thread.
    pub(super) fn new<D: Drive<Outcome = O>, W: Wake>(turn: &LeaderFollowers<D, W>) -> Self {
        let leader = turn.lock_seats().take();
        Self { leader, seats: Vec::new(), open: Vec::new(), free: Vec::new() }
    }

    /// Leaves a request, and hands out its number: no other that is open has the same. It is sent
    /// before whatever is left after it, and perhaps only when this is [collected](Self::collect),
    /// which must follow without delay.
    ///
    /// # Panics
    ///
    /// The driver panicked.
    pub(super) fn begin<D, W>(&mut self, turn: &LeaderFollowers<D, W>, request: D::Request) -> usize
    where
        D: Drive<Outcome = O>,
        W: Wake,
    {
        turn.expect_sound();
        let number = self.free.pop().unwrap_or_else(|| {
            self.seats.push(Arc::new(Follower::behind(&self.leader)));
            self.seats.len() - 1
        });
        turn.open(request, Arc::clone(&self.seats[number]));
        self.open.push(number);
        number
    }

    /// Is there a request that is not decided? Then this is to be [collected](Self::collect) again
    /// without delay: the thread may be the one who was called to drive for all.
    pub(super) fn is_open(&self) -> bool {
        !self.open.is_empty()
    }

    /// Waits until a request is decided, if any is open, and tells of each that is, by its number,
    /// what it came to. Answers whether there was any; where a thread of its own drives, it waits
    /// for no longer than `limit` after the last call.
    ///
    /// # Panics
    ///
    /// The driver panicked, in this thread or in another.
    pub(super) fn collect<D, W>(
        &mut self,
        turn: &LeaderFollowers<D, W>,
        limit: Duration,
        mut each: impl FnMut(usize, O),
    ) -> bool
    where
        D: Drive<Outcome = O>,
        W: Wake,
    {
        if !self.is_open() {
            return false;
        }
        let Self { leader, seats, open, free } = self;
        let collected = turn.attend(leader, limit, &mut || {
            let before = open.len();
            open.retain(|&number| match seats[number].take() {
                Some(outcome) => {
                    free.push(number);
                    each(number, outcome);
                    false
                }
                None => true,
            });
            (open.len() < before).then_some(())
        });
        collected.is_some()
    }

    /// Waits no longer for this request: what it comes to after all is for nobody.
    pub(super) fn abandon(&mut self, number: usize) {
        self.open.retain(|other| *other != number);
        self.seats[number] = Arc::new(Follower::behind(&self.leader));
        self.free.push(number);
    }
}

impl<O> fmt::Debug for Batch<O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Batch").field("open", &self.open.len()).finish_non_exhaustive()
    }
}
