//! Waiting in a queue: the place in it, and the one watch.

use super::queue::{Place, find, place};
use super::state::Look;
use super::{Contender, Own, Parents, Serial, State, Step};
use crate::message::{Names, Reply, Request, ServerError};
use crate::session::Failure;
use std::collections::VecDeque;

impl Contender {
    /// A watch has ended.
    pub fn changed(&mut self, path: &str) {
        let plan = &self.plan;
        match &mut self.state {
            State::Watching { own, before, has_changed, .. } => {
                *has_changed |= *plan.directory(own.at).child(before) == *path;
            }
            State::Checking { own, has_changed, .. } => {
                *has_changed |= *plan.directory(own.at).shares() == *path;
            }
            State::Queued { own, before } if *plan.directory(own.at).child(before) == *path => {
                let own = own.clone();
                self.list(own);
            }
            State::Blocked { own } if *plan.directory(own.at).shares() == *path => {
                let own = own.clone();
                self.check(own, true);
            }
            _ => {}
        }
    }

    /// The session has another connection, and no watch on it.
    pub fn connected(&mut self) {
        match self.leave_state() {
            State::Queued { own, before } => self.watch(own, before),
            State::Blocked { own } => self.check(own, true),
            // It may have been removed since, and whoever was behind it hold the lock.
            State::First { own, share: None } => self.look_again(own),
            State::First { own, share: Some(share) } => self.search_share(own, share),
            other => self.state = other,
        }
    }

    /// Whether it is still the first everywhere.
    fn look_again(&mut self, own: Own) {
        self.list(Own { at: 0, ..own });
    }

    pub(super) fn answered_waiting(&mut self, serial: Serial, reply: Result<Reply<'_>, &Failure>) {
        match self.leave_state() {
            State::Dating { own, stat } if stat == serial => self.dated(own, reply),
            State::Listing { own, looks } if looks.front().is_some_and(|l| l.list == serial) => {
                self.listed(own, looks, reply);
            }
            State::Comparing { own, others, asked, stat } if stat == serial => {
                self.compared(own, others, asked, reply);
            }
            State::Watching { own, before, data, has_changed } if data == serial => {
                self.watched(own, before, has_changed, reply);
            }
            other => self.state = other,
        }
    }

    /// Asks which transaction created its own znode.
    pub(super) fn date(&mut self, own: Own) {
        let path = self.plan.paths(&own).next().expect("it has a znode for each lock");
        let stat = self.ask(Request::Exists { path, watch: false });
        self.state = State::Dating { own, stat };
    }

    fn dated(&mut self, own: Own, reply: Result<Reply<'_>, &Failure>) {
        match reply {
            Ok(Reply::Found(stat)) => {
                self.list(Own { created_by: Some(stat.created_by), ..own });
            }
            Err(Failure::Server(ServerError::NoNode)) => self.start_over(&own),
            Err(Failure::SessionLost) => self.restart(),
            Ok(_) | Err(Failure::Unanswered) => self.date(own),
            Err(Failure::Server(_) | Failure::TooLong(_)) => {
                self.steps.push_back(Step::Pause);
                self.date(own);
            }
        }
    }

    /// Asks for the lists of the locks that it has not got yet.
    pub(super) fn list(&mut self, own: Own) {
        let looks = self.ask_lists(own.at);
        self.state = State::Listing { own, looks };
    }

    /// Asks for the contenders and the shares of the locks from this one on.
    pub(super) fn ask_lists(&mut self, from: usize) -> VecDeque<Look> {
        let each = from..self.plan.directories().len();
        each.map(|at| Look {
            list: self.ask(self.plan.list(at)),
            shares: self.ask(self.plan.shares(at, false)),
        })
        .collect()
    }

