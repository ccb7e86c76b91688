//! What the threads of a client of a ZooKeeper ensemble ask of its event loop.

use crate::clock::Time;
use crate::engine::Token;
use crate::zookeeper::contender::Plan;
use crate::zookeeper::keeper::Loss;
use crate::zookeeper::message::Request;
use std::time::Duration;

/// Called when a lock that was held is lost.
pub(crate) type OnLoss = Box<dyn Fn(Loss) + Send>;

/// What a caller waits for: see the methods of [`Keeper`](crate::zookeeper::keeper::Keeper).
pub(crate) enum KeeperOrder {
    Contend {
        token: Token,
        plan: Box<Plan>,
        /// For how long it is held, once granted.
        hold: Duration,
        until: Time,
    },
    /// Wait on for a lock that was contended for.
    Wait {
        token: Token,
        until: Time,
    },
    /// A held lock changes hands within this client.
    TakeOver {
        token: Token,
        end: Time,
    },
    /// Is it held? Then until this time at least.
    Check {
        token: Token,
        end: Time,
        until: Time,
    },
    Release {
        token: Token,
        until: Time,
    },
    Ask {
        requests: Vec<Request>,
        until: Time,
    },
}

impl KeeperOrder {
    /// When the caller expects the outcome at the latest.
    pub(super) fn until(&self) -> Option<Time> {
        match self {
            Self::Contend { until, .. }
            | Self::Wait { until, .. }
            | Self::Check { until, .. }
            | Self::Release { until, .. }
            | Self::Ask { until, .. } => Some(*until),
            Self::TakeOver { .. } => None,
        }
    }
}

/// What needs no outcome.
pub(crate) enum KeeperMessage {
    /// Give a lock up, or the wait for it.
    GiveUp(Token),
    /// A lock that was given up stays until this time.
    Leave(Token, Time),
    /// Tell of the loss of this lock; at once if it is not held any more.
    Watch(Token, OnLoss),
    /// End the waits of one caller, or of all, now and from now on.
    EndWaits(Option<Token>),
}
