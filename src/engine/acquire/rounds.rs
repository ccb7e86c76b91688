//! When the rounds of an acquisition end.
//!
//! A round ends after `node_timeout`. In a new client, or after connections were lost, it goes on
//! for up to `connect_timeout`, until a majority of the nodes has answered: a request needs a round
//! trip, and connecting needs two or more before it.

use super::{Acquire, State, Wait};
use crate::clock::Time;
use crate::engine::{Action, Request};

/// What part of the validity a lock that a majority has granted may wait for the other nodes.
const SPARE: u32 = 8;

impl Acquire {
    /// The end of a round that begins now, in an attempt that began at `started`.
    pub(super) fn deadline(&self, now: Time, started: Time) -> Time {
        now.after(self.rules.node_timeout).min(self.end_of_call(started))
    }

    /// The caller's own deadline, which ends the rounds of an attempt that began at `started`. A
    /// deadline that had passed before means one attempt, and that attempt must have time for
    /// replies.
    pub(super) fn end_of_call(&self, started: Time) -> Time {
        match self.wait {
            Wait::Until(time) if time > started => time,
            _ => Time::MAX,
        }
    }

    /// Begins a round of all nodes that ends at `deadline`, or later if they are still connecting.
    pub(super) fn send(&mut self, now: Time, deadline: Time, action: Action) {
        let request = Request::to_all(&self.rules, now, action);
        let connect_deadline = request.connect_deadline.min(self.latest()).max(deadline);
        let validity = self.rules.drift.validity(self.ttl).saturating_sub(self.min_validity);
        let spare_until = now.after(validity / SPARE);
        let request = Request { deadline, connect_deadline, spare_until, ..request };
        self.state = State::Asking { request, is_sent: false };
    }

    /// When the last round ends in any case: a single attempt may have to connect.
    pub(super) fn latest(&self) -> Time {
        match self.began {
            Some(began) if self.is_single() => began.after(self.rules.connect_timeout),
            _ => self.end(),
        }
    }
}
