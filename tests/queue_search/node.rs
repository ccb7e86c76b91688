//! A node's data, and the scripts that change it: a second version of `node/*.lua`, as small as the
//! search allows.

use crate::scheme::{Mistake, Scheme};
use crate::token::Token;

/// The value of the lock's key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Key {
    #[default]
    Free,
    Held(Token),
    /// Reserved for the waiter with this id.
    Reserved(Token),
}

/// A waiter in the queue. The first one has the lowest number; the id decides between equals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Waiter {
    pub(crate) number: u8,
    pub(crate) id: Token,
    pub(crate) has_lease: bool,
}

/// A command to a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Request {
    /// `SET NX`
    Try(Token),
    /// `queue.lua`; the number is zero for a waiter that has none.
    Queue { id: Token, number: u8, withdraw: Option<Token> },
    /// `turn.lua`
    Turn { id: Token, token: Token },
    /// `release.lua`
    Release(Token),
    /// `leave_queue.lua`
    Leave { id: Token, token: Token },
    /// The release of a program that knows no queue.
    Delete(Token),
}

impl Request {
    /// Is it repeated on the next connection if this one ends before the answer?
    pub(crate) fn is_removal(self) -> bool {
        matches!(self, Self::Release(_) | Self::Leave { .. } | Self::Delete(_))
    }
}

/// What a node answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Outcome {
    Granted,
    Refused,
    Place { number: u8, is_mine: bool },
    Removed,
}

/// The data of a node.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Node {
    pub(crate) key: Key,
    /// Sorted.
    pub(crate) queue: Vec<Waiter>,
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
                Outcome::Granted
            }
            Request::Queue { id, number, withdraw } => {
                self.enter(id, number, withdraw, scheme, bells)
            }
            Request::Turn { id, token } => self.turn(id, token, scheme, bells),
            Request::Release(token) => self.release(token, scheme, bells),
            Request::Leave { id, token } => {
                self.remove(id);
                if self.key == Key::Reserved(id) {
                    self.hand_over(bells);
                }
                self.release(token, scheme, bells)
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
        withdraw: Option<Token>,
        scheme: &Scheme,
        bells: &mut Vec<Token>,
    ) -> Outcome {
        if let Some(token) = withdraw {
            self.delete(token);
        }
        let before = self.queue.iter().find(|waiter| waiter.id == id).map(|waiter| waiter.number);
        let next = self.queue.last().map_or(1, |last| last.number + 1);
        let is_look = number != 0;
        let number = if is_look { number } else { before.unwrap_or(next) };
        let keeps_out = scheme.makes(Mistake::LookKeepsOut) && is_look && before.is_none();
        if !keeps_out {
            self.remove(id);
            self.queue.push(Waiter { number, id, has_lease: true });
            self.queue.sort_unstable();
        }
        self.remove_the_dead();
        let Some(head) = self.queue.first().map(|waiter| waiter.id) else {
            return Outcome::Place { number, is_mine: false };
        };
        let stays = scheme.makes(Mistake::ReservationsStay);
        let is_settled = match self.key {
            Key::Held(_) => true,
            Key::Reserved(owner) => owner == head || stays,
            Key::Free => false,
        };
        if !is_settled {
            self.key = Key::Reserved(head);
            bells.push(head);
        }
        Outcome::Place { number, is_mine: self.key == Key::Reserved(id) }
    }

    fn turn(
        &mut self,
        id: Token,
        token: Token,
        scheme: &Scheme,
        bells: &mut Vec<Token>,
    ) -> Outcome {
        let head = self.queue.first().map(|waiter| waiter.id);
        let is_my_turn = match self.key {
            Key::Held(_) => false,
            Key::Reserved(owner) => owner == id,
            Key::Free if scheme.makes(Mistake::ClaimIgnoresHead) => true,
            Key::Free => head.is_none_or(|head| head == id),
        };
        if !is_my_turn {
            return Outcome::Refused;
        }
        self.key = Key::Held(token);
        if scheme.makes(Mistake::ClaimLeavesQueue) {
            self.remove(id);
        }
        self.remove_the_dead();
        // The bell is deleted, which is pushed like every other change of it.
        bells.push(id);
        Outcome::Granted
    }

    fn release(&mut self, token: Token, scheme: &Scheme, bells: &mut Vec<Token>) -> Outcome {
        if self.delete(token) && !scheme.makes(Mistake::ReleaseForgetsQueue) {
            self.hand_over(bells);
        }
        Outcome::Removed
    }

    /// Reserves the key for the first waiter, whether or not it has a lease.
    fn hand_over(&mut self, bells: &mut Vec<Token>) {
        self.key = Key::Free;
        if let Some(head) = self.queue.first() {
            self.key = Key::Reserved(head.id);
            bells.push(head.id);
        }
    }

    fn delete(&mut self, token: Token) -> bool {
        let is_held = self.key == Key::Held(token);
        if is_held {
            self.key = Key::Free;
        }
        is_held
    }

    fn remove(&mut self, id: Token) {
        self.queue.retain(|waiter| waiter.id != id);
    }

    fn remove_the_dead(&mut self) {
        let dead = self.queue.iter().take_while(|waiter| !waiter.has_lease).count();
        self.queue.drain(..dead);
    }

    /// The tokens that it keeps.
    pub(crate) fn tokens(&self) -> Vec<Token> {
        match self.key {
            Key::Held(token) => vec![token],
            _ => Vec::new(),
        }
    }

    pub(crate) fn end_token(&mut self, token: Token, _: &Scheme) {
        self.delete(token);
    }

    pub(crate) fn end_reservation(&mut self) {
        if let Key::Reserved(_) = self.key {
            self.key = Key::Free;
        }
    }

    pub(crate) fn lose_queue(&mut self) {
        self.queue.clear();
        self.end_reservation();
    }

    pub(crate) fn lose_data(&mut self) {
        self.forgotten.extend(self.tokens());
        (self.key, self.queue) = (Key::Free, Vec::new());
    }
}
