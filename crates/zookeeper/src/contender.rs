//! A contender: the znodes with which a client queues for a lock and holds it.
//!
//! ```text
//!         begin()            create2, lists        nobody before, no shares
//!   New ──────────▶ Joining ──────────────▶ (place) ────────────────────────▶ First ──▶ Held
//!    ▲                 │                     │    ▲                             ▲         │
//!    │                 │ no answer           ▼    │ event, or reconnected       │         │
//!    │                 ▼            getData  Watching ──▶ Queued                │         │
//!    ├── not found ── Unknown: sync, lists                                      │         │
//!    │                                       (place) ──▶ Checking ──▶ Blocked   │         │
//!    │              nobody before, shares that   │        ▲             │       │         │
//!    │              this one may join            ▼        └──── event ──┘       │         │
//!    │                                         Sharing: multi ──────────────────┤         │
//!    │                                           │ no answer                    │         │
//!    │                                           ▼                              │         │
//!    │                                       Uncertain: sync, shares ───────────┘         │
//!    └── the session is lost, or a znode ◀────────────────────────────────────────────────┤
//!                                                        give_up(): Deleting ─▶ Over ◀────┘
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
//! - Nothing that it may have created is left behind: it is over when its znodes are deleted, or
//!   are known not to exist.
//! - It watches the znode before its own and no other, by getData, which leaves no watch if that
//!   znode is gone. The first of the queue watches the shares instead, if they are in its way.
//! - The queue is read before the shares: a share is made by the first of the queue, in the
//!   transaction that leaves it. So if nobody is before this contender and there are no shares
//!   then, the lock is free; the other way around the first may have made one between the two.
//! - A set joins all its queues in one transaction, so two sets have the same order in every queue
//!   that both are in, and no circle of waiting arises.

mod joining;
mod sharing;
mod state;
mod waiting;

use super::message::{EnsembleError, EnsembleReply, EnsembleRequest, MultiOperation, Remedy};
use super::path::ContenderId;
use super::session::{Failure, Response};
use joining::refused_directory;
use redlatch_protocol::time::Time;
pub use state::{Cleanup, ContenderPlan, ContenderStep, Held, Serial};
use state::{Finding, Own, OwnShare, Search, State};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

#[derive(Debug)]
pub struct Contender {
    pub(super) plan: ContenderPlan,
    state: State,
    /// What must be created before the next attempt.
    parents: Parents,
    /// What was created in the last attempt.
    attempted: Parents,
    /// Why a directory of the last attempt was not created.
    refusal: Option<EnsembleError>,
    /// Was it given up? Then nothing that it has created is kept.
    is_given_up: bool,
    /// The ids of this session under which nothing was found.
    given_up: Vec<ContenderId>,
    /// Where numbers mean nothing: the transactions that created the others.
    dates: BTreeMap<String, i64>,
    /// How many contenders are before it.
    place: Option<usize>,
    serial: u32,
    steps: VecDeque<ContenderStep>,
}

/// What of the way to the locks' directories is not there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Parents {
    Present,
    Last,
    All,
}

impl Contender {
    pub fn new(plan: ContenderPlan) -> Self {
        let mut contender = Self {
            plan,
            state: State::New,
            parents: Parents::Present,
            attempted: Parents::Present,
            refusal: None,
            is_given_up: false,
            given_up: Vec::new(),
            dates: BTreeMap::new(),
            place: None,
            serial: 0,
            steps: VecDeque::new(),
        };
        if contender.plan.waits {
            contender.steps.push_back(ContenderStep::Begin);
        } else {
            contender.look();
        }
        contender
    }

    /// What is to be done. `None`: nothing until something happens, which includes a later
    /// `valid_until` of the session.
    pub fn poll(&mut self, now: Time, valid_until: Time) -> Option<ContenderStep> {
        if let Some(step) = self.steps.pop_front() {
            return Some(step);
        }
        let is_valid = now < valid_until && valid_until.since(now) > self.plan.min_validity;
        if !(matches!(self.state, State::First { .. }) && is_valid) {
            return None;
        }
        let State::First { own, share } = self.leave_state() else {
            return None;
        };
        let held = Held {
            paths: self.holding(&own, share.as_ref()).collect(),
            created_by: own.created_by.expect("it is known before its place is"),
            slot: share.as_ref().and_then(|share| share.granted.slot()),
        };
        self.state = State::Held { own, share };
        Some(ContenderStep::Held(held))
    }

