//! What happens in an ensemble: messages, and the ways that they take.

use super::{Random, Reach};

/// What happens at some time.
#[derive(Clone, Copy, Debug)]
pub(super) enum Event {
    /// The leader pings the follower.
    HalfTick,
    /// A message of the leader has reached the follower.
    AtFollower(Down),
    /// A message of the follower has reached the leader.
    AtLeader(Up),
    /// The client opens its next connection.
    Reconnect,
    /// The client sends a request on this connection.
    Ask { connection: usize },
    /// The connect request has reached the server of this connection.
    Greeted { connection: usize },
    /// A request has reached the server of this connection.
    Asked { connection: usize, reach: Reach },
    /// What the leader had proposed is committed so far.
    Settled { connection: usize, request: usize },
    /// A reply has reached the client; `None` to its connect request.
    Replied {
        connection: usize,
        request: Option<usize>,
    },
}

/// From the leader to the follower.
#[derive(Clone, Copy, Debug)]
pub(super) enum Down {
    Ping,
    /// The session of this connection exists.
    Validated {
        connection: usize,
    },
    /// A sync or a write was carried out.
    Carried {
        connection: usize,
        request: usize,
    },
}

/// From the follower to the leader.
#[derive(Clone, Copy, Debug)]
pub(super) enum Up {
    /// It has heard from the session since the last ping, or not.
    Pong { has_heard: bool },
    /// Is there the session of this connection?
    Validate { connection: usize },
    Forward {
        connection: usize,
        request: usize,
        reach: Reach,
    },
}

/// The way of messages in one direction, which keep their order.
#[derive(Default)]
pub(super) struct Link {
    last: u64,
    /// From when on nothing arrives.
    pub(super) cut_at: Option<u64>,
}

impl Link {
    /// When a message that is sent now arrives, if it does.
    pub(super) fn arrival(&mut self, now: u64, random: &mut Random) -> Option<u64> {
        self.last = self.last.max(now + random.delay());
        self.cut_at
            .is_none_or(|cut_at| self.last < cut_at)
            .then_some(self.last)
    }
}
