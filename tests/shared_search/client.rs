//! A client, and what it remembers of the answers.
//!
//! Idle -> Trying -> Joining -> (Looking) -> Waiting <-> Looking, Waiting -> Claiming -> Holding,
//! or Claiming -> Looking.

use crate::node::{Outcome, Request, Slot};
use crate::scheme::{Mistake, Scheme, Want};
use crate::token::Token;
use crate::world::{Link, Reply};

/// What a client does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Phase {
    Idle,
    /// The first try, without a place in the queue.
    Trying,
    /// It asked for a number.
    Joining,
    /// It told the nodes its number.
    Looking,
    /// It waits for pushes.
    Waiting,
    /// It takes its turn.
    Claiming,
    Holding,
    /// The validity of its lock has ended, and it has not released it yet.
    Expired,
    Dead,
}

impl Phase {
    pub(crate) fn is_queued(self) -> bool {
        matches!(self, Self::Joining | Self::Looking | Self::Waiting | Self::Claiming)
    }

    /// May it look, or renew, of its own accord?
    pub(crate) fn may_look(self) -> bool {
        matches!(self, Self::Waiting | Self::Holding)
    }
}

/// The answer of a node in the present round.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Answer {
    #[default]
    Pending,
    /// It was reached and carries no vote, or it was not reached.
    NoVote,
    No,
    Yes(Slot),
    Number(u8),
}

/// A client, which wants the lock or a share some times.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Client {
    pub(crate) phase: Phase,
    pub(crate) calls_left: u8,
    pub(crate) want: Want,
    /// The token of the first try of this call, by which the waiter is known.
    pub(crate) id: Token,
    /// The token of the latest attempt.
    pub(crate) token: Token,
    /// The slot of the permit that it holds.
    pub(crate) slot: Slot,
    /// The waiter's number; zero if it has none.
    pub(crate) number: u8,
    pub(crate) round: u16,
    /// Has it been in the queue, so that it must be removed from it?
    pub(crate) was_queued: bool,
    /// Has a majority its number?
    pub(crate) has_joined: bool,
    /// The clients that had joined when this one began, as bits.
    pub(crate) before: u8,
}

impl Client {
    pub(crate) fn new(index: usize, scheme: &Scheme) -> Self {
        let token = Token { client: index as u8, attempt: 0 };
        Self {
            phase: Phase::Idle,
            calls_left: scheme.calls,
            want: scheme.want(index, 0),
            id: token,
            token,
            slot: None,
            number: 0,
            round: 0,
            was_queued: false,
            has_joined: false,
            before: 0,
        }
    }

    /// Does it hold its lock or its share, as far as others must respect it?
    pub(crate) fn holds(&self) -> bool {
        self.phase == Phase::Holding
    }

    /// Remembers what a reply says.
    pub(crate) fn note(&self, link: &mut Link, reply: Reply, scheme: &Scheme) {
        let is_trusting = scheme.makes(Mistake::QuarantineReserves);
        let (command, outcome, counts) = match reply {
            Reply::Outcome { command, outcome, counts } => (command, outcome, counts),
            Reply::Push { id, counts } => {
                let concerns_me = id == self.id && self.phase.is_queued();
                link.is_hinted |= concerns_me && (counts || is_trusting);
                return;
            }
            Reply::Unreachable(command) => {
                if command.round == self.round {
                    link.answer = Answer::NoVote;
                }
                return;
            }
        };
        // Also the answer of an earlier round says whether the waiter is called.
        if let (Outcome::Place { is_mine, .. }, Request::Queue { id, .. }) =
            (outcome, command.request)
        {
            if id == self.id {
                link.is_hinted = is_mine && (counts || is_trusting);
            }
        }
        if command.round == self.round {
            link.answer = match outcome {
                Outcome::Granted(slot) if counts => Answer::Yes(slot),
                Outcome::Granted(_) | Outcome::Removed => Answer::NoVote,
                Outcome::Refused => Answer::No,
                Outcome::Place { number, .. } => Answer::Number(number),
            };
        }
    }
}
