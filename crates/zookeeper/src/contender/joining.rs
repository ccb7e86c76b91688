//! Joining the queues: from the first request to its own znodes, whatever gets lost.

use super::state::{Finding, ListPairs, Search, Turn};
use super::waiting::{find, has_contender};
use super::{Cleanup, Contender, ContenderStep, Own, Parents, Serial, State};
use crate::message::{EnsembleError, EnsembleReply, OperationResult};
use crate::path::{ContenderId, Number};
use crate::session::{Failure, Response};
use crate::shares::Admission;
use std::collections::VecDeque;
use std::sync::Arc;

/// How many ids are remembered under which nothing was found. That something comes under one of
/// them would be a fault of the ensemble, and each costs a comparison with every name of a list.
const GIVEN_UP_MAX: usize = 16;

impl Contender {
    /// Makes an attempt, with random bytes that were never used before.
    pub fn begin(&mut self, random: [u8; 16]) {
        if !matches!(self.state, State::New) {
            // It was given up meanwhile.
            return;
        }
        let id = ContenderId::from_random(random);
        self.attempted = self.parents;
        self.refusal = None;
        let mut parents = Vec::new();
        if self.parents != Parents::Present {
            let requests = self.plan.parents(self.parents == Parents::All);
            parents.extend(requests.into_iter().map(|request| self.ask(request)));
            let above = parents.len() - self.plan.directories.len();
            parents.drain(..above);
        }
        let create = self.ask(self.plan.join(id));
        let looks = self.ask_lists(0);
        self.state = State::Joining {
            id,
            parents,
            create,
            looks,
        };
    }

    /// Looks whether others are there, and writes nothing.
    pub(super) fn look(&mut self) {
        self.ask(self.plan.sync());
        let looks = self.ask_lists(0);
        self.state = State::Looking { looks };
    }

    pub(super) fn looked(&mut self, mut looks: ListPairs, serial: Serial, reply: Response<'_>) {
        let is_list = looks.front().is_some_and(|look| look.list == serial);
        let is_contended = match reply {
            Ok(EnsembleReply::Children { names, .. }) if is_list => {
                has_contender(self.plan.layout, names)
            }
            Ok(EnsembleReply::Children { names, .. }) => {
                self.admission(Some(names)) == Admission::None
            }
            Ok(_) => false,
            Err(Failure::Server(EnsembleError::NoNode)) => {
                if is_list {
                    self.parents = Parents::Last;
                }
                false
            }
            Err(Failure::Unanswered | Failure::SessionLost) => return self.look(),
            Err(failure) => return self.finish(ContenderStep::Refused(failure.clone())),
        };
        if is_contended {
            return self.finish(ContenderStep::Contended);
        }
        if !is_list {
            looks.pop_front();
        }
        match looks.is_empty() {
            true => self.restart(),
            false => self.state = State::Looking { looks },
        }
    }

    pub(super) fn created(
        &mut self,
        id: ContenderId,
        looks: ListPairs,
        zxid: i64,
        reply: Response<'_>,
    ) {
        let failure = match reply {
            Ok(EnsembleReply::Results(results)) => results.error().map(Failure::Server),
            Ok(_) => None,
            Err(failure) => Some(failure.clone()),
        };
        match failure {
            // The transaction of a create is the czxid of its znode. No server appends anything but
            // a number; what has another name is found by its id, or not at all.
            None => match reply.ok().and_then(|reply| self.own(id, zxid, &reply)) {
                None => self.look_for(id),
                Some(own) if self.is_given_up => self.delete_all(own),
                Some(own) => {
                    self.parents = Parents::Present;
                    self.for_each(&own, ContenderStep::Keep);
                    self.state = State::InQueue {
                        own,
                        turn: Turn::Listing { looks },
                    };
                }
            },
            Some(Failure::SessionLost) => self.attempt_lost(),
            Some(Failure::Unanswered) => self.look_for(id),
            Some(Failure::Server(error)) if !is_refusal(error) => self.look_later_for(id),
            Some(_) if self.is_given_up => self.finish(ContenderStep::CleanedUp(Cleanup::Nothing)),
            // A directory may have been removed since it was created: a container that is empty.
            Some(Failure::Server(EnsembleError::NoNode)) => match self.refusal {
                Some(error) => self.finish(ContenderStep::Refused(Failure::Server(error))),
                None => {
                    if self.parents == Parents::Present {
                        self.parents = Parents::Last;
                    }
                    self.restart();
                }
            },
            Some(failure) => self.finish(ContenderStep::Refused(failure)),
        }
    }

