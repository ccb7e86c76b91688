//! What happens to a node's data without a command: time passes, and data is lost.

use crate::node::{Key, Node};
use crate::scheme::Scheme;
use crate::time::Time;
use crate::token::Token;

impl Node {
    /// What can be read from a node's keys.
    pub(crate) fn visible(&self) -> Self {
        let key = match self.key {
            Key::Reserved(id, time) => Key::Reserved(id, Time { spare: 0, ..time }),
            Key::Left(token, time) => Key::Left(token, Time { spare: 0, ..time }),
            other => other,
        };
        let mut queue = self.queue.clone();
        queue.iter_mut().for_each(|waiter| waiter.is_served &= waiter.has_lease);
        Self { key, queue, ..Self::default() }
    }

    /// The tokens that it keeps.
    pub(crate) fn tokens(&self) -> Vec<Token> {
        match self.key {
            Key::Held(token) => vec![token],
            _ => Vec::new(),
        }
    }

    /// For whom the key is reserved.
    pub(crate) fn reservation(&self) -> Option<Token> {
        match self.key {
            Key::Reserved(id, _) => Some(id),
            _ => None,
        }
    }

    /// Those who can claim something now, and lose that with time.
    pub(crate) fn claimants(&self) -> Vec<Token> {
        self.reservation().into_iter().collect()
    }

    /// The time after which the key is passed on.
    pub(crate) fn time(&self) -> Option<Time> {
        match self.key {
            Key::Reserved(_, time) | Key::Left(_, time) => Some(time),
            _ => None,
        }
    }

    pub(crate) fn is_free(&self) -> bool {
        self.key == Key::Free
    }

    /// Does the key end with time, whatever happens?
    pub(crate) fn is_passing(&self) -> bool {
        self.time().is_some()
    }

    /// Has a reservation not been claimed in its time?
    pub(crate) fn is_over(&self) -> bool {
        self.time().is_some_and(|time| time.is_over)
    }

    pub(crate) fn is_left(&self) -> bool {
        matches!(self.key, Key::Left(..))
    }

    pub(crate) fn end_token(&mut self, token: Token, _: &Scheme) {
        if self.key == Key::Held(token) {
            self.key = Key::Free;
        }
    }

    /// The time of a reservation is over; or the key ends that was kept after that.
    pub(crate) fn end_reservation(&mut self) {
        if let Key::Reserved(_, time) | Key::Left(_, time) = &mut self.key {
            if !time.end() {
                self.key = Key::Free;
            }
        }
    }

    pub(crate) fn lose_queue(&mut self) {
        self.queue.clear();
        if let Key::Reserved(..) = self.key {
            self.key = Key::Free;
        }
    }

    pub(crate) fn lose_data(&mut self) {
        self.forgotten.extend(self.tokens());
        (self.key, self.queue) = (Key::Free, Vec::new());
    }
}
