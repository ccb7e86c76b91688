//! What the leader knows of the session, and the order in which a server replies.

use super::{Random, Reach, TICK, TIMEOUT};
use std::collections::BTreeSet;

/// The leader, with the end of the session as it sees it.
pub(super) struct Leader {
    /// When its ticks begin.
    phase: u64,
    /// When it ends the session, unless it hears of it again.
    expires_at: u64,
    /// When the majority leaves it, and when the next leader begins.
    deposed: Option<(u64, u64)>,
    /// When all that it has proposed is committed; `None` if never.
    settled_at: Option<u64>,
}

impl Leader {
    /// One that has begun the session before the client's first connection.
    pub(super) fn new(random: &mut Random) -> Self {
        let phase = random.below(TICK);
        let mut leader = Self {
            phase,
            expires_at: u64::MAX,
            deposed: None,
            settled_at: Some(0),
        };
        leader.touch(0);
        leader
    }

    pub(super) fn lose_majority(&mut self, at: u64, next_leader_at: u64) {
        self.deposed = Some((at, next_leader_at));
    }

    /// It has heard of the session. Returns whether there is one.
    pub(super) fn touch(&mut self, now: u64) -> bool {
        if now >= self.expires_at {
            return false;
        }
        self.expires_at = self.expiry(now);
        true
    }

    /// The end of a session that it has heard of at `now`: the next whole tick after its timeout.
    fn expiry(&self, now: u64) -> u64 {
        let due = now + TIMEOUT + TICK - self.phase;
        (due / TICK + 1) * TICK + self.phase - TICK
    }

    /// When the session has ended for the ensemble.
    pub(super) fn gone_at(&self) -> u64 {
        match self.deposed {
            Some((at, next_leader_at)) if at <= self.expires_at => self.expiry(next_leader_at),
            _ => self.expires_at,
        }
    }

    /// When a sync or a write that has reached it is carried out, if it is. It refuses those of a
    /// session that it has ended, and the client that learns of it promises nothing more.
    pub(super) fn settles(&mut self, now: u64, reach: Reach, random: &mut Random) -> Option<u64> {
        if now >= self.expires_at {
            return None;
        }
        let before = self.settled_at?;
        let time = match reach {
            // Another follower's acknowledgement is needed.
            Reach::Majority => (now + random.delay()).max(before),
            _ => return Some(now.max(before)),
        };
        let is_logged = self.deposed.is_none_or(|(at, _)| time < at);
        self.settled_at = is_logged.then_some(time);
        self.settled_at
    }
}

/// The replies that a server has for one connection.
#[derive(Default)]
pub(super) struct Replies {
    asked: usize,
    replied: usize,
    carried: BTreeSet<usize>,
}

impl Replies {
    /// The number of the next request.
    pub(super) fn asked(&mut self) -> usize {
        self.asked += 1;
        self.asked - 1
    }

    /// A request was carried out. Returns the requests that are answered now, in their order.
    pub(super) fn carried(&mut self, request: usize) -> Vec<usize> {
        self.carried.insert(request);
        let mut ready = Vec::new();
        while self.carried.remove(&self.replied) {
            ready.push(self.replied);
            self.replied += 1;
        }
        ready
    }
}
