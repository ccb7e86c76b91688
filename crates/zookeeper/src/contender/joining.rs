//! Joining the queues: from the first request to znodes of its own, whatever gets lost.

use super::state::{Look, Search};
use super::waiting::{find, has_contender};
use super::{Contender, Own, Parents, Serial, State, Step};
use crate::message::{OperationResult, Reply, ServerError};
use crate::path::{ContenderId, Number};
use crate::session::Failure;
use crate::shares::Admission;
use redlatch_protocol::time::Time;
use std::collections::VecDeque;
use std::sync::Arc;

/// How many ids are remembered under which nothing was found. That something comes under one of
/// them would be a fault of the ensemble, and each costs a comparison with every name of a list.
const GIVEN_UP_MAX: usize = 16;

impl Contender {
    /// Makes an attempt, with random bytes that were never used before; `now` is read before
    /// anything is written for it.
    pub fn begin(&mut self, now: Time, random: [u8; 16]) {
        if !matches!(self.state, State::New) {
            // It was given up meanwhile.
            return;
        }
        let id = ContenderId::from_random(random);
        self.since = now;
        self.attempted = self.parents;
        let mut directories = Vec::new();
        if self.parents != Parents::Present {
            let requests = self.plan.parents(self.parents == Parents::All, self.is_plain);
            directories.extend(requests.into_iter().map(|request| self.ask(request)));
            let above = directories.len() - self.plan.directories().len();
            directories.drain(..above);
        }
        let create = self.ask(self.plan.join(id, self.is_plain));
        let looks = self.ask_lists(0);
        self.state = State::Joining { id, directories, create, looks, refusal: None };
    }

    /// Looks whether others are there, and writes nothing.
    pub(super) fn look(&mut self) {
        self.ask(self.plan.sync());
        let looks = self.ask_lists(0);
        self.state = State::Looking { looks };
    }

    pub(super) fn answered_joining(
        &mut self,
        serial: Serial,
        zxid: i64,
        reply: Result<Reply<'_>, &Failure>,
    ) {
        match self.leave_state() {
            State::Looking { looks } => self.looked(looks, serial, reply),
            State::Joining { id, directories, create, looks, refusal }
                if directories.contains(&serial) =>
            {
                let refusal = refusal.or(refused_directory(self.attempted, reply));
                match reply {
                    Err(Failure::Server(ServerError::NoNode)) => self.parents = Parents::All,
                    // A transaction would not say so.
                    Err(Failure::Server(ServerError::Unimplemented)) if self.plan.is_set() => {
                        self.is_plain = true;
                    }
                    _ => {}
                }
                self.state = State::Joining { id, directories, create, looks, refusal };
            }
            State::Joining { id, create, looks, refusal, .. } if create == serial => {
                self.created(id, looks, refusal, zxid, reply);
            }
            State::Unknown { id, search } => match self.search_on(id, search, serial, reply) {
                Found::Search(search) => self.state = State::Unknown { id, search },
                found => self.searched(id, found),
            },
            // The answer to a sync, or to the creation of a directory above.
            other => self.state = other,
        }
    }

    fn looked(
        &mut self,
        mut looks: VecDeque<Look>,
        serial: Serial,
        reply: Result<Reply<'_>, &Failure>,
    ) {
        let (is_list, is_shares) = looks
            .front()
            .map_or((false, false), |look| (look.list == serial, look.shares == serial));
        if !is_list && !is_shares {
            // The answer to the sync.
            self.state = State::Looking { looks };
            return;
        }
        let is_contended = match reply {
            Ok(Reply::Children { names, .. }) if is_list => has_contender(self.plan.layout, names),
            Ok(Reply::Children { names, .. }) => self.admission(Some(names)) == Admission::None,
            Ok(_) => false,
            Err(Failure::Server(ServerError::NoNode)) => {
                if is_list {
                    self.parents = Parents::Last;
                }
                false
            }
            Err(Failure::Unanswered | Failure::SessionLost) => return self.look(),
            Err(failure) => return self.finish(Step::Refused(failure.clone())),
        };
        if is_contended {
            return self.finish(Step::Contended);
        }
        if is_shares {
            looks.pop_front();
        }
        match looks.is_empty() {
            true => self.restart(),
            false => self.state = State::Looking { looks },
        }
    }

