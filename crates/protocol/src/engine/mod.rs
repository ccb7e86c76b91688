//! Redlock itself, without a socket, a clock or entropy.
//!
//! Extending and releasing a lock is one round each: an [`Extension`] and a [`Release`] say what to
//! ask the nodes, and what follows from their votes. Taking one may need many, and is a state
//! machine, [`Acquire`]: it takes an input and returns the next step:
//!
//! ```text
//!            handle(now, Attempt(token))          handle(now, Votes)
//!   Pause ───────────────────────────▶ Send ─────────────────────────▶ Done
//!     ▲                                  │  too few granted
//!     └─────────── Send(undo) ◀──────────┘
//! ```
//!
//! Its contract: call `poll` until it answers `Done`. After `Send` of a request that [wants an
//! answer](Request::is_answered), put it to the nodes and `handle` the [`Votes`] before polling
//! again; any other request is only written. After `Pause(time)`, `handle` an `Attempt` with a
//! token that was never used before, at that time or later. After `Wait`, `handle` such an
//! `Attempt` when a majority of the nodes reserves the lock, or `NotCalled` when the nodes tell
//! something that makes it worth asking, or its time has come. Instead of any of these, it can be
//! `Cancelled` where a step is a [break](Step::is_break), and after a `Wait`.
//!
//! Time never goes back from one call to the next. `started` is the time of the `Attempt`, and an
//! extension or a release has `began`: for both the clock must be read before the first byte is
//! written. The time given with the votes must have been read after the answer that decided the
//! round. Both errors are then on the safe side.
//!
//! A round is one request to all nodes, their votes, and a verdict. The encoding of requests and
//! the meaning of replies are in `node::command`.

mod acquire;
mod attributes;
mod backoff;
mod custom;
mod held_lock;
mod member;
mod node_set;
mod permits;
#[cfg(feature = "diagnostics")]
mod question;
mod queue;
mod quorum;
#[cfg(feature = "groups")]
mod reign;
mod request;
mod validity;

pub use acquire::{Acquire, Acquired};
pub use attributes::{Counters, Entropy, FENCE_MAX, FENCE_SEED_MAX, LockAttributes, LockId};
pub use attributes::{Predecessor, Share, Token};
pub use backoff::{Backoff, Jitter, Wait};
pub use custom::{CustomCommand, RunScript, Said, Script};
pub use held_lock::{Extended, Extension, HeldLock, Release};
pub use member::{NoVote, RegisterMembership};
pub use node_set::{NODES_MAX, Node, NodeSet};
pub use permits::{PERMITS_MAX, PermitSet};
#[cfg(feature = "diagnostics")]
pub use question::Question;
pub use queue::{CLAIM_TIME_MAX, Channel, ClaimTime, QueueEntry, QueueState, QueueView, QueueWait};
pub use queue::{WAITER_LEASE, WAITER_NUMBER_MAX};
pub use quorum::{Tally, Verdict, Vote, judge, quorum, until_quorum};
#[cfg(feature = "groups")]
pub use reign::{Acknowledgements, ReignQuestion, ReignStep};
pub use request::Request;
pub use request::{Before, Claim, Command, Fence, Keep, Listen, ListenStep, Ping, Removal};
pub use validity::{Drift, EXPIRY_GRAIN, TTL_LIMIT, Ttl};

use crate::time::Time;
use std::time::Duration;

/// The settings of a client that every operation uses.
#[derive(Clone, Debug)]
pub struct Rules {
    pub nodes: usize,
    /// How long a round may take, on connections that are ready.
    pub node_timeout: Duration,
    /// How long it may take if a majority has yet to answer for the first time on new connections.
    pub connect_timeout: Duration,
    pub drift: Drift,
    /// How much longer than its ttl a key lives on a node. Zero if no node is a group.
    pub skew: Duration,
    /// A lock that is granted with less validity left than this is not returned to the caller.
    pub min_validity: Duration,
    /// The ceiling of the first pause between two attempts.
    pub retry_base: Duration,
    /// The ceiling of any pause between two attempts.
    pub retry_cap: Duration,
    /// How long a lock may be held in all, extensions included.
    pub hold_max: Option<Duration>,
    /// How long a waiter in front of a lock's queue may be silent. `None` for a client that does
    /// not queue.
    pub waiter_lease: Option<Ttl>,
}

