//! A node's data, and the scripts that change it: a second version of `node/*.lua` with shares, as
//! small as the search allows. What concerns holders of shares is in `shares.rs`.

use crate::scheme::{Mistake, Scheme, Want};
use crate::token::Token;

/// The value of the lock's key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Key {
    #[default]
    Free,
    Held(Token),
    /// Reserved for the waiter with this id.
    Reserved(Token),
    /// There are holders of shares.
    Shared,
}

/// The slot of a permit; a reader has none.
pub(crate) type Slot = Option<u8>;

/// A share that a node has given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Share {
    pub(crate) slot: Slot,
    pub(crate) token: Token,
}

/// A waiter in the queue. The first one has the lowest number; the id decides between equals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Waiter {
    pub(crate) number: u8,
    pub(crate) id: Token,
    pub(crate) has_lease: bool,
    /// Nothing if this waiter has taken the exclusive lock here: the value of its lease is empty.
    pub(crate) want: Option<Want>,
}

/// A command to a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Request {
    /// `SET NX`
    Try(Token),
    /// `share.lua` without a waiter
    TryShare { token: Token, want: Want },
    /// `queue.lua`; the number is zero for a waiter that has none.
    Queue { id: Token, number: u8, withdraw: Option<Token>, want: Want },
    /// `turn.lua`
    Turn { id: Token, token: Token },
    /// `share.lua`
    TurnShare { id: Token, token: Token, want: Want, first: Slot },
    /// `extend.lua`, `extend_shared.lua`
    Extend { token: Token, want: Want, slot: Slot },
    /// `restore.lua`
    Restore(Token),
    /// `restore_shared.lua`
    RestoreShare { id: Option<Token>, token: Token, slot: Slot },
    /// `release.lua`
    Release(Token),
    /// `leave_queue.lua`
    Leave { id: Token, token: Token },
    /// `release_shared.lua`
    ReleaseShare { id: Option<Token>, token: Token, want: Want },
    /// The release of a program that knows no queue.
    Delete(Token),
}

impl Request {
    /// Is it repeated on the next connection if this one ends before the answer?
    pub(crate) fn is_removal(self) -> bool {
        matches!(
            self,
            Self::Release(_) | Self::Leave { .. } | Self::ReleaseShare { .. } | Self::Delete(_)
        )
    }
}

/// What a node answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Outcome {
    Granted(Slot),
    Refused,
    Place { number: u8, is_mine: bool },
    Removed,
}

/// The data of a node.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Node {
    pub(crate) key: Key,
    /// Sorted. There are some if the key is shared, and only then.
    pub(crate) holders: Vec<Share>,
    /// Sorted.
    pub(crate) queue: Vec<Waiter>,
    /// The largest number of a waiter that took its share here.
    pub(crate) floor: u8,
    /// The tokens that it forgot in restarts. As long as one of them may be valid, its grants do
    /// not count.
    pub(crate) forgotten: Vec<Token>,
    pub(crate) is_down: bool,
}

impl Node {
    /// Carries out a command. Bells that ring are added to `bells`.
    pub(crate) fn run(
        &mut self,
        request: Request,
        scheme: &Scheme,
        bells: &mut Vec<Token>,
    ) -> Outcome {
        match request {
            Request::Try(_) if self.key != Key::Free => Outcome::Refused,
            Request::Try(token) => {
                self.key = Key::Held(token);
                Outcome::Granted(None)
            }
            Request::TryShare { token, want } => self.share(None, token, want, scheme, bells),
            Request::Queue { id, number, withdraw, want } => {
                if let Some(token) = withdraw {
                    self.withdraw(token, want, scheme, bells);
                }
                self.enter(id, number, want, scheme, bells)
            }
            Request::Turn { id, token } => self.turn(id, token, bells),
            Request::TurnShare { id, token, want, first } => {
                self.share(Some((id, first)), token, want, scheme, bells)
            }
            Request::Extend { token, want, slot } => self.extend(token, want, slot),
            Request::Restore(token) => match self.key {
                Key::Free | Key::Reserved(_) => {
                    self.key = Key::Held(token);
                    Outcome::Granted(None)
                }
                _ => Outcome::Refused,
            },
            Request::RestoreShare { id, token, slot } => {
                let outcome = self.restore(token, slot, scheme);
                if let Some(id) = id.filter(|_| !scheme.makes(Mistake::RestoreLeavesWaiter)) {
                    self.serve(id, scheme, bells);
                }
                outcome
            }
            Request::Release(token) => {
                if self.delete(token) && !scheme.makes(Mistake::ReleaseForgetsQueue) {
                    self.hand_over(bells);
                }
                Outcome::Removed
            }
            Request::Leave { id, token } => self.leave(id, token, scheme, bells),
            Request::ReleaseShare { id, token, want } => {
                self.release_share(id, token, want, scheme, bells)
            }
            Request::Delete(token) => {
                self.delete(token);
                Outcome::Removed
            }
        }
    }