    /// How many contenders were before it when it last looked, while it waits.
    pub fn place(&self) -> Option<usize> {
        self.place
    }

    /// Is nobody before it, and does it wait until the session is valid for long enough?
    pub fn awaits_validity(&self) -> bool {
        matches!(self.state, State::First { .. })
    }

    /// The request that checks whether the lock is still there, if it is held.
    pub fn check_of_held(&self) -> Option<EnsembleRequest> {
        let State::Held { own, share } = &self.state else {
            return None;
        };
        let checks = self.holding(own, share.as_ref()).map(MultiOperation::Check);
        Some(EnsembleRequest::Multi(checks.collect()))
    }

    /// The answer to the request with this serial.
    pub fn answered(&mut self, serial: Serial, zxid: i64, reply: Response<'_>) {
        if self.noted(serial, reply) {
            return;
        }
        match self.leave_state() {
            State::Looking { looks } if looks.front().is_some_and(|look| look.has(serial)) => {
                self.looked(looks, serial, reply);
            }
            State::Joining {
                id, create, looks, ..
            } if create == serial => {
                self.created(id, looks, zxid, reply);
            }
            State::Unknown { id, search } if search.lists.front() == Some(&serial) => {
                self.search_on(id, search, reply);
            }
            State::InQueue { own, turn } if turn.awaits() == Some(serial) => {
                self.told(own, turn, reply);
            }
            State::Sharing {
                own,
                share,
                parent,
                multi,
                renews,
            } if multi == serial => {
                self.shared(own, share, renews, parent.is_some(), reply);
            }
            State::Uncertain {
                own,
                share,
                list,
                is_synced,
                ..
            } if list == serial => {
                self.searched_share(own, share, is_synced, reply);
            }
            State::DeletingTogether {
                own,
                renewed,
                multi,
            } if multi == serial => {
                self.deleted_together(own, renewed, reply);
            }
            State::Deleting {
                delete,
                rest,
                may_be_done,
                cleanup,
            } if delete == serial => {
                self.deleted(rest, may_be_done, cleanup, reply);
            }
            // An answer that nobody waits for any more.
            other => self.state = other,
        }
    }

    /// Notes what an answer says about a request before the awaited one: a sync, or the creation of
    /// a directory. Returns whether it was of that kind.
    fn noted(&mut self, serial: Serial, reply: Response<'_>) -> bool {
        match &mut self.state {
            State::Joining { parents, .. } if parents.contains(&serial) => {
                self.refusal = self.refusal.or(refused_directory(self.attempted, reply));
                if let Err(Failure::Server(EnsembleError::NoNode)) = reply {
                    self.parents = Parents::All;
                }
            }
            State::Sharing { parent, .. } if *parent == Some(serial) => {
                let Err(Failure::Server(error)) = reply else {
                    return true;
                };
                match error.remedy() {
                    Remedy::Configure => self.refusal = Some(*error),
                    Remedy::Wait => self.steps.push_back(ContenderStep::Pause),
                    _ => {}
                }
            }
            State::Unknown {
                search: Search {
                    sync, is_synced, ..
                },
                ..
            }
            | State::Uncertain {
                sync, is_synced, ..
            } if *sync == serial => {
                *is_synced = reply.is_ok();
            }
            _ => return false,
        }
        true
    }

