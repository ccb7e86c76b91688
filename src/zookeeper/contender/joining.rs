//! Joining the queue: from the first request to a znode of its own, whatever gets lost.

use super::queue::{find, has_contender};
use super::{Contender, Own, Parents, Serial, State, Step};
use crate::clock::Time;
use crate::zookeeper::message::{Names, Reply, ServerError};
use crate::zookeeper::name::ContenderId;
use crate::zookeeper::session::Failure;

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
        let mut directory = None;
        if self.parents != Parents::Present {
            let requests = self.plan.parents(self.parents == Parents::All, self.is_plain);
            directory = requests.into_iter().map(|request| self.ask(request)).last();
        }
        let create = self.ask(self.plan.join(id, self.is_plain));
        let list = self.ask(self.plan.list());
        self.state = State::Joining { id, directory, create, list, refusal: None };
    }

    /// Looks whether others are there, and writes nothing.
    pub(super) fn look(&mut self) {
        self.ask(self.plan.sync());
        let list = self.ask(self.plan.list());
        self.state = State::Looking { list };
    }

    pub(super) fn answered_joining(
        &mut self,
        serial: Serial,
        zxid: i64,
        reply: Result<Reply<'_>, &Failure>,
    ) {
        match &mut self.state {
            State::Looking { list } if serial == *list => self.looked(reply),
            State::Joining { directory, refusal, .. } if Some(serial) == *directory => {
                *refusal = refused_directory(self.parents, reply);
                if let Err(Failure::Server(ServerError::NoNode)) = reply {
                    self.parents = Parents::All;
                }
            }
            State::Joining { id, create, list, refusal, .. } if serial == *create => {
                let (id, list, refusal) = (*id, *list, *refusal);
                self.created(id, list, refusal, zxid, reply);
            }
            State::Unknown { search, .. } if serial == search.sync => {
                search.is_synced = reply.is_ok();
            }
            State::Unknown { id, search } if serial == search.list => {
                let (id, is_synced) = (*id, search.is_synced);
                self.searched(id, is_synced, reply);
            }
            // The answer to a sync, or to the creation of a directory above.
            _ => {}
        }
    }

    fn looked(&mut self, reply: Result<Reply<'_>, &Failure>) {
        match reply {
            Ok(Reply::Children { names, .. }) if has_contender(self.plan.layout, names) => {
                self.finish(Step::Contended);
            }
            Ok(_) => self.restart(),
            Err(Failure::Server(ServerError::NoNode)) => {
                self.parents = Parents::Last;
                self.restart();
            }
            Err(Failure::Unanswered | Failure::SessionLost) => self.look(),
            Err(failure) => self.finish(Step::Refused(failure.clone())),
        }
    }

    fn created(
        &mut self,
        id: ContenderId,
        list: Serial,
        refusal: Option<ServerError>,
        zxid: i64,
        reply: Result<Reply<'_>, &Failure>,
    ) {
        match reply {
            Ok(Reply::Created { path, .. }) => {
                // The transaction of a create is the czxid of its znode.
                let own = self.own(path, Some(zxid));
                // No server appends anything but a number. It is found by its id, or not at all.
                let Some(own) = own else { return self.look_for(id) };
                self.parents = Parents::Present;
                self.keep(&own);
                self.state = State::Listing { own, list };
            }
            Err(Failure::Server(ServerError::NoNode)) => {
                // It may have been removed since it was created: a container that is empty.
                match refusal {
                    Some(error) => self.finish(Step::Refused(Failure::Server(error))),
                    None => {
                        if self.parents == Parents::Present {
                            self.parents = Parents::Last;
                        }
                        self.restart();
                    }
                }
            }
            Err(Failure::Server(ServerError::Unimplemented)) if !self.is_plain => {
                self.is_plain = true;
                self.restart();
            }
            Err(Failure::SessionLost) => self.restart(),
            Err(Failure::Server(error)) if !is_refusal(*error) => self.look_later_for(id),
            Err(failure @ (Failure::Server(_) | Failure::TooLong(_))) => {
                self.finish(Step::Refused(failure.clone()));
            }
            Ok(_) | Err(Failure::Unanswered) => self.look_for(id),
        }
    }

    fn look_for(&mut self, id: ContenderId) {
        let search = self.search();
        self.state = State::Unknown { id, search };
    }

    fn searched(&mut self, id: ContenderId, is_synced: bool, reply: Result<Reply<'_>, &Failure>) {
        match reply {
            Err(Failure::SessionLost) => self.restart(),
            Ok(Reply::Children { names, .. }) => match self.find(names, id) {
                Some(own) => {
                    self.keep(&own);
                    self.date(own);
                }
                None if is_synced => self.give_up_id(id),
                None => self.look_later_for(id),
            },
            Err(Failure::Server(ServerError::NoNode)) if is_synced => {
                self.parents = Parents::Last;
                self.give_up_id(id);
            }
            Ok(_) | Err(Failure::Unanswered) => self.look_for(id),
            // It may be there all the same.
            Err(Failure::Server(_) | Failure::TooLong(_)) => self.look_later_for(id),
        }
    }

    fn look_later_for(&mut self, id: ContenderId) {
        self.steps.push_back(Step::Pause);
        self.look_for(id);
    }

    /// Nothing was created under this id.
    fn give_up_id(&mut self, id: ContenderId) {
        if self.given_up.len() == GIVEN_UP_MAX {
            self.given_up.remove(0);
        }
        self.given_up.push(id);
        self.restart();
    }

    /// The znode with this path, if it has a number.
    pub(super) fn own(&self, path: &str, created_by: Option<i64>) -> Option<Own> {
        let name = path.rsplit('/').next().unwrap_or_default();
        let number = self.plan.layout.number(name.as_bytes())?;
        Some(Own { name: name.to_owned(), number, created_by })
    }

    /// The znode that was created under this id.
    pub(super) fn find(&self, names: Names<'_>, id: ContenderId) -> Option<Own> {
        let layout = self.plan.layout;
        let (name, number) = find(layout, names, &layout.prefix(id))?;
        Some(Own { name, number, created_by: None })
    }

    fn keep(&mut self, own: &Own) {
        self.steps.push_back(Step::Keep(self.plan.directory.child(&own.name)));
    }
}

/// Why the lock's directory was not created, if that is no use to try again.
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
