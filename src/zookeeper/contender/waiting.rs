//! Waiting in the queue: the place in it, and the one watch.

use super::queue::{Place, place};
use super::{Contender, Own, Parents, Serial, State, Step};
use crate::zookeeper::message::{Names, Reply, Request, ServerError};
use crate::zookeeper::session::Failure;

impl Contender {
    /// A watch has ended.
    pub fn changed(&mut self, path: &str) {
        let directory = &self.plan.directory;
        match &mut self.state {
            State::Watching { before, has_changed, .. } => {
                *has_changed |= *directory.child(before) == *path;
            }
            State::Queued { own, before } if *directory.child(before) == *path => {
                let own = own.clone();
                self.list(own);
            }
            _ => {}
        }
    }

    /// The session has another connection, and no watch on it.
    pub fn connected(&mut self) {
        if let State::Queued { own, before } = &self.state {
            let (own, before) = (own.clone(), before.clone());
            self.watch(own, before);
        }
    }

    pub(super) fn answered_waiting(&mut self, serial: Serial, reply: Result<Reply<'_>, &Failure>) {
        match self.leave_state() {
            State::Dating { own, stat } if stat == serial => self.dated(own, reply),
            State::Listing { own, list } if list == serial => self.listed(own, reply),
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
        let path = self.plan.directory.child(&own.name);
        let stat = self.ask(Request::Exists { path, watch: false });
        self.state = State::Dating { own, stat };
    }

    fn dated(&mut self, own: Own, reply: Result<Reply<'_>, &Failure>) {
        match reply {
            Ok(Reply::Found(stat)) => {
                self.list(Own { created_by: Some(stat.created_by), ..own });
            }
            Err(Failure::Server(ServerError::NoNode) | Failure::SessionLost) => self.restart(),
            Ok(_) | Err(Failure::Unanswered) => self.date(own),
            Err(Failure::Server(_) | Failure::TooLong(_)) => {
                self.steps.push_back(Step::Pause);
                self.date(own);
            }
        }
    }

    fn list(&mut self, own: Own) {
        let list = self.ask(self.plan.list());
        self.state = State::Listing { own, list };
    }

    fn listed(&mut self, own: Own, reply: Result<Reply<'_>, &Failure>) {
        match reply {
            Ok(Reply::Children { names, .. }) => {
                self.delete_strays(names);
                match place(self.plan.layout, names, &own.name, own.number) {
                    Place::Missing => self.restart(),
                    Place::First => {
                        self.place = None;
                        self.state = State::First { own };
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
                self.restart();
            }
            Err(Failure::SessionLost) => self.restart(),
            Ok(_) | Err(Failure::Unanswered) => self.list(own),
            Err(Failure::Server(_) | Failure::TooLong(_)) => {
                self.steps.push_back(Step::Pause);
                self.list(own);
            }
        }
    }

    /// Deletes what was created after all under an id that was given up.
    fn delete_strays(&mut self, names: Names<'_>) {
        let strays = self.given_up.iter().filter_map(|id| self.find(names, *id));
        let paths = strays.map(|stray| self.plan.directory.child(&stray.name));
        let deletes: Vec<Step> = paths.map(|path| Step::Delete(None, path)).collect();
        self.steps.extend(deletes);
    }

    fn queue(&mut self, own: Own, before: String, count: usize) {
        if self.plan.waits {
            self.place = Some(count);
            return self.watch(own, before);
        }
        // Another one was faster.
        self.steps.push_back(Step::Delete(None, self.plan.directory.child(&own.name)));
        self.finish(Step::Contended);
    }

    /// Asks for the next transaction that is not known; then the place follows from them.
    fn compare(&mut self, own: Own, others: Vec<String>) {
        let unknown = others.iter().find(|name| !self.dates.contains_key(*name)).cloned();
        if let Some(asked) = unknown {
            let path = self.plan.directory.child(&asked);
            let stat = self.ask(Request::Exists { path, watch: false });
            self.state = State::Comparing { own, others, asked, stat };
            return;
        }
        let dates = others.into_iter().filter_map(|name| Some((*self.dates.get(&name)?, name)));
        let before: Vec<_> = dates.filter(|(date, _)| Some(*date) < own.created_by).collect();
        let count = before.len();
        match before.into_iter().max() {
            None => {
                self.place = None;
                self.state = State::First { own };
            }
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
        let path = self.plan.directory.child(&before);
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