    fn created(
        &mut self,
        id: ContenderId,
        looks: VecDeque<Look>,
        refusal: Option<ServerError>,
        zxid: i64,
        reply: Result<Reply<'_>, &Failure>,
    ) {
        let error = match refused(reply) {
            None => {
                // The transaction of a create is the czxid of its znode. No server appends anything
                // but a number; what has another name is found by its id, or not at all.
                let own = reply.ok().and_then(|reply| self.own(id, Some(zxid), &reply));
                let Some(own) = own else { return self.look_for(id) };
                self.parents = Parents::Present;
                self.keep(&own);
                self.state = State::Listing { own, looks };
                return;
            }
            Some(Failure::Server(error)) => error,
            Some(Failure::SessionLost) => return self.restart(),
            Some(Failure::Unanswered) => return self.look_for(id),
            Some(failure @ Failure::TooLong(_)) => return self.finish(Step::Refused(failure)),
        };
        match error {
            // A directory may have been removed since it was created: a container that is empty.
            ServerError::NoNode => match refusal {
                Some(error) => self.finish(Step::Refused(Failure::Server(error))),
                None => {
                    if self.parents == Parents::Present {
                        self.parents = Parents::Last;
                    }
                    self.restart();
                }
            },
            ServerError::Unimplemented if !self.is_plain => {
                self.is_plain = true;
                self.restart();
            }
            error if !is_refusal(error) => self.look_later_for(id),
            error => self.finish(Step::Refused(Failure::Server(error))),
        }
    }

    fn look_for(&mut self, id: ContenderId) {
        let search = self.search();
        self.state = State::Unknown { id, search };
    }

    fn searched(&mut self, id: ContenderId, found: Found) {
        match found {
            Found::Search(search) => self.state = State::Unknown { id, search },
            Found::All(own) => {
                self.keep(&own);
                self.date(own);
            }
            Found::Some(paths) => {
                self.steps.extend(paths.into_iter().map(|path| Step::Delete(None, path)));
                self.give_up_id(id);
            }
            Found::Nothing => self.give_up_id(id),
            Found::Unanswered => self.look_for(id),
            // It may be there all the same.
            Found::Refused => self.look_later_for(id),
            Found::SessionLost => self.restart(),
        }
    }

    fn look_later_for(&mut self, id: ContenderId) {
        self.steps.push_back(Step::Pause);
        self.look_for(id);
    }

    /// Nothing was created under this id, or not all of it is left.
    fn give_up_id(&mut self, id: ContenderId) {
        if self.given_up.len() == GIVEN_UP_MAX {
            self.given_up.remove(0);
        }
        self.given_up.push(id);
        self.restart();
    }

    /// The znodes that were created under this id, if they have its name and a number.
    pub(super) fn own(
        &self,
        id: ContenderId,
        created_by: Option<i64>,
        reply: &Reply<'_>,
    ) -> Option<Own> {
        let layout = self.plan.layout;
        let paths: Vec<&str> = match reply {
            Reply::Created { path, .. } => vec![path],
            Reply::Results(results) => {
                let path = |result| match result {
                    OperationResult::Created(path) => Some(path),
                    _ => None,
                };
                results.iter().map(path).collect::<Option<_>>()?
            }
            _ => return None,
        };
        let number = |path: &&str| layout.number(path.rsplit('/').next()?.as_bytes());
        let numbers = paths.iter().map(number).collect::<Option<_>>()?;
        let own = Own { id, numbers, created_by, at: 0 };
        self.plan.paths(&own).eq(paths.into_iter().map(Arc::from)).then_some(own)
    }

