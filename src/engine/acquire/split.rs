//! Split votes: several clients ask for a free lock at once, each gets some nodes, and none enough.
//!
//! A caller who waits tries again anyway. One who makes a single attempt would be told that others
//! hold the lock, and so might all of them, with nobody holding it. So a split attempt is undone
//! and made again after a short random pause: whoever comes back first finds the nodes free.
//!
//! What a node says does not tell a lock that others hold from one that they only ask for. With an
//! odd number of nodes that have all answered, every attempt that fails is refused by a majority.
//! But a lock that is held was written to all nodes: who asks for it is granted none, except where
//! a node was away or has lost the key. So it is the grants that show a split. Where there is none
//! among the answers that decided the attempt, there is no second one, and a lock that is held is
//! reported as fast as before. An attempt that lost so before its own grant had been seen is not
//! repeated either; one of those that were granted something is.

use super::{Acquire, Acquired, State, Wait};
use crate::clock::Time;
use crate::engine::{Ballot, Request, Verb, Verdict};

/// How many attempts are made at most. Where a node has lost the key of a lock that is held, every
/// attempt looks like a split one.
pub(super) const SPLIT_ATTEMPTS_MAX: u32 = 4;

impl Acquire {
    /// Have several who asked at once been granted some of the nodes each, as far as can be seen?
    pub(super) fn is_split(request: &Request, ballot: &Ballot) -> bool {
        let tally = &ballot.tally;
        request.verb() == Verb::Acquire
            && !ballot.same_server
            && tally.granted_by_majority() == Verdict::Lost
            && tally.answered_by_majority() == Verdict::Won
            && !tally.granted.is_empty()
            && !tally.refused.is_empty()
    }

    /// Does the caller want no more than one attempt?
    pub(super) fn is_single(&self) -> bool {
        match self.wait {
            Wait::No => true,
            Wait::Until(time) => self.began.is_some_and(|began| time <= began),
            Wait::Forever => false,
        }
    }

    /// When all attempts of a caller who wants one are over: within the time of one round.
    pub(super) fn end_of_single(&self) -> Time {
        match self.began {
            Some(began) if self.is_single() => began.after(self.rules.node_timeout),
            _ => Time::MAX,
        }
    }

    /// When the caller's wait ends, with or without replies.
    pub(super) fn end(&self) -> Time {
        match self.wait {
            Wait::Until(time) if !self.is_single() => time,
            _ => self.end_of_single(),
        }
    }

    /// Rests for a moment, if another attempt fits in.
    pub(super) fn after_split(&mut self, now: Time, started: Time, failure: Acquired) -> State {
        let round = now.since(started);
        // What is left when another round like this one has had its time.
        let left = self.end_of_single().since(now).saturating_sub(round);
        match &mut self.backoff {
            Some(backoff) if self.attempts < SPLIT_ATTEMPTS_MAX && !left.is_zero() => {
                State::Resting(now.after(backoff.next_delay_within(round, left)))
            }
            _ => State::Over(Some(failure)),
        }
    }
}
