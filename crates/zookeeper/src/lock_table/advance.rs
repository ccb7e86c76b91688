//! What happens to the locks: by the session, by their contenders, when time passes, and when they
//! are given back or left to their end.

use super::entry::{Grant, Hold, LockEntry, LockStage, Loss, Outcome};
use super::{Asker, LockTable};
use crate::contender::{Cleanup, Contender, ContenderStep, Held};
use crate::session::{Failure, SessionEvent};
use redlatch_protocol::engine::{Token, Vote};
use redlatch_protocol::time::{SharedTime, Time};
use std::sync::Arc;
use std::time::Duration;

/// How long a contender does nothing after a server has refused what may be possible later.
const PAUSE: Duration = Duration::from_millis(100);

impl<W> LockTable<W> {
    /// Takes in what has happened to the session, and does what follows from it. Call it after
    /// everything that is done with the session.
    pub fn settle(&mut self, now: Time) {
        loop {
            self.follow_validity(now);
            if let Some(outcome) = self.session.poll() {
                self.dispatch(now, outcome);
            } else if let Some(token) = self.due.pop_first() {
                self.advance(now, token);
            } else {
                return;
            }
        }
    }

    /// Locks live for as long as their session is proven to.
    fn follow_validity(&mut self, now: Time) {
        let before = self.valid.get();
        let valid_until = self.session.valid_until();
        if valid_until <= before {
            // Shorter, if a server grants the session less than the one before did. Of a session
            // that has ended, what holds its locks is told otherwise.
            if self.session.id().is_some() {
                self.valid.set(valid_until);
            }
            return;
        }
        if before <= now {
            // Nobody could rely on them for a while, so they do not come back.
            self.valid = Arc::default();
            self.lose_all(Loss::Expired);
        }
        self.valid.set(valid_until);
        self.due.append(&mut self.first);
    }

    fn lose_all(&mut self, loss: Loss) {
        for (token, entry) in &mut self.entries {
            if let LockStage::Held(held) = &entry.stage {
                if !held.is_let_expire {
                    self.losses.push_back((*token, loss));
                }
                entry.give_up(None, false);
                self.due.insert(*token);
            }
        }
    }

    fn dispatch(&mut self, now: Time, outcome: SessionEvent<Asker>) {
        match outcome {
            SessionEvent::Answer(Asker::Contender(token, serial), answer) => {
                if let Some(entry) = self.entries.get_mut(&token) {
                    entry
                        .contender
                        .answered(serial, answer.zxid, answer.reply());
                    self.due.insert(token);
                }
            }
            SessionEvent::Answer(Asker::Question(number, index), answer) => {
                self.answered_question(now, number, index, answer);
            }
            SessionEvent::Changed { path } => {
                self.tell_all(|contender| contender.changed(&path));
            }
            SessionEvent::Connected => {
                self.connections += 1;
                self.tell_all(Contender::connected);
            }
            SessionEvent::Unreached => self.unreached(now),
            SessionEvent::Removed { path } => {
                self.tell_all(|contender| contender.removed(&path));
            }
            SessionEvent::SessionLost => {
                self.is_session_lost = true;
                self.tell_all(Contender::session_lost);
                // Whoever held a lock in it is told at once that it is gone.
                self.valid = Arc::default();
            }
            SessionEvent::Ended => self.valid = Arc::default(),
        }
    }

    /// A server could not be connected to. Who does not wait is told when that was the last one.
    fn unreached(&mut self, now: Time) {
        for (token, entry) in &mut self.entries {
            if let Some((waiter, place)) = entry.unreached() {
                self.outcomes
                    .push_back((waiter, Outcome::Waiting { place }));
                self.due.insert(*token);
            }
        }
        self.end_unreached_questions(now);
    }

    fn tell_all(&mut self, tell: impl Fn(&mut Contender)) {
        for (token, entry) in &mut self.entries {
            tell(&mut entry.contender);
            self.due.insert(*token);
        }
    }

