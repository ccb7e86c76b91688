//! How far a new connection has come, and for how long rounds wait for it.
//!
//! A node that has not answered a command on its connection yet needs more than one round trip: to
//! connect, for TLS, for the greeting, for the command. How long one takes is not known before the
//! first connection; after that, the next one should take as long. A node whose connection was not
//! made in time, or took much longer than the last one, is waited for no longer than any other.

use super::{Session, State};
use crate::clock::Time;
use crate::node::node_error::{NodeError, Phase};
use std::time::Duration;

/// For how long rounds wait for a connection, in multiples of what the last one took.
const AGAIN: u32 = 2;

/// A node that has not accepted the connection may not be there: the part of the time for which it
/// is waited for all the same.
const UNSEEN: u32 = 4;

/// A connection, from its first step to the first answer to a command.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Arrival {
    /// When it was begun.
    began: Time,
    /// When the last step was done, and how long the slowest took.
    last_step: Time,
    slowest: Duration,
    /// From the beginning to the answer to the greeting.
    greeted_after: Duration,
    /// Was a command answered on this connection?
    has_answered: bool,
    /// From the beginning to the first answer, on the last connection that had one.
    took: Option<Duration>,
    /// Did attempts to connect fail since then, because they took too long?
    was_late: bool,
}

impl Arrival {
    pub(super) fn begin(&mut self, now: Time) {
        let Self { took, was_late, .. } = *self;
        *self = Self { began: now, last_step: now, took, was_late, ..Self::default() };
    }

    pub(super) fn step(&mut self, now: Time) {
        self.slowest = self.slowest.max(now.since(self.last_step));
        self.last_step = now;
    }

    pub(super) fn greeted(&mut self, now: Time) {
        self.step(now);
        self.greeted_after = now.since(self.began);
    }

    /// A command that was written at `sent_at` was answered.
    pub(super) fn answered(&mut self, now: Time, sent_at: Time) {
        if !self.has_answered {
            self.has_answered = true;
            self.was_late = false;
            // There may have been no command for a while.
            self.took = Some(self.greeted_after.saturating_add(now.since(sent_at)));
        }
    }

    pub(super) fn closed(&mut self, problem: &NodeError) {
        self.was_late |= !self.has_answered && matches!(problem, NodeError::TimedOut(_));
        self.has_answered = false;
    }
}

impl Session {
    /// Until when a round waits for the first answer on this connection, if it has not arrived.
    pub(in crate::node) fn is_awaited_until(&self) -> Option<Time> {
        let Arrival { began, took, has_answered, was_late, .. } = self.arrival;
        if has_answered || was_late || self.is_down() {
            return None;
        }
        Some(match took {
            Some(took) => began.after(took.saturating_mul(AGAIN)).min(self.connects_until),
            None => self.connects_until,
        })
    }

    /// Is the first connection being made, so that this node is likely to answer soon after the
    /// others? They are a majority, which took `took` until `at`. Returns until when it is waited
    /// for: for `least` at least if it has accepted the connection, and a quarter of that if it has
    /// not.
    pub(in crate::node) fn arrives_until(
        &self,
        at: Time,
        took: Duration,
        least: Duration,
    ) -> Option<Time> {
        let Arrival { last_step, slowest, has_answered, was_late, .. } = self.arrival;
        if has_answered || was_late || self.arrival.took.is_some() || self.is_down() {
            return None;
        }
        let least = match self.state {
            State::Connecting { phase, .. } if phase != Phase::Securing => least / UNSEEN,
            _ => least,
        };
        let next_step = last_step.after(slowest.saturating_mul(AGAIN));
        Some(at.after(took.max(least)).max(next_step))
    }

    /// Was a command answered on this connection?
    pub(in crate::node) fn has_answered(&self) -> bool {
        self.arrival.has_answered
    }

    /// As if a command had been answered already.
    #[cfg(test)]
    pub(in crate::node) fn used(&mut self) {
        self.arrival.answered(Time::ZERO, Time::ZERO);
    }
}
