//! At the head of the queue: which shares there are, and the transaction that makes one.
//!
//! Nobody else makes shares while this contender is the first. So a share that is compatible with
//! what was listed stays compatible until the transaction, and a lock without shares stays without.

use super::state::{Look, Own, OwnShare};
use super::{Contender, Left, Serial, State, Step};
use crate::message::{Names, Remedy, Reply, ServerError};
use crate::session::Failure;
use crate::shares::{Admission, Granted, admit};
use std::collections::VecDeque;

impl Contender {
    pub(super) fn answered_sharing(&mut self, serial: Serial, reply: Result<Reply<'_>, &Failure>) {
        match self.leave_state() {
            State::Checking { own, shares, is_watched, has_changed, looks } if shares == serial => {
                self.checked(own, is_watched && !has_changed, looks, reply);
            }
            State::Sharing { own, share, directory, multi, renews, refusal }
                if directory == Some(serial) =>
            {
                let (mut tried, mut refusal) = (directory, refusal);
                match reply {
                    Err(Failure::Server(ServerError::Unimplemented)) if !self.is_plain => {
                        self.is_plain = true;
                        tried = None;
                    }
                    Err(Failure::Server(error)) => match error.remedy() {
                        Remedy::Configure => refusal = Some(*error),
                        Remedy::Wait => self.steps.push_back(Step::Pause),
                        _ => {}
                    },
                    _ => {}
                }
                let directory = tried;
                self.state = State::Sharing { own, share, directory, multi, renews, refusal };
            }
            State::Sharing { own, share, directory, multi, renews, refusal } if multi == serial => {
                self.shared(own, share, renews, (directory.is_some(), refusal), reply);
            }
            State::Uncertain { own, share, sync, list, .. } if sync == serial => {
                let is_synced = reply.is_ok();
                self.state = State::Uncertain { own, share, sync, list, is_synced };
            }
            State::Uncertain { own, share, list, is_synced, .. } if list == serial => {
                self.searched_share(own, share, is_synced, reply);
            }
            other => self.state = other,
        }
    }

    /// Asks for the shares. Nobody is before it.
    pub(super) fn check(&mut self, own: Own, is_watched: bool) {
        let shares = self.ask(self.plan.shares(own.at, is_watched));
        self.checking(own, shares, is_watched, VecDeque::new());
    }

    pub(super) fn checking(
        &mut self,
        own: Own,
        shares: Serial,
        is_watched: bool,
        looks: VecDeque<Look>,
    ) {
        self.place = self.place.map(|_| 0);
        self.state = State::Checking { own, shares, is_watched, has_changed: false, looks };
    }

    /// `will_change`: whether an event tells of the next change.
    fn checked(
        &mut self,
        own: Own,
        will_change: bool,
        looks: VecDeque<Look>,
        reply: Result<Reply<'_>, &Failure>,
    ) {
        let (admission, is_there) = match reply {
            Ok(Reply::Children { names, .. }) => (self.admission(Some(names)), true),
            Err(Failure::Server(ServerError::NoNode)) => (self.admission(None), false),
            Err(Failure::SessionLost) => return self.restart(),
            Ok(_) | Err(Failure::Unanswered) => return self.check(own, false),
            Err(Failure::Server(_) | Failure::TooLong(_)) => {
                self.steps.push_back(Step::Pause);
                return self.check(own, false);
            }
        };
        match admission {
            Admission::None if !self.plan.waits => self.contended(&own),
            Admission::None if will_change => {
                self.place = Some(0);
                self.state = State::Blocked { own };
            }
            Admission::None => self.check(own, true),
            Admission::Whole => self.go_on(own, looks),
            Admission::Share(granted) => {
                let name = granted.name(own.id);
                let path = format!("{}/{name}", self.plan.directory(0).shares()).into();
                let renews = own.number().renews_directory();
                self.share(own, OwnShare { path, granted }, renews, !is_there);
            }
        }
    }

    pub(super) fn admission(&self, names: Option<Names<'_>>) -> Admission {
        let wanted = self.plan.share.filter(|_| !self.plan.is_set());
        admit(wanted, names.iter().flat_map(Names::iter))
    }

    /// One lock of a set has neither another contender before it nor shares.
    fn go_on(&mut self, mut own: Own, looks: VecDeque<Look>) {
        own.at += 1;
        if own.at == self.plan.directories().len() {
            return self.ready(own, None);
        }
        if looks.is_empty() {
            return self.list(own);
        }
        self.state = State::Listing { own, looks };
    }

