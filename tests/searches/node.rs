//! The state of a node, and what happens to it without a command: time passes, and data is lost.
//!
//! It is what the keys of one lock say (`keys.rs`), without a clock, so that states can be copied
//! and compared. Nothing here knows what a command does: `server.rs` has the scripts do that.

pub(crate) use crate::request::{Outcome, Place, Request};
use crate::token::Token;
use crate::want::Want;

/// How long a reservation lasts, in milliseconds. A step lets one more than that pass.
pub(crate) const CLAIM: u64 = 100;

/// How long keys are kept after the time of a reservation.
pub(crate) const GRACE: u64 = 1000;

/// The value of the lock's key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Key {
    #[default]
    Free,
    Held(Token),
    /// Reserved for the waiter with this id.
    Reserved(Token, Time),
    /// The holder of this token has left the lock for a while.
    Left(Token, Time),
    /// There are holders of shares.
    Shared,
}

/// How long a reservation lasts, or a lock that was left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Time {
    /// Is the key kept for longer, in which the next waiter asks?
    pub(crate) has_grace: bool,
    /// For how many milliseconds the key lasts.
    pub(crate) left: u64,
}

impl Time {
    /// Is it over, so that who asks passes the lock on?
    pub(crate) fn is_over(self) -> bool {
        self.has_grace && self.left <= GRACE
    }

    /// What remains after a step, if the key is still there.
    fn next(self) -> Option<Self> {
        let passed = if self.is_over() { GRACE } else { CLAIM } + 1;
        Some(Self { left: self.left.checked_sub(passed)?, ..self })
    }
}

/// The slot of a permit; a reader has none.
pub(crate) type Slot = Option<u8>;

/// A share that a node has given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Share {
    pub(crate) slot: Slot,
    pub(crate) token: Token,
    pub(crate) end: End,
}

/// When a share ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum End {
    /// It has ended, and no script has removed it yet.
    Over,
    /// Its holder has left it for a while.
    Soon,
    Later,
}

/// What a waiter's entry says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Entry {
    /// It has expired.
    Gone,
    /// The waiter has taken its turn, so that its entry only keeps its number.
    Served,
    For(Want),
}

/// A waiter in the queue. The first one has the lowest number; the id decides between equals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Waiter {
    pub(crate) number: u8,
    pub(crate) id: Token,
    pub(crate) entry: Entry,
}

impl Waiter {
    pub(crate) fn has_lease(&self) -> bool {
        self.entry != Entry::Gone
    }
}

/// The state of a node. All lists are sorted.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Node {
    pub(crate) key: Key,
    pub(crate) holders: Vec<Share>,
    /// Shares that are still in the index of permits, and no more among the holders.
    pub(crate) stale: Vec<(u8, Token)>,
    pub(crate) queue: Vec<Waiter>,
    /// The waiters that are called for a share, and whether the time for that is over.
    pub(crate) called: Vec<(Token, bool)>,
    /// The largest number of a waiter that took its share here.
    pub(crate) floor: u8,
}

impl Node {
    /// The tokens of locks and shares that it keeps.
    pub(crate) fn tokens(&self) -> Vec<Token> {
        let held = match self.key {
            Key::Held(token) => Some(token),
            _ => None,
        };
        let shares = self.holders.iter().filter(|share| share.end != End::Over);
        held.into_iter().chain(shares.map(|share| share.token)).collect()
    }

    /// Those who can claim something now, and lose that with time.
    pub(crate) fn claimants(&self) -> Vec<Token> {
        let reserved = match self.key {
            Key::Reserved(id, _) => Some(id),
            _ => None,
        };
        let called = self.called.iter().map(|(id, _)| *id);
        reserved.into_iter().chain(called).collect()
    }

    /// Does something last that is passed on after a while?
    pub(crate) fn has_time(&self) -> bool {
        self.is_passing() || !self.called.is_empty() || self.has_shares_left()
    }

    /// Was all that lasts a while not claimed in its time?
    pub(crate) fn is_over(&self) -> bool {
        match self.key {
            Key::Reserved(_, time) | Key::Left(_, time) => time.is_over(),
            _ if self.has_shares_left() => false,
            _ => self.has_time() && self.called.iter().all(|(_, is_over)| *is_over),
        }
    }

    pub(crate) fn is_free(&self) -> bool {
        self.key == Key::Free
    }

    /// Does the key end with time, whatever happens?
    pub(crate) fn is_passing(&self) -> bool {
        matches!(self.key, Key::Reserved(..) | Key::Left(..))
    }

    pub(crate) fn is_left(&self) -> bool {
        matches!(self.key, Key::Left(..)) || self.has_shares_left()
    }

    fn has_shares_left(&self) -> bool {
        self.holders.iter().any(|share| share.end == End::Soon)
    }

    /// The token ends, or the share; with the last one, all about shares does.
    pub(crate) fn end_token(&mut self, token: Token) {
        if self.key == Key::Held(token) {
            self.key = Key::Free;
        }
        self.end_shares(|share| share.token == token);
    }

    fn end_shares(&mut self, ends: impl Fn(&Share) -> bool) {
        self.holders.iter_mut().filter(|share| ends(share)).for_each(|it| it.end = End::Over);
        if self.key == Key::Shared && self.holders.iter().all(|it| it.end == End::Over) {
            self.key = Key::Free;
            self.holders.clear();
            self.stale.clear();
        }
    }

    /// The time of a reservation is over, or of calls; or what ends that was kept after that.
    pub(crate) fn end_reservation(&mut self) {
        if self.is_over() && self.called.iter().all(|(_, is_over)| *is_over) {
            self.called.clear();
        }
        self.called.iter_mut().for_each(|(_, is_over)| *is_over = true);
        self.end_shares(|share| share.end == End::Soon);
        self.key = match self.key {
            Key::Reserved(id, time) => {
                time.next().map_or(Key::Free, |time| Key::Reserved(id, time))
            }
            Key::Left(token, time) => time.next().map_or(Key::Free, |time| Key::Left(token, time)),
            other => other,
        };
    }

    pub(crate) fn lose_queue(&mut self) {
        self.queue.clear();
        self.called.clear();
        self.floor = 0;
        if let Key::Reserved(..) = self.key {
            self.key = Key::Free;
        }
    }
}
