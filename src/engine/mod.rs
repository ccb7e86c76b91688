//! Redlock itself, as state machines that see no socket, no clock and no entropy.
//!
//! An operation is a machine that is told what happened and says what to do next:
//!
//! ```text
//!            handle(now, Attempt(token))          handle(now, Ballot)
//!   Wait ────────────────────────────▶ Send ─────────────────────────▶ Done
//!    ▲                                   │  too few granted
//!    └──────────── Send(undo) ◀──────────┘
//! ```
//!
//! The contract, for [`Acquire`], [`Extend`] and [`Release`] alike: call `poll` until it answers
//! `Wait` or `Done`. After `Send` of a request that [wants an answer](Verb::is_answered), put it to
//! the nodes and `handle` the [`Ballot`] before polling again; any other request is only written.
//! After `Wait(time)`, `handle` an `Attempt` with a token that was never used before, at that time
//! or later. Time never goes back from one call to the next. `started` is the time of the
//! `Attempt`, so the clock must be read before the first byte is written; the time given with a
//! `Ballot` must have been read after the answer that decided it. Both errors are then on the safe
//! side.
//!
//! A round is always the same thing: one request to all nodes, their votes, a verdict. What a
//! request looks like in bytes, and which reply is which vote, is not known here (see
//! `node::command`).

mod acquire;
mod attributes;
mod backoff;
mod extend;
mod lease;
mod quorum;
mod release;
mod request;
mod token;
mod validity;

pub use acquire::{Acquire, Acquired, Wait};
pub use attributes::{Counters, FENCE_MAX, FENCE_SEED_MAX, LockAttributes, LockId, Predecessor};
pub use backoff::{Backoff, Jitter};
pub use extend::{Extend, Extended};
pub use lease::Lease;
pub use quorum::{NODES_MAX, Node, NodeSet, Tally, Verdict, Vote, judge, quorum};
pub use release::{Release, ReleaseOutcome};
pub use request::{Acquisition, Action, Removal, Request, Verb};
pub use token::{Entropy, Token};
pub use validity::{Drift, EXPIRY_GRAIN, TTL_LIMIT, Ttl};

use crate::clock::Time;
use std::time::Duration;

/// The settings that every operation of a client goes by.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Rules {
    /// How many nodes are configured.
    pub nodes: usize,
    /// How long a round may take, connecting included.
    pub node_timeout: Duration,
    /// How far the clocks may run apart.
    pub drift: Drift,
    /// A lock that is left with less than this when it is granted is not handed out.
    pub min_validity: Duration,
    /// The ceiling of the first pause between two attempts.
    pub retry_base: Duration,
    /// The ceiling of any pause between two attempts.
    pub retry_cap: Duration,
    /// How long a lock may be held in all, extensions included.
    pub hold_max: Option<Duration>,
}

impl Rules {
    /// The rules of a client of `nodes` nodes, with the defaults that `config` documents.
    #[must_use]
    pub fn new(nodes: usize, drift: Drift) -> Self {
        Self {
            nodes,
            node_timeout: Duration::from_millis(50),
            drift,
            min_validity: Duration::ZERO,
            retry_base: Duration::from_millis(1),
            retry_cap: Duration::from_millis(100),
            hold_max: None,
        }
    }
}

/// What a round came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Ballot {
    /// The votes. Nodes that had not answered when the round was decided have none.
    pub tally: Tally,
    /// The nodes to which the request was written, in part at least: these may have acted on it.
    pub sent: NodeSet,
    /// The nodes that failed in a way that waiting does not mend, such as a wrong password.
    pub hopeless: NodeSet,
    /// Are two of the nodes one and the same server? Then a majority of them means nothing.
    pub same_server: bool,
    /// What the counters of a fenced lock are.
    pub counters: Counters,
    /// For how long no majority can grant a lock, whatever all other nodes do: so many were started
    /// so recently that what they grant does not count yet. Zero if it is not for that.
    pub quarantine: Duration,
}

impl Ballot {
    /// A ballot with nothing in it yet.
    #[must_use]
    pub fn new(tally: Tally) -> Self {
        let (sent, hopeless, counters) = (NodeSet::EMPTY, NodeSet::EMPTY, Counters::default());
        let quarantine = Duration::ZERO;
        Self { tally, sent, hopeless, same_server: false, counters, quarantine }
    }
}

/// What an operation is told.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Input {
    /// Begin an attempt, with fresh random numbers.
    Attempt(Entropy),
    /// There are no random numbers to begin an attempt with.
    NoEntropy,
    /// The nodes have been asked; this is what they said.
    Ballot(Ballot),
}

/// What an operation wants done.
#[derive(Clone, Debug)]
#[expect(clippy::exhaustive_enums, reason = "the loop that drives an operation must know all")]
pub enum Step<O> {
    /// Put this to the nodes.
    Send(Request),
    /// Let this time come, then begin an attempt.
    Wait(Time),
    /// The operation is over.
    Done(O),
}

/// The state machine of one operation. The module says how it is driven.
pub trait Operation {
    /// What it comes to.
    type Outcome;

    /// Takes in what happened, as of `now`.
    fn handle(&mut self, now: Time, input: Input);

    /// The next thing to do.
    fn poll(&mut self) -> Step<Self::Outcome>;
}

#[cfg(test)]
mod fixture;
