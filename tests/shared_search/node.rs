//! A node's data, and the scripts that change it: a second version of `node/*.lua` with shares, as
//! small as the search allows. What concerns holders of shares is in `shares.rs`.

use crate::air::{Air, Word};
pub(crate) use crate::request::{Outcome, Place, Request};
use crate::scheme::{Mistake, Scheme, Want};
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

/// The data of a node.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Node {
    pub(crate) key: Key,
    /// Sorted. There are some if the key is shared, and only then.
    pub(crate) holders: Vec<Share>,
    /// Sorted.
    pub(crate) queue: Vec<Waiter>,
    /// The waiters that are called for a share, sorted, and whether the time for that is over.
    pub(crate) called: Vec<(Token, bool)>,
    /// The largest number of a waiter that took its share here.
    pub(crate) floor: u8,
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
                Outcome::Granted(None)
            }
            Request::TryShare { token, want } => self.share(None, token, want, scheme, air),
            Request::Queue { id, number, withdraw, want } => {
                if let Some(token) = withdraw {
                    self.withdraw(token, want);
                }
                self.enter(id, number, want, scheme, air)
            }
            Request::Turn { id, token } => self.turn(id, token),
            Request::TurnShare { id, token, want, first } => {
                self.share(Some((id, first)), token, want, scheme, air)
            }
            Request::Extend { token, want, slot } => self.extend(token, want, slot),
            Request::Restore(token) => match self.key {
                Key::Free | Key::Reserved(..) => {
                    self.key = Key::Held(token);
                    Outcome::Granted(None)
                }
                _ => Outcome::Refused,
            },
            Request::RestoreShare { id, token, slot } => {
                let outcome = self.restore(token, slot, scheme);
                if let Some(id) = id.filter(|_| !scheme.makes(Mistake::RestoreLeavesWaiter)) {
                    self.release_share(Some(id), id, scheme, air);
                }
                outcome
            }
            Request::Release(token) => {
                if self.delete(token) && !scheme.makes(Mistake::ReleaseForgetsQueue) {
                    self.reserve(air);
                }
                Outcome::Removed
            }
            Request::Leave { id, token } => self.leave(id, token, scheme, air),
            Request::ReleaseShare { id, token } => self.release_share(id, token, scheme, air),
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
        air: &mut Air,
    ) -> Outcome {
        let known = self.number_of(id);
        let is_over = self.reservation().is_some() && self.is_over();
        let mut is_late = false;
        if let Some(late) = self.reservation().filter(|_| is_over) {
            is_late = self.pass_over(late, id);
        } else if self.key == Key::Shared {
            let late: Vec<Token> = self.late().collect();
            self.called.retain(|(_, is_over)| !is_over);
            late.into_iter().for_each(|late| is_late |= self.pass_over(late, id));
        }
        let was_out = number != 0 && (is_late || known.is_none());
        let given = match is_late {
            true => known.unwrap_or(number.max(1)),
            false => self.put_in(id, number, want, scheme),
        };
        let head = self.queue.first().map(|waiter| waiter.id);
        match &mut self.key {
            Key::Shared => self.call(scheme, air),
            Key::Reserved(owner, time) if Some(*owner) == head && !is_over => {
                time.has_grace |= self.queue.len() > 1;
            }
            Key::Free | Key::Reserved(..) => self.reserve(air),
            Key::Held(_) => {}
        }
        let place = self.queue.iter().position(|waiter| waiter.id == id && !is_late);
        let is_mine = match self.key {
            Key::Shared => self.slot_for(id, scheme).is_some(),
            _ => self.reservation() == Some(id),
        };
        Outcome::Place(Place {
            number: given,
            before: place.unwrap_or(self.queue.len()) as u8,
            is_mine,
            was_out,
            ends: self.reservation().is_some() && !is_mine,
        })
    }

    /// A waiter did not claim what it was called for. Is it the one that asks, and stays out?
    fn pass_over(&mut self, late: Token, caller: Token) -> bool {
        if late == caller && self.queue.len() <= 1 {
            return false;
        }
        self.remove(late);
        late == caller
    }

    fn put_in(&mut self, id: Token, number: u8, want: Want, scheme: &Scheme) -> u8 {
        let last = self.queue.last().map_or(0, |last| last.number);
        let next = last.max(if scheme.makes(Mistake::NoFloor) { 0 } else { self.floor }) + 1;
        let number = if number != 0 { number } else { self.number_of(id).unwrap_or(next) };
        self.remove(id);
        self.queue.push(Waiter { number, id, has_lease: true, want: Some(want) });
        self.queue.sort_unstable();
        let dead = self.queue.iter().take_while(|waiter| !waiter.has_lease).count();
        self.queue.drain(..dead);
        number
    }

    fn turn(&mut self, id: Token, token: Token) -> Outcome {
        let head = self.queue.first().map(|waiter| waiter.id);
        let is_my_turn = match self.key {
            Key::Held(_) | Key::Shared => false,
            Key::Reserved(owner, _) => owner == id,
            Key::Free => head.is_none_or(|head| head == id),
        };
        if !is_my_turn {
            return Outcome::Refused;
        }
        self.key = Key::Held(token);
        for waiter in self.queue.iter_mut().filter(|waiter| waiter.id == id && waiter.has_lease) {
            waiter.want = None;
        }
        Outcome::Granted(None)
    }

    fn leave(&mut self, id: Token, token: Token, scheme: &Scheme, air: &mut Air) -> Outcome {
        let was_first = self.queue.first().is_some_and(|head| head.id == id);
        self.remove(id);
        let is_free = self.key == Key::Held(token) || self.reservation() == Some(id);
        if is_free && scheme.makes(Mistake::ReleaseForgetsQueue) {
            self.key = Key::Free;
        } else if is_free {
            self.reserve(air);
        } else if was_first && self.key != Key::Free {
            self.tell_at(0, Word::AskNow, air);
        }
        Outcome::Removed
    }

    /// `reserve` of `waiting.lua`
    pub(crate) fn reserve(&mut self, air: &mut Air) {
        self.key = match self.tell_at(0, Word::Reserved, air) {
            Some(head) => {
                let has_grace = self.tell_at(1, Word::AskLater, air).is_some();
                Key::Reserved(head, Time { has_grace, ..Time::default() })
            }
            None => Key::Free,
        };
    }

    /// Tells the waiter in this place a word. Those that do not hear it are removed.
    pub(crate) fn tell_at(&mut self, place: usize, word: Word, air: &mut Air) -> Option<Token> {
        while let Some(id) = self.queue.get(place).map(|waiter| waiter.id) {
            if self.tell(id, word, air) {
                return Some(id);
            }
        }
        None
    }

    /// Tells a waiter a word, or removes it.
    pub(crate) fn tell(&mut self, id: Token, word: Word, air: &mut Air) -> bool {
        let waits = |waiter: &Waiter| waiter.id == id && waiter.has_lease && waiter.want.is_some();
        let is_told = self.queue.iter().any(waits) && air.tell(id, word);
        if !is_told {
            self.remove(id);
        }
        is_told
    }

    pub(crate) fn number_of(&self, id: Token) -> Option<u8> {
        self.queue.iter().find(|waiter| waiter.id == id).map(|waiter| waiter.number)
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
}