    fn enter(
        &mut self,
        id: Token,
        number: u8,
        want: Want,
        scheme: &Scheme,
        bells: &mut Vec<Token>,
    ) -> Outcome {
        let before = self.queue.iter().find(|waiter| waiter.id == id).map(|waiter| waiter.number);
        let last = self.queue.last().map_or(0, |last| last.number);
        let next = last.max(if scheme.makes(Mistake::NoFloor) { 0 } else { self.floor }) + 1;
        let number = if number != 0 { number } else { before.unwrap_or(next) };
        self.remove(id);
        self.queue.push(Waiter { number, id, has_lease: true, want: Some(want) });
        self.queue.sort_unstable();
        self.remove_the_dead(0);
        let head = self.queue[0].id;
        let is_free = matches!(self.key, Key::Free | Key::Reserved(_));
        if is_free && self.key != Key::Reserved(head) {
            self.key = Key::Reserved(head);
            bells.push(head);
        }
        let is_mine = match self.key {
            Key::Shared if want.is_share() => self.slot_for(id, scheme).is_some(),
            key => key == Key::Reserved(id),
        };
        Outcome::Place { number, is_mine }
    }

    fn turn(&mut self, id: Token, token: Token, bells: &mut Vec<Token>) -> Outcome {
        let head = self.queue.first().map(|waiter| waiter.id);
        let is_my_turn = match self.key {
            Key::Held(_) | Key::Shared => false,
            Key::Reserved(owner) => owner == id,
            Key::Free => head.is_none_or(|head| head == id),
        };
        if !is_my_turn {
            return Outcome::Refused;
        }
        self.key = Key::Held(token);
        for waiter in self.queue.iter_mut().filter(|waiter| waiter.id == id && waiter.has_lease) {
            waiter.want = None;
        }
        self.remove_the_dead(1);
        // The bell is deleted, which is pushed like every other change of it.
        bells.push(id);
        Outcome::Granted(None)
    }

    fn leave(
        &mut self,
        id: Token,
        token: Token,
        scheme: &Scheme,
        bells: &mut Vec<Token>,
    ) -> Outcome {
        self.remove(id);
        let is_free = self.key == Key::Held(token) || self.key == Key::Reserved(id);
        if is_free && scheme.makes(Mistake::ReleaseForgetsQueue) {
            self.key = Key::Free;
        } else if is_free {
            self.hand_over(bells);
        } else if self.key == Key::Shared {
            self.ring_head_if_share(bells);
        }
        Outcome::Removed
    }

    /// Reserves the key for the first waiter, whether or not it has a lease.
    pub(crate) fn hand_over(&mut self, bells: &mut Vec<Token>) {
        self.key = Key::Free;
        if let Some(head) = self.queue.first() {
            self.key = Key::Reserved(head.id);
            bells.push(head.id);
        }
    }

    pub(crate) fn ring_head_if_share(&self, bells: &mut Vec<Token>) {
        let is_share =
            |waiter: &&Waiter| waiter.has_lease && waiter.want.is_some_and(Want::is_share);
        bells.extend(self.queue.first().filter(is_share).map(|head| head.id));
    }

    pub(crate) fn delete(&mut self, token: Token) -> bool {
        let is_held = self.key == Key::Held(token);
        if is_held {
            self.key = Key::Free;
        }
        is_held
    }

    pub(crate) fn remove(&mut self, id: Token) {
        self.queue.retain(|waiter| waiter.id != id);
    }

    /// Removes waiters without a lease, from this place on up to the first with one.
    fn remove_the_dead(&mut self, from: usize) {
        let after = self.queue.iter().skip(from);
        let dead = after.take_while(|waiter| !waiter.has_lease).count();
        self.queue.drain(from.min(self.queue.len())..from.min(self.queue.len()) + dead);
    }

    /// The tokens that it keeps.
    pub(crate) fn tokens(&self) -> Vec<Token> {
        let held = match self.key {
            Key::Held(token) => Some(token),
            _ => None,
        };
        held.into_iter().chain(self.holders.iter().map(|share| share.token)).collect()
    }

    pub(crate) fn end_token(&mut self, token: Token, scheme: &Scheme) {
        self.delete(token);
        if !scheme.makes(Mistake::SharesStay) {
            self.remove_share(token);
        }
        self.settle();
    }

    pub(crate) fn end_reservation(&mut self) {
        if let Key::Reserved(_) = self.key {
            self.key = Key::Free;
        }
    }

    pub(crate) fn lose_queue(&mut self) {
        self.queue.clear();
        self.floor = 0;
        self.end_reservation();
    }

    pub(crate) fn lose_data(&mut self) {
        self.forgotten.extend(self.tokens());
        (self.key, self.floor) = (Key::Free, 0);
        (self.holders, self.queue) = (Vec::new(), Vec::new());
    }
}