    /// Does what the contender wants.
    fn advance(&mut self, now: Time, token: Token) {
        loop {
            let valid_until = self.session.valid_until();
            let Some(entry) = self.entries.get_mut(&token) else {
                return;
            };
            if entry.paused_until.is_some_and(|until| now < until) {
                return;
            }
            let Some(step) = entry.contender.poll(now, valid_until) else {
                break;
            };
            match step {
                ContenderStep::Begin => self.attempt(token),
                ContenderStep::Send(serial, request) => {
                    self.session
                        .send(now, Asker::Contender(token, serial), request);
                }
                ContenderStep::Keep(path) => self.session.keep(path),
                ContenderStep::Forget(path) => self.session.forget(&path),
                ContenderStep::Delete(serial, path) => {
                    let asker = serial.map(|serial| Asker::Contender(token, serial));
                    self.session.delete(now, asker, path);
                }
                ContenderStep::Pause => {
                    entry.paused_until = Some(now.after(PAUSE));
                    self.set_alarm(token);
                }
                ContenderStep::Held(held) => self.granted(now, token, &held),
                ContenderStep::Contended => self.fail(token, Outcome::Contended),
                ContenderStep::Refused(Failure::Server(error)) => {
                    self.fail(token, Outcome::Refused(error));
                }
                ContenderStep::Refused(Failure::TooLong(_)) => self.fail(token, Outcome::TooLong),
                ContenderStep::Refused(Failure::Unanswered | Failure::SessionLost) => {
                    self.fail(token, Outcome::Gone);
                }
                ContenderStep::Lost => self.lost(token),
                ContenderStep::CleanedUp(cleanup) => self.cleaned_up(token, cleanup),
            }
        }
        self.tell_place(token);
    }

    fn attempt(&mut self, token: Token) {
        let Some(entry) = self.entries.get_mut(&token) else {
            return;
        };
        if let Some(random) = (self.random)() {
            return entry.contender.begin(random);
        }
        if let Some(caller) = entry.take_caller() {
            self.outcomes.push_back((caller, Outcome::NoEntropy));
        }
        entry.give_up(None, false);
    }

    fn granted(&mut self, now: Time, token: Token, held: &Held) {
        let Some(entry) = self.entries.get_mut(&token) else {
            return;
        };
        let created_by = held.created_by;
        let slot = held.slot;
        let grant = Grant {
            at: now,
            created_by,
            slot,
            session: Arc::clone(&self.valid),
        };
        match entry.take_caller() {
            Some(caller) => {
                let grant = entry.hold(now, grant);
                self.outcomes.push_back((caller, Outcome::Granted(grant)));
            }
            None => entry.stage = LockStage::Granted(grant),
        }
        self.set_alarm(token);
    }

    /// It is over, and nothing is left of it.
    fn fail(&mut self, token: Token, outcome: Outcome) {
        let Some(entry) = self.entries.get_mut(&token) else {
            return;
        };
        match entry.take_caller() {
            Some(caller) => {
                self.outcomes.push_back((caller, outcome));
                self.remove(token);
            }
            None if matches!(entry.stage, LockStage::Waiting(_) | LockStage::Granted(_)) => {
                entry.stage = LockStage::Failed(Some(outcome));
                self.set_alarm(token);
            }
            None => self.remove(token),
        }
    }

    fn lost(&mut self, token: Token) {
        match self.entries.get(&token).map(|entry| &entry.stage) {
            Some(LockStage::Held(held)) => {
                if !held.is_let_expire {
                    self.losses.push_back((token, Loss::Gone));
                }
                self.remove(token);
            }
            _ => self.fail(token, Outcome::Gone),
        }
    }

    fn cleaned_up(&mut self, token: Token, cleanup: Cleanup) {
        let Some(entry) = self.entries.get_mut(&token) else {
            return;
        };
        let vote = match (cleanup, &entry.stage) {
            (Cleanup::Deleted, LockStage::Releasing { was_valid: true }) => Vote::Granted,
            (Cleanup::Deleted | Cleanup::WasGone | Cleanup::Nothing, _) => Vote::Refused,
            (Cleanup::Refused(_), _) => Vote::Failed,
        };
        let caller = entry.take_caller();
        self.outcomes
            .extend(caller.map(|caller| (caller, Outcome::Voted(vote))));
        self.remove(token);
    }

    /// A caller learns that others are before it as soon as that is known.
    fn tell_place(&mut self, token: Token) {
        let Some(entry) = self.entries.get_mut(&token) else {
            return;
        };
        if entry.contender.awaits_validity() {
            self.first.insert(token);
        }
        let place = entry.contender.place();
        let LockStage::Waiting(wait) = &mut entry.stage else {
            return;
        };
        wait.place = place;
        if place.is_none() || std::mem::replace(&mut wait.is_place_told, true) {
            return;
        }
        if let Some(caller) = entry.take_caller() {
            self.outcomes
                .push_back((caller, Outcome::Waiting { place }));
            self.set_alarm(token);
        }
    }

