//! Locks that are given back, or left to their end.

use super::Keeper;
use super::entry::{Entry, Stage};
use super::outcome::{Outcome, Vote};
use redlatch_protocol::engine::Token;
use redlatch_protocol::time::Time;

impl<W> Keeper<W> {
    /// Gives a held lock back, or gives up waiting for it. The outcome is a [`Vote`]: whether it
    /// was still held.
    pub fn release(&mut self, now: Time, token: Token, until: Time, waiter: W) {
        let was_valid = now < self.valid.get();
        match self.entries.get_mut(&token) {
            Some(entry) if matches!(entry.stage, Stage::Held(_)) => {
                entry.leave(Some((waiter, until)), was_valid);
                self.due.insert(token);
                self.set_alarm(token);
            }
            _ => {
                self.outcomes.push_back((waiter, Outcome::Voted(Vote::Refused)));
                self.give_up(now, token);
            }
        }
        self.settle(now);
    }

    /// The same, and nobody waits for the answer.
    pub fn give_up(&mut self, now: Time, token: Token) {
        match self.entries.get_mut(&token) {
            None | Some(Entry { stage: Stage::Leaving(_), .. }) => {}
            Some(Entry { stage: Stage::Failed(_), .. }) => self.remove(token),
            Some(entry) => {
                entry.leave(None, false);
                self.due.insert(token);
                self.set_alarm(token);
            }
        }
        self.settle(now);
    }

    /// A lock that was given up stays until this time.
    pub fn leave(&mut self, now: Time, token: Token, end: Time) {
        if let Some(Stage::Held(held)) = self.entries.get_mut(&token).map(|it| &mut it.stage) {
            (held.end, held.is_left) = (end, true);
            self.set_alarm(token);
        }
        self.settle(now);
    }

    /// The client is dropped: nobody waits any more. Locks that were left to their end stay, and
    /// without such a lock the session is ended.
    pub fn close(&mut self, now: Time) {
        self.end_waits(None);
        let is_left = |entry: &Entry<W>| matches!(&entry.stage, Stage::Held(held) if held.is_left);
        let gone: Vec<Token> =
            self.entries.iter().filter(|(_, it)| !is_left(it)).map(|(token, _)| *token).collect();
        gone.into_iter().for_each(|token| self.give_up(now, token));
        if !self.entries.values().any(is_left) {
            self.session.end(now);
        }
    }

    /// After [`close`](Self::close): is there something on the ensemble that is still to be deleted
    /// over this connection?
    pub fn is_leaving(&self) -> bool {
        let is_leaving = |entry: &Entry<W>| matches!(entry.stage, Stage::Leaving(_));
        !self.session.is_down()
            && (self.session.is_ending() || self.entries.values().any(is_leaving))
    }
}
