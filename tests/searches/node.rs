//! The state of a node, and what happens to it without a command: time passes, and data is lost.
//!
//! It is what the keys of its locks say (`keys.rs`), without a clock, so that states can be copied
//! and compared. Nothing here knows what a command does: `server.rs` has the scripts do that.

pub(crate) use crate::request::{Outcome, Place, Request};
use crate::token::Token;
use crate::want::Want;

/// How long a reservation lasts, in milliseconds. A step lets one more than that pass.
pub(crate) const CLAIM: u64 = 100;

/// How long a part of a set lasts that waits for the rest: as long as the set's entry.
pub(crate) const PART: u64 = 10 * CLAIM;

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
        Some(Self {
            left: self.left.checked_sub(passed)?,
            ..self
        })
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

/// The state of a lock on a node. All lists are sorted.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Lock {
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

impl Lock {
    /// The tokens of locks and shares that it keeps.
    fn tokens(&self) -> Vec<Token> {
        let held = match self.key {
            Key::Held(token) => Some(token),
            _ => None,
        };
        let shares = self.holders.iter().filter(|share| share.end != End::Over);
        held.into_iter()
            .chain(shares.map(|share| share.token))
            .collect()
    }

    /// Those who can claim something now, and lose that with time.
    fn claimants(&self) -> Vec<Token> {
        let reserved = match self.key {
            Key::Reserved(id, _) => Some(id),
            _ => None,
        };
        let called = self.called.iter().map(|(id, _)| *id);
        reserved.into_iter().chain(called).collect()
    }

    /// Does something last that is passed on after a while?
    fn has_time(&self) -> bool {
        self.is_passing() || !self.called.is_empty() || self.has_shares_left()
    }

    /// Was all that lasts a while not claimed in its time?
    fn is_over(&self) -> bool {
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

    fn is_left(&self) -> bool {
        matches!(self.key, Key::Left(..)) || self.has_shares_left()
    }

    fn has_shares_left(&self) -> bool {
        self.holders.iter().any(|share| share.end == End::Soon)
    }

    /// The token ends, or the share; with the last one, all about shares does.
    fn end_token(&mut self, token: Token) {
        if self.key == Key::Held(token) {
            self.key = Key::Free;
        }
        self.end_shares(|share| share.token == token);
    }

    fn end_shares(&mut self, ends: impl Fn(&Share) -> bool) {
        self.holders
            .iter_mut()
            .filter(|share| ends(share))
            .for_each(|it| it.end = End::Over);
        if self.key == Key::Shared && self.holders.iter().all(|it| it.end == End::Over) {
            self.key = Key::Free;
            self.holders.clear();
            self.stale.clear();
        }
    }

    /// The time of a reservation is over, or of calls; or what ends that was kept after that.
    fn end_reservation(&mut self) {
        if self.is_over() && self.called.iter().all(|(_, is_over)| *is_over) {
            self.called.clear();
        }
        self.called
            .iter_mut()
            .for_each(|(_, is_over)| *is_over = true);
        self.end_shares(|share| share.end == End::Soon);
        self.key = match self.key {
            Key::Reserved(id, time) => time
                .next()
                .map_or(Key::Free, |time| Key::Reserved(id, time)),
            Key::Left(token, time) => time.next().map_or(Key::Free, |time| Key::Left(token, time)),
            other => other,
        };
    }

    fn lose_queue(&mut self) {
        self.queue.clear();
        self.called.clear();
        self.floor = 0;
        if let Key::Reserved(..) = self.key {
            self.key = Key::Free;
        }
    }
}

/// The state of a node: of both locks, of which most searches have the first only.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Node {
    pub(crate) locks: [Lock; 2],
}

impl Node {
    /// All tokens. That of a set is named for each of its locks, and ends with all of them.
    pub(crate) fn tokens(&self) -> Vec<Token> {
        let mut tokens: Vec<Token> = self.locks.iter().flat_map(Lock::tokens).collect();
        tokens.dedup();
        tokens
    }

    pub(crate) fn claimants(&self) -> Vec<Token> {
        self.locks.iter().flat_map(Lock::claimants).collect()
    }

    pub(crate) fn waiters(&self) -> impl Iterator<Item = &Waiter> {
        self.locks.iter().flat_map(|lock| &lock.queue)
    }

    pub(crate) fn waiter_mut(&mut self, place: usize) -> &mut Waiter {
        let mut waiters = self.locks.iter_mut().flat_map(|lock| &mut lock.queue);
        waiters.nth(place).expect("it is in a queue")
    }

    /// Does the waiter stand in the queue of each lock that it wants?
    pub(crate) fn has_waiter(&self, id: Token, want: Want) -> bool {
        let has = |lock: &Lock| lock.queue.iter().any(|waiter| waiter.id == id);
        want.locks().iter().all(|index| has(&self.locks[*index]))
    }

    pub(crate) fn has_time(&self) -> bool {
        self.locks.iter().any(Lock::has_time)
    }

    /// Was all that lasts a while not claimed in its time?
    pub(crate) fn is_over(&self) -> bool {
        let mut lasting = self.locks.iter().filter(|lock| lock.has_time()).peekable();
        lasting.peek().is_some() && lasting.all(Lock::is_over)
    }

    /// Is it free for who wants this?
    pub(crate) fn is_free_for(&self, want: Want) -> bool {
        want.locks()
            .iter()
            .all(|index| self.locks[*index].is_free())
    }

    pub(crate) fn is_free(&self) -> bool {
        self.locks.iter().all(Lock::is_free)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.is_free() && self.waiters().next().is_none()
    }

    /// Does a key last that does not end with time?
    pub(crate) fn is_kept(&self) -> bool {
        self.locks
            .iter()
            .any(|lock| !lock.is_free() && !lock.is_passing())
    }

    pub(crate) fn is_left(&self) -> bool {
        self.locks.iter().any(Lock::is_left)
    }

    pub(crate) fn end_token(&mut self, token: Token) {
        self.locks.iter_mut().for_each(|lock| lock.end_token(token));
    }

    /// Time passes. What is kept after its time is kept for longer than the rest lasts.
    pub(crate) fn end_reservation(&mut self) {
        let are_all_over = self.is_over();
        let passing = self
            .locks
            .iter_mut()
            .filter(|lock| are_all_over || !lock.is_over());
        passing.for_each(Lock::end_reservation);
    }

    pub(crate) fn lose_queue(&mut self) {
        self.locks.iter_mut().for_each(Lock::lose_queue);
    }
}
