//! A node's data, and the scripts that change it: a second version of `node/*.lua`, as small as the
//! search allows. `replay.rs` compares it with the scripts.
//!
//! It has no clock. What ends with time does so by a step of its own: first the time of a
//! reservation, and then, if somebody stands behind, the key that is kept a little longer.

use crate::air::{Air, Word};
pub(crate) use crate::request::{Outcome, Place, Request};
use crate::scheme::{Mistake, Scheme};
use crate::time::Time;
use crate::token::Token;

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
}

/// How many reservations a renewal is good for if it prolongs them.
const PROLONGED: u8 = 10;

/// A waiter in the queue. The first one has the lowest number; the id decides between equals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Waiter {
    pub(crate) number: u8,
    pub(crate) id: Token,
    pub(crate) has_lease: bool,
    /// Has it taken its turn, so that its entry only keeps its number?
    pub(crate) is_served: bool,
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
    /// Carries out a command.
    pub(crate) fn run(&mut self, request: Request, scheme: &Scheme, air: &mut Air) -> Outcome {
        match request {
            Request::Try(_) if self.key != Key::Free => Outcome::Refused,
            Request::Try(token) => {
                self.key = Key::Held(token);
                Outcome::Granted
            }
            Request::Queue { id, number, withdraw } => {
                if let Some(token) = withdraw {
                    self.delete(token);
                }
                self.enter(id, number, scheme, air)
            }
            Request::Turn { id, token } => self.turn(id, token, scheme),
            Request::Release(token) => self.release(token, scheme, air),
            Request::Leave { id, token } => {
                let was_first = self.queue.first().is_some_and(|head| head.id == id);
                self.remove(id);
                let is_other = self.key != Key::Free && self.key != Key::Held(token);
                if self.reservation() == Some(id) {
                    self.reserve(scheme, air);
                } else if was_first && is_other {
                    self.tell_at(0, Word::AskNow, scheme, air);
                }
                self.release(token, scheme, air)
            }
            Request::Linger { id, token } => {
                id.into_iter().for_each(|id| self.remove(id));
                if self.key == Key::Held(token) {
                    let has_grace = self.tell_at(0, Word::AskLater, scheme, air).is_some();
                    self.key = Key::Left(token, Time { has_grace, ..Time::default() });
                }
                Outcome::Removed
            }
            Request::Delete(token) => {
                self.delete(token);
                Outcome::Removed
            }
        }
    }

    fn enter(&mut self, id: Token, number: u8, scheme: &Scheme, air: &mut Air) -> Outcome {
        let known = self.number_of(id);
        let passes_in_time = scheme.makes(Mistake::PassesInTime) && self.reservation() != Some(id);
        let is_over = self.time().is_some_and(|time| time.is_over || passes_in_time);
        let late = self.reservation().filter(|_| is_over);
        let is_late = late.is_some_and(|late| self.pass_over(late, id, scheme));
        let was_out = number != 0 && (is_late || known.is_none());
        let is_kept_out =
            scheme.makes(Mistake::LookKeepsOut) && number != 0 && self.number_of(id).is_none();
        let given = match is_late || is_kept_out {
            true => known.unwrap_or(number.max(1)),
            false => self.put_in(id, number, scheme),
        };
        let head = self.queue.first().map(|waiter| waiter.id);
        let owner = self.reservation();
        let is_moved = owner != head && !scheme.makes(Mistake::ReservationsStay);
        if is_over || self.key == Key::Free || owner.is_some() && is_moved {
            self.reserve(scheme, air);
        } else {
            self.keep_longer(id, scheme);
        }
        let place = self.queue.iter().position(|waiter| waiter.id == id && !is_late);
        let is_mine = self.reservation() == Some(id);
        Outcome::Place(Place {
            number: given,
            before: place.unwrap_or(self.queue.len()) as u8,
            is_mine,
            was_out,
            ends: self.time().is_some() && !is_mine,
        })
    }

    /// A waiter did not claim its reservation in time. Is it the one that asks, and stays out?
    fn pass_over(&mut self, late: Token, caller: Token, scheme: &Scheme) -> bool {
        if scheme.makes(Mistake::LateStays) || late == caller && self.queue.len() <= 1 {
            return false;
        }
        self.remove(late);
        late == caller || scheme.makes(Mistake::CallerIsLate)
    }

    fn put_in(&mut self, id: Token, number: u8, scheme: &Scheme) -> u8 {
        let next = self.queue.last().map_or(1, |last| last.number + 1);
        let known = self.number_of(id);
        let is_new = scheme.makes(Mistake::LateGetsNewNumber) && known.is_none();
        let number = if number != 0 && !is_new { number } else { known.unwrap_or(next) };
        self.remove(id);
        self.queue.push(Waiter { number, id, has_lease: true, is_served: false });
        self.queue.sort_unstable();
        let dead = self.queue.iter().take_while(|waiter| !waiter.has_lease).count();
        self.queue.drain(..dead);
        number
    }

    /// Whoever comes now asks when the time is over, and is to find the key until then.
    fn keep_longer(&mut self, id: Token, scheme: &Scheme) {
        let has_followers = self.queue.len() > 1;
        match &mut self.key {
            Key::Reserved(owner, time) => {
                time.has_grace |= has_followers;
                if *owner == id && scheme.makes(Mistake::RenewalProlongs) {
                    time.spare = PROLONGED;
                }
            }
            Key::Left(_, time) => time.has_grace = true,
            _ => {}
        }
    }

    fn turn(&mut self, id: Token, token: Token, scheme: &Scheme) -> Outcome {
        let head = self.queue.first().map(|waiter| waiter.id);
        let is_my_turn = match self.key {
            Key::Held(_) | Key::Left(..) => false,
            Key::Reserved(owner, _) => owner == id,
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
        for waiter in self.queue.iter_mut().filter(|waiter| waiter.id == id) {
            waiter.is_served |= waiter.has_lease;
        }
        Outcome::Granted
    }

    fn release(&mut self, token: Token, scheme: &Scheme, air: &mut Air) -> Outcome {
        if self.delete(token) && !scheme.makes(Mistake::ReleaseForgetsQueue) {
            self.reserve(scheme, air);
        }
        Outcome::Removed
    }

    /// `reserve` of `waiting.lua`
    fn reserve(&mut self, scheme: &Scheme, air: &mut Air) {
        self.key = match self.tell_at(0, Word::Reserved, scheme, air) {
            Some(head) => {
                let tells = !scheme.makes(Mistake::NextIsNotTold);
                let next = if tells { self.tell_at(1, Word::AskLater, scheme, air) } else { None };
                let has_grace = if tells { next.is_some() } else { self.queue.len() > 1 };
                // A waiter that has to ask needs longer.
                let spare = u8::from(scheme.is_mute);
                Key::Reserved(head, Time { has_grace, is_over: false, spare })
            }
            None => Key::Free,
        };
    }

    /// Tells the waiter in this place a word. Those that do not hear it are removed.
    fn tell_at(
        &mut self,
        place: usize,
        word: Word,
        scheme: &Scheme,
        air: &mut Air,
    ) -> Option<Token> {
        while let Some(waiter) = self.queue.get(place) {
            let is_there = waiter.has_lease && !waiter.is_served;
            let is_kept = scheme.makes(Mistake::UnheardStays);
            if is_there && (air.tell(waiter.id, word) || is_kept) {
                return Some(waiter.id);
            }
            self.queue.remove(place);
        }
        None
    }

    fn number_of(&self, id: Token) -> Option<u8> {
        self.queue.iter().find(|waiter| waiter.id == id).map(|waiter| waiter.number)
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
}