/// How long a claim may be delayed at a client or at a node, in addition to the time of a round.
const CLAIM_DELAY: Duration = Duration::from_millis(50);

impl Rules {
    /// The rules of a client of `nodes` nodes, with the defaults that `config` documents.
    pub fn new(nodes: usize, drift: Drift) -> Self {
        Self {
            nodes,
            node_timeout: Duration::from_millis(50),
            connect_timeout: Duration::from_secs(2),
            drift,
            skew: Duration::ZERO,
            min_validity: Duration::ZERO,
            retry_base: Duration::from_millis(1),
            retry_cap: Duration::from_millis(100),
            hold_max: None,
            waiter_lease: None,
        }
    }

    /// How long a node reserves a free lock for a waiter of this client: a notified one needs a
    /// round for its claim. On a busy machine it needs longer, by a time that does not grow with
    /// the round: of a round of 50 ms, twice as long again. One that has to ask does so at least
    /// every `retry_cap`.
    ///
    /// If no majority grants anything for so long because of a `quarantine`, that time does not
    /// count: the first waiter would miss one reservation after the other, and whoever had the last
    /// one would be served before it.
    pub fn claim_time(&self, quarantine: Duration) -> ClaimTime {
        let least = self
            .node_timeout
            .saturating_add(CLAIM_DELAY)
            .max(3 * CLAIM_DELAY);
        let notified = self.node_timeout.saturating_mul(3).min(least);
        let asking = notified.saturating_add(self.retry_cap.saturating_mul(2));
        let ttl = |time: Duration| {
            let whole = time.saturating_add(quarantine);
            // None begins so long before the end that it ends just before it.
            let fits = whole <= CLAIM_TIME_MAX || quarantine.is_zero();
            Ttl::SHORTEST.at_least(if fits {
                whole.min(CLAIM_TIME_MAX)
            } else {
                CLAIM_TIME_MAX / 2
            })
        };
        ClaimTime {
            notified: ttl(notified),
            asking: ttl(asking),
        }
    }
}

/// The result of a round.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Votes {
    /// The votes. Nodes that had not answered when the round was decided have none.
    pub tally: Tally,
    /// The nodes to which the request was written, at least in part: they may have carried it out.
    pub sent: NodeSet,
    /// The nodes with an error that waiting does not resolve, such as a wrong password.
    pub permanent_failures: NodeSet,
    /// Are two of the nodes one and the same server? Then a majority of them means nothing.
    pub same_server: bool,
    pub counters: Counters,
    /// For how long no majority can grant a lock because of quarantined nodes: too many were
    /// started so recently that their grants do not count yet. Zero if the other nodes suffice.
    pub quarantine: Duration,
    /// Did the round go on beyond its deadline because nodes were connecting, or slow?
    pub was_prolonged: bool,
    /// What the nodes say about the lock's queue.
    pub queue: QueueState,
    /// The permit that was granted: the one with the most votes. Grants of others count as
    /// refusals.
    pub permit: Option<u32>,
}

impl Votes {
    pub fn new(tally: Tally) -> Self {
        Self {
            tally,
            ..Self::default()
        }
    }
}

/// An input of an acquisition.
#[derive(Clone, Debug)]
pub enum Input {
    /// Begin an attempt, with fresh random numbers: the pause is over, or a majority of the nodes
    /// reserves the lock for the waiter.
    Attempt(Entropy),
    /// No random numbers are available for an attempt.
    NoEntropy,
    /// The result of the round that was sent.
    Votes(Votes),
    /// The wait in the nodes' queue has ended, and no majority reserves the lock.
    NotCalled,
    /// The caller wants the result no more. The step must be [a break](Step::is_break), or a wait
    /// that has ended.
    Cancelled,
}

/// The next step of an acquisition.
#[derive(Clone, Debug)]
pub enum Step {
    Send(Request),
    /// Pause until this time, then begin an attempt.
    Pause(Time),
    Wait(QueueWait),
    Done(Acquired),
}

impl Step {
    /// Is nothing under way: has the last attempt ended, and no other begun? Then progress can be
    /// reported and the call cancelled, even if this step was to be sent.
    pub fn is_break(&self) -> bool {
        match self {
            Self::Pause(_) | Self::Wait(_) => true,
            Self::Send(request) => request.queue_entry().is_some(),
            Self::Done(_) => false,
        }
    }
}

#[cfg(test)]
mod fixture;
#[cfg(test)]
pub(crate) use fixture::Verb;