    fn ready(&mut self, own: Own, share: Option<OwnShare>) {
        self.place = None;
        self.state = State::First { own, share };
    }

    /// Makes the share and leaves the queue.
    fn share(&mut self, own: Own, share: OwnShare, renews: bool, creates_directory: bool) {
        let directory = creates_directory.then(|| {
            let path = self.plan.directory(0).shares();
            self.ask(self.plan.container(path, self.is_plain))
        });
        let multi = self.ask(self.plan.take_share(&own, &share.path, renews));
        self.state = State::Sharing { own, share, directory, multi, renews, refusal: None };
    }

    /// `directory`: whether its creation was tried before, and why it was refused.
    fn shared(
        &mut self,
        own: Own,
        share: OwnShare,
        renews: bool,
        (has_tried, refusal): (bool, Option<ServerError>),
        reply: Result<Reply<'_>, &Failure>,
    ) {
        let (place, error) = match reply {
            Ok(Reply::Results(results)) => match results.failure() {
                None => return self.has_share(own, share),
                Some(failure) => failure,
            },
            Err(Failure::Server(error)) => (0, *error),
            Err(Failure::SessionLost) => return self.restart(),
            Err(failure @ Failure::TooLong(_)) => return self.refuse(&own, failure.clone()),
            Ok(_) | Err(Failure::Unanswered) => return self.search_share(own, share),
        };
        match (place, error, error.remedy()) {
            (0, ServerError::NoNode, _) => match refusal {
                Some(error) => self.refuse(&own, Failure::Server(error)),
                // Swept since, or all of it was removed: the list says so.
                None if has_tried => self.list(own),
                None => self.share(own, share, renews, true),
            },
            // Its own znode.
            (_, ServerError::NoNode, _) => self.restart(),
            (_, ServerError::NotEmpty, _) if renews => self.share(own, share, false, false),
            (_, _, Remedy::Configure) => self.refuse(&own, Failure::Server(error)),
            // It may have been carried out after all.
            _ => {
                self.steps.push_back(Step::Pause);
                self.search_share(own, share);
            }
        }
    }

    fn has_share(&mut self, own: Own, share: OwnShare) {
        self.steps.push_back(Step::Keep(share.path.clone()));
        self.forget(&own);
        self.ready(own, Some(share));
    }

    /// Nothing of this contender may be held, and its znode of the queue is deleted.
    fn refuse(&mut self, own: &Own, failure: Failure) {
        self.delete_unheard(own);
        self.finish(Step::Refused(failure));
    }

    pub(super) fn search_share(&mut self, own: Own, share: OwnShare) {
        let sync = self.ask(self.plan.sync());
        let list = self.ask(self.plan.shares(0, false));
        self.state = State::Uncertain { own, share, sync, list, is_synced: false };
    }

    fn searched_share(
        &mut self,
        own: Own,
        share: OwnShare,
        is_synced: bool,
        reply: Result<Reply<'_>, &Failure>,
    ) {
        let is_there = match reply {
            Ok(Reply::Children { names, .. }) => {
                let name = share.path.rsplit('/').next().unwrap_or_default();
                names.iter().any(|other| other == name.as_bytes())
            }
            Err(Failure::Server(ServerError::NoNode)) => false,
            Err(Failure::SessionLost) => return self.restart(),
            Ok(_) | Err(Failure::Unanswered) => return self.search_share(own, share),
            Err(Failure::Server(_) | Failure::TooLong(_)) => {
                self.steps.push_back(Step::Pause);
                return self.search_share(own, share);
            }
        };
        match is_there {
            true => self.has_share(own, share),
            // It was not made, and never will be; or it was removed. The queue knows.
            false if is_synced => self.list(own),
            false => {
                self.steps.push_back(Step::Pause);
                self.search_share(own, share);
            }
        }
    }

    /// Gives up while the transaction may be carried out. The znode of the queue goes first:
    /// without it there will be no share, if there is none yet.
    pub(super) fn leave_sharing(&mut self, own: &Own, share: &OwnShare) {
        let paths: VecDeque<_> = self.plan.paths(own).chain([share.path.clone()]).collect();
        self.delete(paths, true, Left::Deleted);
    }
}

impl OwnShare {
    pub(super) fn slot(&self) -> Option<u32> {
        Granted::slot(self.granted)
    }
}