    /// What an answer about znodes says. If that is nothing, it is to be asked for again, after a
    /// pause if a server has refused it.
    fn finding<'a>(&mut self, reply: Response<'a>) -> Finding<'a> {
        match reply {
            Ok(reply) => Finding::Reply(reply),
            Err(Failure::Server(EnsembleError::NoNode)) => Finding::Absent,
            Err(Failure::SessionLost) => Finding::SessionLost,
            Err(Failure::Unanswered) => Finding::Nothing,
            Err(Failure::Server(_) | Failure::TooLong(_)) => {
                self.steps.push_back(ContenderStep::Pause);
                Finding::Nothing
            }
        }
    }

    /// The session and all its znodes are gone.
    pub fn session_lost(&mut self) {
        self.given_up.clear();
        if matches!(self.state, State::New | State::Looking { .. } | State::Over) {
            return;
        }
        // What was to be done for its znode is done with the session.
        self.steps.clear();
        match self.state {
            State::Held { .. } => self.finish(ContenderStep::Lost),
            _ => self.attempt_lost(),
        }
    }

    /// A znode of the session was removed by somebody else.
    pub fn removed(&mut self, path: &str) {
        let (own, share) = match &self.state {
            State::Held { own, share } | State::First { own, share } => (own, share.as_ref()),
            // A list that had it may be answered already.
            State::InQueue { own, .. } => (own, None),
            // The transaction that makes the share deletes the znode of the queue, and fails if
            // somebody else has.
            _ => return,
        };
        let mut others: Vec<_> = self.holding(own, share).collect();
        let Some(at) = others.iter().position(|own| **own == *path) else {
            return;
        };
        others.remove(at);
        // Of a set, the others are still there.
        self.steps.extend(
            others
                .into_iter()
                .map(|path| ContenderStep::Delete(None, path)),
        );
        match self.state {
            State::Held { .. } => self.finish(ContenderStep::Lost),
            _ => self.restart(),
        }
    }

    /// What it may have created went with the session.
    fn attempt_lost(&mut self) {
        if self.is_given_up {
            return self.finish(ContenderStep::CleanedUp(Cleanup::WasGone));
        }
        self.restart();
    }

    /// Begins again, at the end of the queue.
    fn restart(&mut self) {
        self.state = State::New;
        self.place = None;
        self.steps.push_back(ContenderStep::Begin);
    }

    fn finish(&mut self, step: ContenderStep) {
        self.state = State::Over;
        self.place = None;
        self.steps.push_back(step);
    }

    fn leave_state(&mut self) -> State {
        std::mem::replace(&mut self.state, State::Over)
    }

    /// The znodes that hold the lock: the share, or those of the queues.
    fn holding(&self, own: &Own, share: Option<&OwnShare>) -> impl Iterator<Item = Arc<str>> {
        let queued = self.plan.paths(own).filter(move |_| share.is_none());
        queued.chain(share.map(|share| Arc::clone(&share.path)))
    }

    /// A step for each of its znodes of the queues.
    fn for_each(&mut self, own: &Own, step: impl FnMut(Arc<str>) -> ContenderStep) {
        self.steps.extend(self.plan.paths(own).map(step));
    }

    /// Deletes its znodes of the queues without waiting for it.
    fn delete_unheard(&mut self, own: &Own) {
        self.for_each(own, |path| ContenderStep::Delete(None, path));
    }

    /// The same, and it is over.
    fn end(&mut self, own: &Own, step: ContenderStep) {
        self.delete_unheard(own);
        self.finish(step);
    }

    fn ask(&mut self, request: EnsembleRequest) -> Serial {
        let serial = self.next_serial();
        self.steps.push_back(ContenderStep::Send(serial, request));
        serial
    }

    fn next_serial(&mut self) -> Serial {
        self.serial = self.serial.wrapping_add(1);
        Serial(self.serial)
    }
}

// Giving up, from any state: nothing that was created is left behind.

impl Contender {
    /// Releases the lock, or gives up waiting for it. The last step is
    /// [`ContenderStep::CleanedUp`], unless the contender is over already.
    pub fn give_up(&mut self) {
        self.is_given_up = true;
        match self.leave_state() {
            State::New | State::Looking { .. } => {
                self.finish(ContenderStep::CleanedUp(Cleanup::Nothing));
            }
            State::InQueue { own, .. } => self.delete_all(own),
            State::Sharing { own, share, .. } | State::Uncertain { own, share, .. } => {
                // The transaction may be carried out. The znode of the queue goes first: without it
                // there will be no share, if there is none yet.
                let paths = self.plan.paths(&own).chain([share.path]).collect();
                self.delete(paths, true, Cleanup::Deleted);
            }
            State::First { own, share } | State::Held { own, share } => match share {
                Some(share) => self.delete([share.path].into(), false, Cleanup::Deleted),
                None => self.delete_all(own),
            },
            // What it has created is deleted when that is known, or is being deleted.
            other => self.state = other,
        }
    }

