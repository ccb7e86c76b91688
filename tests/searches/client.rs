//! A client, and what it remembers of the answers.
//!
//! Idle -> Trying -> Joining -> (Looking) -> Waiting <-> Looking, Waiting -> Claiming -> Holding,
//! or Claiming -> Looking. A waiter that has missed its reservation a few times leaves and begins
//! again.

use crate::mistake::Mistake;
use crate::node::{Outcome, Place, Request, Slot};
use crate::pace::Pace;
use crate::request::Word;
use crate::scheme::Scheme;
use crate::token::Token;
use crate::want::Want;
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
        matches!(
            self,
            Self::Joining | Self::Looking | Self::Waiting | Self::Claiming
        )
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
    Place(Place),
}

impl Answer {
    pub(crate) fn place(self) -> Option<Place> {
        match self {
            Self::Place(place) => Some(place),
            _ => None,
        }
    }
}

/// Waiters up to this place ask when a reservation or a token ends that they were told of.
pub(crate) const IN_FRONT: u8 = 2;

/// After how many misses a waiter gives its place up.
pub(crate) const MISSES_MAX: u8 = 4;

/// A client, which wants the lock or a share some times.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Client {
    pub(crate) phase: Phase,
    pub(crate) calls_left: u8,
    pub(crate) want: Want,
    /// In which queues it stands: a set may wait for one of its locks alone.
    pub(crate) awaited: Want,
    /// May nodes keep a part of a set for it while it waits for the rest?
    pub(crate) is_patient: bool,
    /// The token of the first try of this call, by which the waiter is known.
    pub(crate) id: Token,
    /// The token of the latest attempt.
    pub(crate) token: Token,
    /// The slot of the permit that it holds.
    pub(crate) slot: Slot,
    /// The slots that are free on a majority, as bits, until its next turn.
    pub(crate) free: u8,
    /// The waiter's number; zero if it has none.
    pub(crate) number: u8,
    pub(crate) round: u16,
    /// Has it been in the queue, so that it must be removed from it?
    pub(crate) was_queued: bool,
    /// Has a majority its number?
    pub(crate) has_joined: bool,
    /// The clients that had joined when this one began, as bits.
    pub(crate) before: u8,
    pub(crate) pace: Pace,
    /// How many waiters were before it when it was last told.
    pub(crate) place: u8,
    /// How often it did not take the lock in time when it was its turn.
    pub(crate) misses: u8,
    /// Did its last look count as a miss, because a majority found it out of the queue?
    pub(crate) is_out: bool,
}

impl Client {
    pub(crate) fn new(index: usize, scheme: &Scheme) -> Self {
        let token = Token {
            client: index as u8,
            attempt: 0,
        };
        Self {
            phase: Phase::Idle,
            calls_left: scheme.calls,
            want: scheme.want(index, 0),
            awaited: scheme.want(index, 0),
            is_patient: true,
            id: token,
            token,
            slot: None,
            free: 0,
            number: 0,
            round: 0,
            was_queued: false,
            has_joined: false,
            before: 0,
            pace: Pace::Prompt,
            place: 0,
            misses: 0,
            is_out: false,
        }
    }

    /// Does it hold its lock or its share, as far as others must respect it?
    pub(crate) fn holds(&self) -> bool {
        self.phase == Phase::Holding
    }

    /// Is it a set that waits, and that may keep a part of it from others?
    pub(crate) fn may_lose_patience(&self) -> bool {
        self.phase.is_queued() && self.want.is_set() && self.is_patient
    }

    /// Can it take the lock when it is its turn?
    pub(crate) fn is_good(&self) -> bool {
        self.pace == Pace::Prompt && self.phase != Phase::Dead
    }

    /// Remembers what a reply says.
    pub(crate) fn note(&self, link: &mut Link, reply: Reply, scheme: &Scheme) {
        let is_trusting = scheme.makes(Mistake::QuarantineReserves);
        let (command, outcome, counts) = match reply {
            Reply::Outcome {
                command,
                outcome,
                counts,
            } => (command, outcome, counts),
            Reply::Push { id, word, counts } => {
                if id == self.id && self.phase.is_queued() {
                    match word {
                        // Each push is about one key, and only answers say that it has all.
                        Word::Reserved if self.want.is_set() => link.asks = Some(Word::AskNow),
                        Word::Reserved => link.is_hinted |= counts || is_trusting,
                        word => link.asks = link.asks.max(Some(word)),
                    }
                }
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
        if let (Outcome::Place(place), Request::Queue { id, want, .. }) = (outcome, command.request)
        {
            if id == self.id && want == self.awaited {
                link.is_hinted = place.is_mine && (counts || is_trusting);
                if place.ends && place.before <= IN_FRONT {
                    link.asks = link.asks.max(Some(Word::AskLater));
                }
            }
        }
        if command.round == self.round {
            link.answer = match outcome {
                Outcome::Granted(slot) if counts => Answer::Yes(slot),
                Outcome::Granted(_) | Outcome::Removed => Answer::NoVote,
                Outcome::Refused => Answer::No,
                Outcome::Place(place) => Answer::Place(place),
            };
        }
    }
}
