//! Giving up, from any state: nothing that was created is left behind.

use super::joining::{is_refusal, refused};
use super::searching::Found;
use super::{Contender, Left, Own, Serial, State, Step};
use crate::message::{Operation, Reply, Request, ServerError};
use crate::name::ContenderId;
use crate::session::Failure;
use std::collections::VecDeque;
use std::sync::Arc;

impl Contender {
    /// Releases the lock, or gives up waiting for it. The last step is [`Step::Left`], unless the
    /// contender is over already.
    pub fn give_up(&mut self) {
        match self.leave_state() {
            State::New | State::Looking { .. } => self.finish(Step::Left(Left::Nothing)),
            State::Joining { id, create, .. } => self.state = State::Abandoned { id, create },
            State::Unknown { id, search } => self.state = State::Searching { id, search },
            State::Dating { own, .. } | State::Listing { own, .. } => self.leave(own),
            State::Comparing { own, .. } | State::Watching { own, .. } => self.leave(own),
            State::Queued { own, .. } | State::Checking { own, .. } => self.leave(own),
            State::Blocked { own } => self.leave(own),
            State::Sharing { own, share, .. } | State::Uncertain { own, share, .. } => {
                self.leave_sharing(&own, &share);
            }
            State::First { share: Some(share), .. } | State::Held { share: Some(share), .. } => {
                self.delete(VecDeque::from([share.path]), false, Left::Deleted);
            }
            State::First { own, share: None } | State::Held { own, share: None } => {
                self.leave(own);
            }
            leaving => self.state = leaving,
        }
    }

    pub(super) fn answered_leaving(&mut self, serial: Serial, reply: Result<Reply<'_>, &Failure>) {
        match self.leave_state() {
            State::Abandoned { id, create } if create == serial => {
                self.created_in_vain(id, reply);
            }
            State::Searching { id, search } => {
                let found = self.search_on(id, search, serial, reply);
                self.searched_in_vain(id, found);
            }
            State::LeavingTogether { own, renewed, multi } if multi == serial => {
                self.left_together(own, renewed, reply);
            }
            State::Leaving { delete, rest, may_be_done, left } if delete == serial => {
                let left = match reply {
                    Ok(_) => left,
                    Err(Failure::Server(ServerError::NoNode)) if may_be_done => left,
                    Err(Failure::Server(ServerError::NoNode)) => Left::WasGone,
                    Err(Failure::SessionLost) => return self.finish(Step::Left(Left::WasGone)),
                    Err(Failure::Server(error)) => Left::Refused(*error),
                    Err(Failure::Unanswered | Failure::TooLong(_)) => {
                        debug_assert!(false, "a session repeats a delete, and has sent its path");
                        Left::WasGone
                    }
                };
                self.delete(rest, may_be_done, left);
            }
            other => self.state = other,
        }
    }

    /// Leaves the queues, and removes the directories whose numbers are large.
    fn leave(&mut self, own: Own) {
        let each = 0..own.numbers.len();
        let renewed = each.filter(|at| own.numbers[*at].renews_directory()).collect();
        self.leave_together(own, renewed);
    }

    fn leave_together(&mut self, own: Own, renewed: Vec<usize>) {
        self.place = None;
        if renewed.is_empty() && !self.plan.is_set() {
            return self.delete(self.plan.paths(&own).collect(), false, Left::Deleted);
        }
        let directory = |at: &usize| Arc::clone(self.plan.directory(*at).path());
        let paths = self.plan.paths(&own).chain(renewed.iter().map(directory));
        let multi = Request::Multi(paths.map(Operation::Delete).collect());
        let multi = self.ask(multi);
        self.state = State::LeavingTogether { own, renewed, multi };
    }

    /// Deletes these znodes one after the other; it is over when there are none. `may_be_done`:
    /// whether one that is not there counts as deleted.
    pub(super) fn delete(&mut self, mut rest: VecDeque<Arc<str>>, may_be_done: bool, left: Left) {
        self.place = None;
        let Some(path) = rest.pop_front() else { return self.finish(Step::Left(left)) };
        let delete = self.next_serial();
        self.steps.push_back(Step::Delete(Some(delete), path));
        self.state = State::Leaving { delete, rest, may_be_done, left };
    }

    fn left_together(
        &mut self,
        own: Own,
        mut renewed: Vec<usize>,
        reply: Result<Reply<'_>, &Failure>,
    ) {
        let failure = match reply {
            Ok(Reply::Results(results)) => results.failure(),
            Ok(_) | Err(Failure::TooLong(_)) => Some((0, ServerError::RuntimeInconsistency)),
            Err(Failure::Server(error)) => Some((0, *error)),
            Err(Failure::Unanswered) => {
                return self.delete(self.plan.paths(&own).collect(), true, Left::Deleted);
            }
            Err(Failure::SessionLost) => return self.finish(Step::Left(Left::WasGone)),
        };
        match failure {
            None => {
                self.forget(&own);
                self.finish(Step::Left(Left::Deleted));
            }
            // Others are in the directory.
            Some((place, ServerError::NotEmpty)) if place >= own.numbers.len() => {
                let place = place - own.numbers.len();
                if place < renewed.len() {
                    renewed.remove(place);
                }
                self.leave_together(own, renewed);
            }
            Some((_, ServerError::NoNode)) if !self.plan.is_set() => {
                self.forget(&own);
                self.finish(Step::Left(Left::WasGone));
            }
            Some(_) => self.delete(self.plan.paths(&own).collect(), false, Left::Deleted),
        }
    }

    fn created_in_vain(&mut self, id: ContenderId, reply: Result<Reply<'_>, &Failure>) {
        match refused(reply) {
            None => match reply.ok().and_then(|reply| self.own(id, None, &reply)) {
                Some(own) => self.leave(own),
                None => self.look_in_vain_for(id),
            },
            Some(Failure::Unanswered) => self.look_in_vain_for(id),
            Some(Failure::SessionLost) => self.finish(Step::Left(Left::WasGone)),
            Some(Failure::Server(error)) if !is_refusal(error) => self.look_later_in_vain_for(id),
            Some(Failure::Server(_) | Failure::TooLong(_)) => {
                self.finish(Step::Left(Left::Nothing));
            }
        }
    }

    fn look_in_vain_for(&mut self, id: ContenderId) {
        let search = self.search();
        self.state = State::Searching { id, search };
    }

    fn look_later_in_vain_for(&mut self, id: ContenderId) {
        self.steps.push_back(Step::Pause);
        self.look_in_vain_for(id);
    }

    fn searched_in_vain(&mut self, id: ContenderId, found: Found) {
        match found {
            Found::Search(search) => self.state = State::Searching { id, search },
            Found::All(own) => self.leave(own),
            Found::Some(paths) => self.delete(paths.into(), false, Left::Deleted),
            Found::Nothing => self.finish(Step::Left(Left::Nothing)),
            Found::Unanswered => self.look_in_vain_for(id),
            Found::Refused => self.look_later_in_vain_for(id),
            Found::SessionLost => self.finish(Step::Left(Left::WasGone)),
        }
    }
}