    /// Leaves the queues, and removes the directories whose numbers are large.
    fn delete_all(&mut self, own: Own) {
        let each = 0..own.numbers.len();
        let renewed = each
            .filter(|at| own.numbers[*at].renews_directory())
            .collect();
        self.delete_together(own, renewed);
    }

    fn delete_together(&mut self, own: Own, renewed: Vec<usize>) {
        self.place = None;
        if renewed.is_empty() && !self.plan.is_set() {
            return self.delete(self.plan.paths(&own).collect(), false, Cleanup::Deleted);
        }
        let mut deletes: Vec<_> = self.plan.paths(&own).map(MultiOperation::Delete).collect();
        for at in &renewed {
            let directory = Arc::clone(&self.plan.directories[*at].path);
            deletes.push(MultiOperation::Delete(directory));
        }
        let multi = self.ask(EnsembleRequest::Multi(deletes.into()));
        self.state = State::DeletingTogether {
            own,
            renewed,
            multi,
        };
    }

    /// Deletes these znodes one after the other; it is over when there are none. `may_be_done`:
    /// whether one that is not there counts as deleted.
    fn delete(&mut self, mut rest: VecDeque<Arc<str>>, may_be_done: bool, cleanup: Cleanup) {
        self.place = None;
        let Some(path) = rest.pop_front() else {
            return self.finish(ContenderStep::CleanedUp(cleanup));
        };
        let delete = self.next_serial();
        self.steps
            .push_back(ContenderStep::Delete(Some(delete), path));
        self.state = State::Deleting {
            delete,
            rest,
            may_be_done,
            cleanup,
        };
    }

    fn deleted(
        &mut self,
        rest: VecDeque<Arc<str>>,
        may_be_done: bool,
        cleanup: Cleanup,
        reply: Response<'_>,
    ) {
        let cleanup = match reply {
            Ok(_) => cleanup,
            Err(Failure::Server(EnsembleError::NoNode)) if may_be_done => cleanup,
            Err(Failure::Server(EnsembleError::NoNode)) => Cleanup::WasGone,
            Err(Failure::SessionLost) => return self.attempt_lost(),
            Err(Failure::Server(error)) => Cleanup::Refused(*error),
            Err(Failure::Unanswered | Failure::TooLong(_)) => {
                debug_assert!(false, "a session repeats a delete, and has sent its path");
                Cleanup::WasGone
            }
        };
        self.delete(rest, may_be_done, cleanup);
    }

    fn deleted_together(&mut self, own: Own, mut renewed: Vec<usize>, reply: Response<'_>) {
        let failure = match reply {
            Ok(EnsembleReply::Results(results)) => results.failure(),
            Ok(_) | Err(Failure::TooLong(_)) => Some((0, EnsembleError::RuntimeInconsistency)),
            Err(Failure::Server(error)) => Some((0, *error)),
            Err(Failure::Unanswered) => {
                return self.delete(self.plan.paths(&own).collect(), true, Cleanup::Deleted);
            }
            Err(Failure::SessionLost) => return self.attempt_lost(),
        };
        match failure {
            None => {
                self.for_each(&own, ContenderStep::Forget);
                self.finish(ContenderStep::CleanedUp(Cleanup::Deleted));
            }
            // Others are in the directory.
            Some((place, EnsembleError::NotEmpty)) if place >= own.numbers.len() => {
                let place = place - own.numbers.len();
                if place < renewed.len() {
                    renewed.remove(place);
                }
                self.delete_together(own, renewed);
            }
            Some((_, EnsembleError::NoNode)) if !self.plan.is_set() => {
                self.for_each(&own, ContenderStep::Forget);
                self.finish(ContenderStep::CleanedUp(Cleanup::WasGone));
            }
            Some(_) => self.delete(self.plan.paths(&own).collect(), false, Cleanup::Deleted),
        }
    }
}

#[cfg(test)]
mod tests;