    /// What has become of it while nobody waited for it.
    pub(super) fn deliver(&mut self, now: Time, token: Token, caller: W) {
        let Some(entry) = self.entries.get_mut(&token) else {
            return;
        };
        let outcome = match &mut entry.stage {
            LockStage::Granted(grant) | LockStage::Held(Hold { grant, .. })
                if is_valid(now, grant, &self.valid) =>
            {
                let grant = grant.clone();
                Outcome::Granted(entry.hold(now, grant))
            }
            LockStage::Failed(outcome) => {
                let outcome = outcome.take().unwrap_or(Outcome::Gone);
                self.remove(token);
                outcome
            }
            _ => {
                self.give_up(now, token);
                Outcome::Gone
            }
        };
        self.set_alarm(token);
        self.outcomes.push_back((caller, outcome));
    }

    /// The time has come for which an entry had an alarm.
    pub(super) fn ring(&mut self, now: Time, token: Token) {
        let Some(entry) = self.entries.get_mut(&token) else {
            return;
        };
        entry.alarm = None;
        entry.paused_until = entry.paused_until.filter(|until| now < *until);
        let over = entry.caller.take_if(|(_, until)| *until <= now);
        let outcome = match &entry.stage {
            LockStage::Waiting(wait) => Outcome::Waiting { place: wait.place },
            _ => Outcome::Voted(Vote::Failed),
        };
        self.outcomes
            .extend(over.map(|(caller, _)| (caller, outcome)));
        if matches!(&entry.stage, LockStage::Held(held) if held.end <= now) {
            entry.give_up(None, false);
        }
        self.due.insert(token);
        self.set_alarm(token);
    }

    pub(super) fn remove(&mut self, token: Token) {
        let Some(entry) = self.entries.remove(&token) else {
            return;
        };
        self.path_bytes -= entry.contender.plan.path_bytes();
        if let Some(alarm) = entry.alarm {
            self.alarms.remove(&(alarm, token));
        }
        self.first.remove(&token);
    }
}

pub(super) fn is_valid(now: Time, grant: &Grant, valid: &Arc<SharedTime>) -> bool {
    Arc::ptr_eq(&grant.session, valid) && now < valid.get()
}

// Locks that are given back, or left to their end.
impl<W> LockTable<W> {
    /// Gives a held lock back, or gives up waiting for it. The outcome is a [`Vote`]: whether it
    /// was still held.
    pub fn release(&mut self, now: Time, token: Token, until: Time, waiter: W) {
        let was_valid = now < self.valid.get();
        match self.entries.get_mut(&token) {
            Some(entry) if matches!(entry.stage, LockStage::Held(_)) => {
                entry.give_up(Some((waiter, until)), was_valid);
                self.due.insert(token);
                self.set_alarm(token);
            }
            _ => {
                self.outcomes
                    .push_back((waiter, Outcome::Voted(Vote::Refused)));
                self.give_up(now, token);
            }
        }
        self.settle(now);
    }

    /// The same, and nobody waits for the answer.
    pub fn give_up(&mut self, now: Time, token: Token) {
        match self.entries.get_mut(&token) {
            None
            | Some(LockEntry {
                stage: LockStage::Releasing { .. },
                ..
            }) => {}
            Some(LockEntry {
                stage: LockStage::Failed(_),
                ..
            }) => self.remove(token),
            Some(entry) => {
                entry.give_up(None, false);
                self.due.insert(token);
                self.set_alarm(token);
            }
        }
        self.settle(now);
    }

    /// A lock that was given up stays until this time.
    pub fn let_expire(&mut self, now: Time, token: Token, end: Time) {
        if let Some(LockStage::Held(held)) = self.entries.get_mut(&token).map(|it| &mut it.stage) {
            held.end = end;
            held.is_let_expire = true;
            self.set_alarm(token);
        }
        self.settle(now);
    }

    /// The client is dropped: nobody waits any more. Locks that were left to their end stay, and
    /// without such a lock the session is ended.
    pub fn close(&mut self, now: Time) {
        self.end_waits(None);
        let entries = self.entries.iter();
        let gone = entries.filter(|(_, entry)| !entry.is_let_expire());
        let gone: Vec<Token> = gone.map(|(token, _)| *token).collect();
        for token in gone {
            self.give_up(now, token);
        }
        if !self.entries.values().any(LockEntry::is_let_expire) {
            self.session.end(now);
        }
    }

    /// After [`close`](Self::close): is there something on the ensemble that is still to be deleted
    /// over this connection?
    pub fn is_releasing(&self) -> bool {
        let mut entries = self.entries.values();
        !self.session.is_down()
            && (self.session.is_ending()
                || entries.any(|entry| matches!(entry.stage, LockStage::Releasing { .. })))
    }
}