    /// Looks for what a create may have created, in all queues that it was to join. The lists alone
    /// would not show it while a majority still agrees on it.
    fn look_for(&mut self, id: ContenderId) {
        let sync = self.ask(self.plan.sync());
        let each = 0..self.plan.directories.len();
        let lists = each.map(|at| self.ask(self.plan.list(at))).collect();
        let search = Search {
            sync,
            is_synced: false,
            lists,
            found: Vec::new(),
        };
        self.state = State::Unknown { id, search };
    }

    fn look_later_for(&mut self, id: ContenderId) {
        self.steps.push_back(ContenderStep::Pause);
        self.look_for(id);
    }

    /// The next list of a search is answered.
    pub(super) fn search_on(&mut self, id: ContenderId, mut search: Search, reply: Response<'_>) {
        search.lists.pop_front();
        search.found.push(match self.finding(reply) {
            Finding::Reply(EnsembleReply::Children { names, .. }) => {
                find(self.plan.layout, names, id)
            }
            Finding::Absent => {
                self.parents = Parents::Last;
                None
            }
            Finding::SessionLost => return self.attempt_lost(),
            Finding::Reply(_) | Finding::Nothing => return self.look_for(id),
        });
        if !search.lists.is_empty() {
            self.state = State::Unknown { id, search };
            return;
        }
        let numbers: Option<Vec<Number>> = search.found.iter().copied().collect();
        match numbers {
            Some(numbers) => {
                let own = Own {
                    id,
                    numbers,
                    created_by: None,
                    at: 0,
                };
                if self.is_given_up {
                    return self.delete_all(own);
                }
                self.for_each(&own, ContenderStep::Keep);
                self.date(own);
            }
            // It may be there anyway.
            None if !search.is_synced => self.look_later_for(id),
            None => self.give_up_id(id, &search.found),
        }
    }

    /// Nothing was created under this id, or not all of it is left: these znodes of a set.
    fn give_up_id(&mut self, id: ContenderId, found: &[Option<Number>]) {
        let layout = self.plan.layout;
        let mut paths = VecDeque::new();
        for (directory, number) in self.plan.directories.iter().zip(found) {
            if let Some(number) = number {
                paths.push_back(directory.child(&layout.name(id, *number)));
            }
        }
        if self.is_given_up {
            let cleanup = if paths.is_empty() {
                Cleanup::Nothing
            } else {
                Cleanup::Deleted
            };
            return self.delete(paths, false, cleanup);
        }
        for path in paths {
            self.steps.push_back(ContenderStep::Delete(None, path));
        }
        if self.given_up.len() == GIVEN_UP_MAX {
            self.given_up.remove(0);
        }
        self.given_up.push(id);
        self.restart();
    }

    /// The znodes that this transaction created under this id, if they have its name and a number.
    fn own(&self, id: ContenderId, created_by: i64, reply: &EnsembleReply<'_>) -> Option<Own> {
        let layout = self.plan.layout;
        let paths: Vec<&str> = match reply {
            EnsembleReply::Created { path, .. } => vec![path],
            EnsembleReply::Results(results) => {
                let mut paths = Vec::new();
                for result in results.iter() {
                    let OperationResult::Created(path) = result else {
                        return None;
                    };
                    paths.push(path);
                }
                paths
            }
            _ => return None,
        };
        let mut numbers = Vec::with_capacity(paths.len());
        for path in &paths {
            let name = path.rsplit('/').next()?;
            numbers.push(layout.number(name.as_bytes())?);
        }
        let own = Own {
            id,
            numbers,
            created_by: Some(created_by),
            at: 0,
        };
        let expected = self.plan.paths(&own);
        expected.eq(paths.into_iter().map(Arc::from)).then_some(own)
    }
}

/// Why a lock's directory was not created, if trying again is of no use.
pub(super) fn refused_directory(parents: Parents, reply: Response<'_>) -> Option<EnsembleError> {
    match reply {
        Err(Failure::Server(EnsembleError::NodeExists)) => None,
        Err(Failure::Server(EnsembleError::NoNode)) if parents != Parents::All => None,
        Err(Failure::Server(error)) => Some(*error),
        _ => None,
    }
}

/// Does this error of a create say that nothing was created, and nothing will be?
fn is_refusal(error: EnsembleError) -> bool {
    !matches!(
        error,
        EnsembleError::RequestTimeout
            | EnsembleError::RuntimeInconsistency
            | EnsembleError::Other(_)
    )
}
