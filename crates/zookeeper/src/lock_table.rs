//! All locks of one client over one session: contenders that wait, hold and leave, and questions.
//!
//! ```text
//!   contend() ──▶ Waiting ──granted──▶ Held ──release(), its end, lost──▶ Releasing ──▶ (gone)
//! ```
//!
//! Each lock has a [`Token`], which the caller has drawn. A call gives a waiter `W` and a time; its
//! [`Outcome`] comes back with the waiter by then at the latest. Invariants:
//!
//! - What has a contender keeps it until nothing of it is left on the ensemble, or the session has
//!   ended: a call that ends early gives the contender up.
//! - A lock that was held when the session's validity passed is lost, also if the session lives on.
//! - A lock has its own end, besides that of the session, and its znodes are deleted then.
//! - A question, and a contender that does not wait, ends when no server could be connected to.
//!
//! Whoever drives it gives its session what the connection says, and calls [`LockTable::settle`]
//! after that. Random bytes come from the function that it was made with.

mod advance;
mod entry;
mod questions;

use advance::is_valid;
pub use entry::{Grant, Loss, Outcome};

use super::contender::{Contender, ContenderPlan, Serial};
use super::session::{EnsembleSession, EnsembleSessionOptions};
use entry::{LockEntry, LockStage};
use questions::OpenQuestion;
use redlatch_protocol::engine::Token;
use redlatch_protocol::time::{SharedTime, Time};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

/// Random bytes for the name of a contender's znode; `None` if there are none.
pub type Random = fn() -> Option<[u8; 16]>;

/// The most bytes of the paths of a session's znodes: 512 KiB. The transaction that ends a session
/// lists them, and above `jute.maxbuffer`, 1 MB by default, it stops the ensemble
/// (ZOOKEEPER-4306).
pub const PATHS_MAX: usize = 512 * 1024;

#[derive(Debug)]
pub struct LockTable<W> {
    /// Its connection is the caller's business.
    pub session: EnsembleSession<Asker>,
    random: Random,
    entries: BTreeMap<Token, LockEntry<W>>,
    /// How many bytes the paths of their znodes have, at most: also of those that are not created
    /// yet, of which there may be thousands.
    path_bytes: usize,
    questions: BTreeMap<u64, OpenQuestion<W>>,
    next_question: u64,
    /// The entries whose contender may have something to do.
    due: BTreeSet<Token>,
    /// Those whose contender is the first, and waits until the session is valid for long enough.
    first: BTreeSet<Token>,
    /// When entries are to be looked at, the earliest first. Each entry has one alarm at most.
    alarms: BTreeSet<(Time, Token)>,
    outcomes: VecDeque<(W, Outcome)>,
    losses: VecDeque<(Token, Loss)>,
    /// Until when the session lives that holds the locks. Another one takes its place when the
    /// session has ended, or when its validity had passed.
    valid: Arc<SharedTime>,
    /// Has the ensemble ended a session since that was last told?
    is_session_lost: bool,
    /// Waits that were ended and are not known, the latest last.
    ended: VecDeque<Token>,
    /// Are all waits over?
    is_closed: bool,
    connections: u64,
}

/// How many such waits are remembered. A caller that ends a wait and one that begins it pass each
/// other by within microseconds.
const ENDED_MAX: usize = 64;

/// Whose question a request is.
#[derive(Clone, Copy, Debug)]
pub enum Asker {
    Contender(Token, Serial),
    /// The request with this index of a question.
    Question(u64, usize),
}

impl<W> LockTable<W> {
    pub fn new(options: EnsembleSessionOptions, random: Random) -> Self {
        Self {
            session: EnsembleSession::new(options),
            random,
            entries: BTreeMap::new(),
            path_bytes: 0,
            questions: BTreeMap::new(),
            next_question: 0,
            due: BTreeSet::new(),
            first: BTreeSet::new(),
            alarms: BTreeSet::new(),
            outcomes: VecDeque::new(),
            losses: VecDeque::new(),
            valid: Arc::default(),
            ended: VecDeque::new(),
            is_session_lost: false,
            is_closed: false,
            connections: 0,
        }
    }

    /// Contends for a lock, to be held for `hold`. The outcome is [`Granted`](Outcome::Granted),
    /// [`Waiting`](Outcome::Waiting) as soon as others are known to be before it and at the end of
    /// the call, or why it is over.
    pub fn contend(
        &mut self,
        now: Time,
        token: Token,
        plan: ContenderPlan,
        hold: Duration,
        call: (W, Time),
    ) {
        let path_bytes = self.path_bytes.saturating_add(plan.path_bytes());
        if path_bytes > PATHS_MAX {
            return self.outcomes.push_back((call.0, Outcome::NoRoom));
        }
        let was_ended = self.ended.iter().any(|ended| *ended == token);
        if was_ended || self.is_closed {
            return self
                .outcomes
                .push_back((call.0, Outcome::Waiting { place: None }));
        }
        let connects_left = (!plan.waits).then(|| self.session.servers());
        let entry = LockEntry::new(Contender::new(plan), hold, connects_left, call);
        self.entries.insert(token, entry);
        self.path_bytes = path_bytes;
        self.set_alarm(token);
        self.due.insert(token);
        self.settle(now);
    }

