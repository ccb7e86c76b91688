//! Split votes: several clients ask for a free lock at once, each gets some nodes, and none enough.
//!
//! A caller that waits tries again anyway. A caller that makes a single attempt would get
//! `Contended`, and so might all of them, although no client holds the lock. So a split attempt is
//! undone and repeated after a short random pause: the first client to repeat it finds the nodes
//! free.
//!
//! A refusal looks the same whether another client holds the lock or only asks for it. With an odd
//! number of nodes that have all answered, every attempt that fails is refused by a majority. But a
//! lock that is held was written to all nodes: no node grants it to another client, except a node
//! that was unreachable or has lost the key. So grants beside refusals show a split. Without a
//! grant among the answers that decided the attempt, the attempt is not repeated, and a held lock
//! is reported without delay. An attempt that was decided before its own grant arrived is not
//! repeated either; at least one of the competing attempts sees a grant and is.

use super::{Acquire, Acquired, State, Wait};
use crate::engine::{Ballot, Request, Verb, Verdict};
use crate::time::Time;

/// The most attempts in one split vote. If a node has lost the key of a lock that is held, every
/// attempt looks like a split vote.
pub(super) const SPLIT_ATTEMPTS_MAX: u32 = 4;

/// How many times as long the first round takes at least, in which connections are made: a round
/// trip to connect, and one for the greeting.
const TRIPS: u32 = 3;

impl Acquire {
    /// Does this look like a split vote: some nodes granted the lock, and others refused it?
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

    /// When a single attempt ends, with its repetitions after split votes: one round's time after
    /// it began, or after the round in which it connected.
    pub(super) fn end_of_single(&self) -> Time {
        match self.connected.or(self.began) {
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

    /// Pauses before another attempt, if one fits within the time of the round.
    pub(super) fn after_split(&mut self, now: Time, started: Time, failure: Acquired) -> State {
        let took = now.since(started);
        let round = if self.connected == Some(now) { took / TRIPS } else { took };
        // The time left after another round as long as this one.
        let left = self.end_of_single().since(now).saturating_sub(round);
        match &mut self.backoff {
            Some(backoff) if self.attempts < SPLIT_ATTEMPTS_MAX && !left.is_zero() => {
                State::Resting(now.after(backoff.next_delay_within(round, left)))
            }
            _ => State::Over(Some(failure)),
        }
    }
}
