//! A contender: the znode with which a client queues for a lock and holds it.
//!
//! ```text
//!         begin()            create2, list           nobody before
//!   New ──────────▶ Joining ──────────────▶ (place) ───────────────▶ First ──▶ Held
//!    ▲                 │                     │    ▲                              │
//!    │                 │ no answer           ▼    │ event, or reconnected        │
//!    │                 ▼            getData  Watching ──▶ Queued                 │
//!    ├── not found ── Unknown: sync, list                                        │
//!    └── the session is lost, or the znode ◀─────────────────────────────────────┤
//!                                                    give_up(): Leaving ──▶ Over ◀┘
//! ```
//!
//! It is driven by replies. [`Contender::poll`] says what to do: requests to send, znodes to keep
//! alive or to delete. Each request has a [`Serial`]; the answers are given to
//! [`Contender::answered`]. Invariants:
//!
//! - One id for each create request, and one such request at a time. An id belongs to one session.
//! - After a create without an answer it looks for its znode, behind a sync: a list alone does not
//!   show a create that is still being agreed on. A create that is not there after a sync never
//!   comes.
//! - Nothing that it may have created is left behind: it is over when its znode is deleted, or is
//!   known not to exist.
//! - It watches the znode before its own and no other, by getData, which leaves no watch if that
//!   znode is gone.

mod joining;
mod leaving;
mod plan;
mod queue;
mod state;
mod step;
mod waiting;

pub use plan::Plan;
pub use step::{Held, Left, Serial, Step};

use super::message::{Reply, Request};
use super::name::ContenderId;
use super::session::Failure;
use crate::clock::Time;
use state::{Own, Search, State};
use std::collections::{BTreeMap, VecDeque};

/// A contender. The module documentation describes how to use it.
#[derive(Debug)]
pub struct Contender {
    plan: Plan,
    state: State,
    /// What must be created before the next attempt.
    parents: Parents,
    /// Does the server know neither create2 nor containers?
    is_plain: bool,
    /// The ids of this session under which nothing was found.
    given_up: Vec<ContenderId>,
    /// Where numbers mean nothing: the transactions that created the others.
    dates: BTreeMap<String, i64>,
    /// When the last attempt began.
    since: Time,
    /// How many contenders are before it.
    place: Option<usize>,
    serial: u32,
    steps: VecDeque<Step>,
}

/// What of the way to the lock's directory is not there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Parents {
    Present,
    /// The directory.
    Last,
    /// All of it.
    All,
}

impl Contender {
    /// A contender that has not begun.
    #[must_use]
    pub fn new(plan: Plan) -> Self {
        let mut contender = Self {
            plan,
            state: State::New,
            parents: Parents::Present,
            is_plain: false,
            given_up: Vec::new(),
            dates: BTreeMap::new(),
            since: Time::ZERO,
            place: None,
            serial: 0,
            steps: VecDeque::new(),
        };
        if contender.plan.waits {
            contender.steps.push_back(Step::Begin);
        } else {
            contender.look();
        }
        contender
    }

    /// What is to be done. `None`: nothing until something happens, which includes a later
    /// `valid_until` of the session.
    pub fn poll(&mut self, now: Time, valid_until: Time) -> Option<Step> {
        if let Some(step) = self.steps.pop_front() {
            return Some(step);
        }
        let is_valid = now < valid_until && valid_until.since(now) > self.plan.min_validity;
        if !(matches!(self.state, State::First { .. }) && is_valid) {
            return None;
        }
        let State::First { own } = self.leave_state() else { return None };
        let held = Held {
            path: self.plan.directory.child(&own.name),
            created_by: own.created_by.expect("it is known before its place is"),
            since: self.since,
        };
        self.state = State::Held { own };
        Some(Step::Held(held))
    }

    /// How many contenders were before it when it last looked, while it waits.
    #[must_use]
    pub fn place(&self) -> Option<usize> {
        self.place
    }

    /// The answer to the request with this serial.
    pub fn answered(&mut self, serial: Serial, zxid: i64, reply: Result<Reply<'_>, &Failure>) {
        match self.state {
            State::Looking { .. } | State::Joining { .. } | State::Unknown { .. } => {
                self.answered_joining(serial, zxid, reply);
            }
            State::Dating { .. } | State::Listing { .. } | State::Comparing { .. } => {
                self.answered_waiting(serial, reply);
            }
            State::Watching { .. } => self.answered_waiting(serial, reply),
            State::Abandoned { .. } | State::Searching { .. } => {
                self.answered_leaving(serial, reply);
            }
            State::LeavingBoth { .. } | State::Leaving { .. } => {
                self.answered_leaving(serial, reply);
            }
            // An answer that nobody waits for any more.
            State::New | State::Queued { .. } | State::First { .. } => {}
            State::Held { .. } | State::Over => {}
        }
    }

    /// The session and all its znodes are gone.
    pub fn session_lost(&mut self) {
        self.given_up.clear();
        match self.state {
            State::New | State::Looking { .. } | State::Over => return,
            _ => {}
        }
        // What was to be done for its znode is done with the session.
        self.steps.clear();
        match self.state {
            State::Held { .. } => self.finish(Step::Lost),
            State::Abandoned { .. } | State::Searching { .. } => {
                self.finish(Step::Left(Left::WasGone));
            }
            State::LeavingBoth { .. } | State::Leaving { .. } => {
                self.finish(Step::Left(Left::WasGone));
            }
            _ => self.restart(),
        }
    }

    /// A znode of the session was removed by somebody else.
    pub fn removed(&mut self, path: &str) {
        let is_own = |own: &Own| *self.plan.directory.child(&own.name) == *path;
        match &self.state {
            State::Held { own } if is_own(own) => self.finish(Step::Lost),
            State::Dating { own, .. } | State::Listing { own, .. } if is_own(own) => self.restart(),
            // A list that had it may be answered already.
            State::Comparing { own, .. } | State::Watching { own, .. } if is_own(own) => {
                self.restart();
            }
            State::Queued { own, .. } | State::First { own } if is_own(own) => self.restart(),
            _ => {}
        }
    }

    /// Begins again, at the end of the queue.
    fn restart(&mut self) {
        self.state = State::New;
        self.place = None;
        self.steps.push_back(Step::Begin);
    }

    fn finish(&mut self, step: Step) {
        self.state = State::Over;
        self.place = None;
        self.steps.push_back(step);
    }

    fn leave_state(&mut self) -> State {
        std::mem::replace(&mut self.state, State::Over)
    }

    /// Looks for what a create may have created. The list alone would not show it while a majority
    /// still agrees on it.
    fn search(&mut self) -> Search {
        let sync = self.ask(self.plan.sync());
        Search { sync, list: self.ask(self.plan.list()), is_synced: false }
    }

    fn ask(&mut self, request: Request) -> Serial {
        let serial = self.next_serial();
        self.steps.push_back(Step::Send(serial, request));
        serial
    }

    fn next_serial(&mut self) -> Serial {
        self.serial = self.serial.wrapping_add(1);
        Serial(self.serial)
    }
}

#[cfg(test)]
mod tests;