    fn keep(&mut self, own: &Own) {
        let kept: Vec<Step> = self.plan.paths(own).map(Step::Keep).collect();
        self.steps.extend(kept);
    }
}

/// Why a request was not carried out, also if the results of a transaction say so.
pub(super) fn refused(reply: Result<Reply<'_>, &Failure>) -> Option<Failure> {
    match reply {
        Ok(Reply::Results(results)) => results.error().map(Failure::Server),
        Ok(_) => None,
        Err(failure) => Some(failure.clone()),
    }
}

/// Why a lock's directory was not created, if that is no use to try again.
fn refused_directory(parents: Parents, reply: Result<Reply<'_>, &Failure>) -> Option<ServerError> {
    match reply {
        Err(Failure::Server(ServerError::NodeExists | ServerError::Unimplemented)) => None,
        Err(Failure::Server(ServerError::NoNode)) if parents != Parents::All => None,
        Err(Failure::Server(error)) => Some(*error),
        _ => None,
    }
}

/// Does this error of a create say that nothing was created, and nothing will be?
pub(super) fn is_refusal(error: ServerError) -> bool {
    !matches!(
        error,
        ServerError::RequestTimeout | ServerError::RuntimeInconsistency | ServerError::Other(_)
    )
}

// Looking for the znodes of a create that was not answered, in all queues that it was to join.

/// What a look for the znodes of an id has found so far.
pub(super) enum Found {
    /// Not all lists are answered.
    Search(Search),
    All(Own),
    /// Some of them: the others were removed.
    Some(Vec<Arc<str>>),
    /// None, and none will come.
    Nothing,
    /// No answer.
    Unanswered,
    /// It must look again later.
    Refused,
    SessionLost,
}

impl Contender {
    /// Looks for what a create may have created. The lists alone would not show it while a majority
    /// still agrees on it.
    pub(super) fn search(&mut self) -> Search {
        let sync = self.ask(self.plan.sync());
        let each = 0..self.plan.directories().len();
        let lists = each.map(|at| self.ask(self.plan.list(at))).collect();
        Search { sync, is_synced: false, lists, found: Vec::new() }
    }

    /// What this answer adds to a search.
    pub(super) fn search_on(
        &mut self,
        id: ContenderId,
        mut search: Search,
        serial: Serial,
        reply: Result<Reply<'_>, &Failure>,
    ) -> Found {
        if serial == search.sync {
            search.is_synced = reply.is_ok();
        }
        if search.lists.front() != Some(&serial) {
            return Found::Search(search);
        }
        search.lists.pop_front();
        search.found.push(match reply {
            Ok(Reply::Children { names, .. }) => find(self.plan.layout, names, id),
            Err(Failure::Server(ServerError::NoNode)) => {
                self.parents = Parents::Last;
                None
            }
            Ok(_) | Err(Failure::Unanswered) => return Found::Unanswered,
            Err(Failure::SessionLost) => return Found::SessionLost,
            Err(Failure::Server(_) | Failure::TooLong(_)) => return Found::Refused,
        });
        if !search.lists.is_empty() {
            return Found::Search(search);
        }
        let numbers: Option<Vec<Number>> = search.found.iter().copied().collect();
        match numbers {
            Some(numbers) => Found::All(Own { id, numbers, created_by: None, at: 0 }),
            None if !search.is_synced => Found::Refused,
            None => match self.parts(id, &search.found) {
                paths if paths.is_empty() => Found::Nothing,
                paths => Found::Some(paths),
            },
        }
    }

    /// The paths of what was found of a set.
    fn parts(&self, id: ContenderId, found: &[Option<Number>]) -> Vec<Arc<str>> {
        let each = self.plan.directories().iter().zip(found);
        let each = each.filter_map(|(directory, number)| Some((directory, (*number)?)));
        let layout = self.plan.layout;
        each.map(|(directory, number)| directory.child(&layout.name(id, number))).collect()
    }
}