    /// Waits on, after [`Outcome::Waiting`].
    pub fn wait(&mut self, now: Time, token: Token, until: Time, waiter: W) {
        let is_closed = self.is_closed;
        match self.entries.get_mut(&token) {
            Some(LockEntry {
                stage: LockStage::Waiting(wait),
                ..
            }) if wait.is_ended || is_closed => {
                let place = wait.place;
                self.outcomes
                    .push_back((waiter, Outcome::Waiting { place }));
            }
            Some(LockEntry {
                stage: LockStage::Waiting(wait),
                caller,
                ..
            }) => {
                wait.is_place_told = true;
                *caller = Some((waiter, until));
                self.set_alarm(token);
                self.settle(now);
            }
            Some(LockEntry {
                stage: LockStage::Releasing { .. },
                ..
            })
            | None => {
                self.outcomes.push_back((waiter, Outcome::Gone));
            }
            // It has ended between two waits: what has become of it was kept for the caller.
            // Also if it was delivered to a caller that had given up listening.
            Some(_) => self.deliver(now, token, waiter),
        }
    }

    /// Ends the waits of one caller, or of all, now and from now on.
    pub fn end_waits(&mut self, token: Option<Token>) {
        let tokens: Vec<Token> = match token {
            Some(token) => vec![token],
            None => {
                self.is_closed = true;
                self.entries.keys().copied().collect()
            }
        };
        for token in tokens {
            match self.entries.get_mut(&token) {
                Some(LockEntry {
                    stage: LockStage::Waiting(wait),
                    caller,
                    ..
                }) => {
                    wait.is_ended = true;
                    let outcome = Outcome::Waiting { place: wait.place };
                    self.outcomes
                        .extend(caller.take().map(|(waiter, _)| (waiter, outcome)));
                }
                // It may not have begun yet.
                _ => {
                    if self.ended.len() == ENDED_MAX {
                        self.ended.pop_front();
                    }
                    self.ended.push_back(token);
                }
            }
        }
    }

    /// A held lock changes hands within this client, and gets another end.
    /// The outcome is [`Outcome::Granted`], or [`Outcome::Gone`] if it is not held any more.
    pub fn take_over(&mut self, now: Time, token: Token, end: Time, waiter: W) {
        self.settle(now);
        let outcome = match self.entries.get_mut(&token).map(|entry| &mut entry.stage) {
            Some(LockStage::Held(held))
                if is_valid(now, &held.grant, &self.valid) && !held.is_let_expire =>
            {
                held.end = end;
                held.grant.at = now;
                Outcome::Granted(held.grant.clone())
            }
            _ => Outcome::Gone,
        };
        self.set_alarm(token);
        self.outcomes.push_back((waiter, outcome));
    }

    /// The next outcome, and who waits for it.
    pub fn poll(&mut self) -> Option<(W, Outcome)> {
        self.outcomes.pop_front()
    }

    /// The next lock that was held and is lost, although nobody has released it.
    pub fn poll_loss(&mut self) -> Option<(Token, Loss)> {
        self.losses.pop_front()
    }

    /// Has the ensemble ended the session since the last call? All locks and places in queues that
    /// belonged to it are lost.
    pub fn take_session_loss(&mut self) -> bool {
        std::mem::take(&mut self.is_session_lost)
    }

    /// Is this lock held, as far as is known?
    pub fn is_held(&self, token: &Token) -> bool {
        matches!(
            self.entries.get(token).map(|entry| &entry.stage),
            Some(LockStage::Held(_))
        )
    }

    /// The waiters, in no order.
    pub fn waiters(&self) -> impl Iterator<Item = &W> {
        let calls = self
            .entries
            .values()
            .filter_map(|entry| Some(&entry.caller.as_ref()?.0));
        calls.chain(self.questions.values().map(|question| &question.waiter))
    }

    /// When [`tick`](Self::tick) must be called.
    pub fn next_deadline(&self) -> Option<Time> {
        let alarm = self.alarms.first().map(|(time, _)| *time);
        let questions = self.questions.values().map(|question| question.until);
        questions
            .chain(alarm)
            .chain(self.session.next_deadline())
            .min()
    }

    /// Processes the deadlines that have passed. Bytes that arrived before must have been received.
    pub fn tick(&mut self, now: Time) {
        self.session.tick(now);
        while let Some((_, token)) = self
            .alarms
            .first()
            .copied()
            .filter(|(time, _)| *time <= now)
        {
            self.alarms.pop_first();
            self.ring(now, token);
        }
        self.end_questions(now);
        self.settle(now);
    }

    /// Sets the alarm of an entry to the earliest time at which it must be looked at.
    fn set_alarm(&mut self, token: Token) {
        let Some(entry) = self.entries.get_mut(&token) else {
            return;
        };
        let next = entry.next_deadline();
        if next == entry.alarm {
            return;
        }
        if let Some(before) = std::mem::replace(&mut entry.alarm, next) {
            self.alarms.remove(&(before, token));
        }
        self.alarms.extend(next.map(|time| (time, token)));
    }
}

#[cfg(test)]
mod tests;
