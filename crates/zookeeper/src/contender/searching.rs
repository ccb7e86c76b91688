//! Looking for the znodes of a create that was not answered, in all queues that it was to join.

use super::queue::find;
use super::state::Search;
use super::{Contender, Own, Parents, Serial};
use crate::message::{Reply, ServerError};
use crate::name::{ContenderId, Number};
use crate::session::Failure;
use std::sync::Arc;

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