    fn listed(&mut self, own: Own, mut looks: VecDeque<Look>, reply: Result<Reply<'_>, &Failure>) {
        match reply {
            Ok(Reply::Children { names, .. }) => {
                self.delete_strays(own.at, names);
                let name = self.plan.layout.name(own.id, own.number());
                match place(self.plan.layout, names, &name, own.number()) {
                    Place::Missing => self.start_over(&own),
                    Place::First => {
                        let look = looks.pop_front().expect("its list was answered");
                        self.checking(own, look.shares, false, looks);
                    }
                    Place::Behind { before, count } => self.queue(own, before, count),
                    Place::Undated { others } => {
                        self.dates.retain(|name, _| others.contains(name));
                        self.compare(own, others);
                    }
                }
            }
            Err(Failure::Server(ServerError::NoNode)) => {
                self.parents = Parents::Last;
                self.start_over(&own);
            }
            Err(Failure::SessionLost) => self.restart(),
            Ok(_) | Err(Failure::Unanswered) => self.list(own),
            Err(Failure::Server(_) | Failure::TooLong(_)) => {
                self.steps.push_back(Step::Pause);
                self.list(own);
            }
        }
    }

    /// One of its znodes is gone. The others of a set are deleted.
    fn start_over(&mut self, own: &Own) {
        if self.plan.is_set() {
            self.delete_unheard(own);
        }
        self.restart();
    }

    /// Deletes what was created after all under an id that was given up.
    fn delete_strays(&mut self, at: usize, names: Names<'_>) {
        let (plan, given_up) = (&self.plan, self.given_up.iter());
        let strays = given_up.filter_map(|id| Some((*id, find(plan.layout, names, *id)?)));
        let names = strays.map(|(id, number)| plan.layout.name(id, number));
        let paths = names.map(|name| plan.directory(at).child(&name));
        let deletes: Vec<Step> = paths.map(|path| Step::Delete(None, path)).collect();
        self.steps.extend(deletes);
    }

    fn queue(&mut self, own: Own, before: String, count: usize) {
        if self.plan.waits {
            self.place = Some(count);
            return self.watch(own, before);
        }
        self.contended(&own);
    }

    /// Another one was faster.
    pub(super) fn contended(&mut self, own: &Own) {
        self.delete_unheard(own);
        self.finish(Step::Contended);
    }

    /// Asks for the next transaction that is not known; then the place follows from them.
    fn compare(&mut self, own: Own, others: Vec<String>) {
        let unknown = others.iter().find(|name| !self.dates.contains_key(*name)).cloned();
        if let Some(asked) = unknown {
            let path = self.plan.directory(own.at).child(&asked);
            let stat = self.ask(Request::Exists { path, watch: false });
            self.state = State::Comparing { own, others, asked, stat };
            return;
        }
        let dates = others.into_iter().filter_map(|name| Some((*self.dates.get(&name)?, name)));
        let before: Vec<_> = dates.filter(|(date, _)| Some(*date) < own.created_by).collect();
        let count = before.len();
        match before.into_iter().max() {
            None => self.check(own, false),
            Some((_, before)) => self.queue(own, before, count),
        }
    }

    fn compared(
        &mut self,
        own: Own,
        mut others: Vec<String>,
        asked: String,
        reply: Result<Reply<'_>, &Failure>,
    ) {
        match reply {
            Ok(Reply::Found(stat)) => {
                self.dates.insert(asked, stat.created_by);
            }
            Err(Failure::Server(ServerError::NoNode)) => others.retain(|name| *name != asked),
            Err(Failure::SessionLost) => return self.restart(),
            Ok(_) | Err(Failure::Unanswered) => {}
            Err(Failure::Server(_) | Failure::TooLong(_)) => self.steps.push_back(Step::Pause),
        }
        self.compare(own, others);
    }

    fn watch(&mut self, own: Own, before: String) {
        let path = self.plan.directory(own.at).child(&before);
        let data = self.ask(Request::GetData { path, watch: true });
        self.state = State::Watching { own, before, data, has_changed: false };
    }

    fn watched(
        &mut self,
        own: Own,
        before: String,
        has_changed: bool,
        reply: Result<Reply<'_>, &Failure>,
    ) {
        match reply {
            Ok(_) if !has_changed => self.state = State::Queued { own, before },
            // It may have given up before its turn, so somebody else may be before this one.
            Ok(_) | Err(Failure::Server(ServerError::NoNode)) => self.list(own),
            Err(Failure::SessionLost) => self.restart(),
            Err(Failure::Unanswered) => self.watch(own, before),
            Err(Failure::Server(_) | Failure::TooLong(_)) => {
                self.steps.push_back(Step::Pause);
                self.watch(own, before);
            }
        }
    }
}
