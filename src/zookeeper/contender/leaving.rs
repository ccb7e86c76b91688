//! Giving up, from any state: nothing that was created is left behind.

use super::joining::is_refusal;
use super::{Contender, Left, Own, Search, Serial, State, Step};
use crate::zookeeper::message::{Operation, Reply, Request, ServerError};
use crate::zookeeper::name::ContenderId;
use crate::zookeeper::session::Failure;
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
            State::Queued { own, .. } | State::First { own } | State::Held { own } => {
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
            State::Searching { id, search } if search.sync == serial => {
                let search = Search { is_synced: reply.is_ok(), ..search };
                self.state = State::Searching { id, search };
            }
            State::Searching { id, search } if search.list == serial => {
                self.searched_in_vain(id, search.is_synced, reply);
            }
            State::LeavingBoth { own, multi } if multi == serial => self.left_both(&own, reply),
            State::Leaving { delete, may_be_done } if delete == serial => {
                let left = match reply {
                    Ok(_) => Left::Deleted,
                    Err(Failure::Server(ServerError::NoNode)) if may_be_done => Left::Deleted,
                    Err(Failure::Server(ServerError::NoNode) | Failure::SessionLost) => {
                        Left::WasGone
                    }
                    Err(Failure::Server(error)) => Left::Refused(*error),
                    Err(Failure::Unanswered | Failure::TooLong(_)) => {
                        debug_assert!(false, "a session repeats a delete, and has sent its path");
                        Left::WasGone
                    }
                };
                self.finish(Step::Left(left));
            }
            other => self.state = other,
        }
    }

    fn leave(&mut self, own: Own) {
        self.place = None;
        if !own.number.renews_directory() {
            return self.delete(&own, false);
        }
        let directory = Arc::clone(self.plan.directory.path());
        let path = self.plan.directory.child(&own.name);
        let both = [Operation::Delete(path), Operation::Delete(directory)];
        let multi = self.ask(Request::Multi(Arc::from(both)));
        self.state = State::LeavingBoth { own, multi };
    }

    fn delete(&mut self, own: &Own, may_be_done: bool) {
        let delete = self.next_serial();
        self.steps.push_back(Step::Delete(Some(delete), self.plan.directory.child(&own.name)));
        self.state = State::Leaving { delete, may_be_done };
    }

    fn left_both(&mut self, own: &Own, reply: Result<Reply<'_>, &Failure>) {
        let error = match reply {
            Ok(Reply::Results(results)) => results.error(),
            Ok(_) | Err(Failure::TooLong(_)) => Some(ServerError::RuntimeInconsistency),
            Err(Failure::Server(error)) => Some(*error),
            Err(Failure::Unanswered) => return self.delete(own, true),
            Err(Failure::SessionLost) => Some(ServerError::NoNode),
        };
        match error {
            None => self.finish(Step::Left(Left::Deleted)),
            Some(ServerError::NoNode) => self.finish(Step::Left(Left::WasGone)),
            // Others are in the directory.
            Some(_) => self.delete(own, false),
        }
    }

    fn created_in_vain(&mut self, id: ContenderId, reply: Result<Reply<'_>, &Failure>) {
        match reply {
            Ok(Reply::Created { path, .. }) => match self.own(path, None) {
                Some(own) => self.leave(own),
                None => self.look_in_vain_for(id),
            },
            Ok(_) | Err(Failure::Unanswered) => self.look_in_vain_for(id),
            Err(Failure::SessionLost) => self.finish(Step::Left(Left::WasGone)),
            Err(Failure::Server(error)) if !is_refusal(*error) => self.look_later_in_vain_for(id),
            Err(Failure::Server(_) | Failure::TooLong(_)) => {
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

    fn searched_in_vain(
        &mut self,
        id: ContenderId,
        is_synced: bool,
        reply: Result<Reply<'_>, &Failure>,
    ) {
        match reply {
            Err(Failure::SessionLost) => self.finish(Step::Left(Left::WasGone)),
            Ok(Reply::Children { names, .. }) => match self.find(names, id) {
                Some(own) => self.leave(own),
                None if is_synced => self.finish(Step::Left(Left::Nothing)),
                None => self.look_later_in_vain_for(id),
            },
            Err(Failure::Server(ServerError::NoNode)) if is_synced => {
                self.finish(Step::Left(Left::Nothing));
            }
            Ok(_) | Err(Failure::Unanswered) => self.look_in_vain_for(id),
            Err(Failure::Server(_) | Failure::TooLong(_)) => self.look_later_in_vain_for(id),
        }
    }
}
