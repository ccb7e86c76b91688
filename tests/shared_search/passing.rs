//! What happens to a node's data without a command: time passes, and data is lost.

use crate::node::{Key, Node};
use crate::scheme::{Mistake, Scheme};
use crate::time::Time;
use crate::token::Token;

impl Node {
    /// What can be read from a node's keys.
    pub(crate) fn visible(&self) -> Self {
        let mut node = Self { forgotten: Vec::new(), floor: 0, is_down: false, ..self.clone() };
        for waiter in node.queue.iter_mut().filter(|waiter| !waiter.has_lease) {
            waiter.want = None;
        }
        node
    }

    /// The tokens that it keeps.
    pub(crate) fn tokens(&self) -> Vec<Token> {
        let held = match self.key {
            Key::Held(token) => Some(token),
            _ => None,
        };
        held.into_iter().chain(self.holders.iter().map(|share| share.token)).collect()
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
        let called = self.called.iter().map(|(id, _)| *id);
        self.reservation().into_iter().chain(called).collect()
    }

    /// The waiters that did not claim the share that they were called for.
    pub(crate) fn late(&self) -> impl Iterator<Item = Token> + '_ {
        self.called.iter().filter(|(_, is_over)| *is_over).map(|(id, _)| *id)
    }

    /// The time after which something is passed on.
    pub(crate) fn time(&self) -> Option<Time> {
        match self.key {
            Key::Reserved(_, time) => Some(time),
            _ if self.called.is_empty() => None,
            _ => {
                let is_over = self.called.iter().all(|(_, is_over)| *is_over);
                Some(Time { is_over, has_grace: true, ..Time::default() })
            }
        }
    }

    pub(crate) fn is_over(&self) -> bool {
        self.time().is_some_and(|time| time.is_over)
    }

    pub(crate) fn is_free(&self) -> bool {
        self.key == Key::Free
    }

    /// Does the key end with time, whatever happens?
    pub(crate) fn is_passing(&self) -> bool {
        self.reservation().is_some()
    }

    pub(crate) fn is_left(&self) -> bool {
        false
    }

    pub(crate) fn end_token(&mut self, token: Token, scheme: &Scheme) {
        self.delete(token);
        if !scheme.makes(Mistake::SharesStay) {
            self.remove_share(token);
        }
        self.settle();
    }

    /// The time of a reservation is over, or of calls; or what ends that was kept after that.
    pub(crate) fn end_reservation(&mut self) {
        if self.is_over() && self.called.iter().all(|(_, is_over)| *is_over) {
            self.called.clear();
        }
        self.called.iter_mut().for_each(|(_, is_over)| *is_over = true);
        if let Key::Reserved(_, time) = &mut self.key {
            if !time.end() {
                self.key = Key::Free;
            }
        }
    }

    pub(crate) fn lose_queue(&mut self) {
        self.queue.clear();
        self.called.clear();
        self.floor = 0;
        if let Key::Reserved(..) = self.key {
            self.key = Key::Free;
        }
    }

    pub(crate) fn lose_data(&mut self) {
        self.forgotten.extend(self.tokens());
        (self.key, self.floor) = (Key::Free, 0);
        (self.holders, self.queue) = (Vec::new(), Vec::new());
        self.called.clear();
    }
}
