//! At the head of the queue: which shares there are, and the transaction that makes one.
//!
//! Nobody else makes shares while this contender is the first. So a share that is compatible with
//! what was listed stays compatible until the transaction, and a lock without shares stays without.

use super::state::{Finding, ListPairs, Own, OwnShare, Turn};
use super::{Contender, ContenderStep, Serial, State};
use crate::message::{EnsembleError, EnsembleReply, Names, Remedy};
use crate::session::{Failure, Response};
use crate::shares::{Admission, admit};
use std::collections::VecDeque;

impl Contender {
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
        looks: ListPairs,
    ) {
        self.place = self.place.map(|_| 0);
        let turn = Turn::Checking {
            shares,
            is_watched,
            has_changed: false,
            looks,
        };
        self.state = State::InQueue { own, turn };
    }

    /// These are the shares; `None`: not even their directory is there. `will_change`: whether an
    /// event tells of the next change.
    pub(super) fn checked(
        &mut self,
        own: Own,
        will_change: bool,
        looks: ListPairs,
        names: Option<Names<'_>>,
    ) {
        match self.admission(names) {
            Admission::None if !self.plan.waits => self.end(&own, ContenderStep::Contended),
            Admission::None if will_change => {
                self.place = Some(0);
                self.state = State::InQueue {
                    own,
                    turn: Turn::Blocked,
                };
            }
            Admission::None => self.check(own, true),
            Admission::Whole => self.go_on(own, looks),
            Admission::Share(granted) => {
                let name = granted.name(own.id);
                let path = format!("{}/{name}", self.plan.directories[0].shares()).into();
                let renews = own.number().renews_directory();
                self.share(own, OwnShare { path, granted }, renews, names.is_none());
            }
        }
    }

    pub(super) fn admission(&self, names: Option<Names<'_>>) -> Admission {
        let wanted = self.plan.share.filter(|_| !self.plan.is_set());
        admit(wanted, names.iter().flat_map(Names::iter))
    }

    /// One lock of a set has neither another contender before it nor shares.
    fn go_on(&mut self, mut own: Own, looks: ListPairs) {
        own.at += 1;
        if own.at == self.plan.directories.len() {
            self.place = None;
            self.state = State::First { own, share: None };
            return;
        }
        if looks.is_empty() {
            return self.list(own);
        }
        self.state = State::InQueue {
            own,
            turn: Turn::Listing { looks },
        };
    }

    /// Makes the share and leaves the queue.
    fn share(&mut self, own: Own, share: OwnShare, renews: bool, creates_directory: bool) {
        self.refusal = None;
        let parent = creates_directory.then(|| {
            let path = self.plan.directories[0].shares();
            self.ask(self.plan.container(&path))
        });
        let multi = self.ask(self.plan.take_share(&own, &share.path, renews));
        self.state = State::Sharing {
            own,
            share,
            parent,
            multi,
            renews,
        };
    }

    /// `has_tried`: whether the creation of the directory was tried before.
    pub(super) fn shared(
        &mut self,
        own: Own,
        share: OwnShare,
        renews: bool,
        has_tried: bool,
        reply: Response<'_>,
    ) {
        let (place, error) = match reply {
            Ok(EnsembleReply::Results(results)) => match results.failure() {
                None => return self.has_share(own, share),
                Some(failure) => failure,
            },
            Err(Failure::Server(error)) => (0, *error),
            Err(Failure::SessionLost) => return self.restart(),
            Err(failure @ Failure::TooLong(_)) => {
                return self.end(&own, ContenderStep::Refused(failure.clone()));
            }
            Ok(_) | Err(Failure::Unanswered) => return self.search_share(own, share),
        };
        match (place, error, error.remedy()) {
            (0, EnsembleError::NoNode, _) => match self.refusal {
                Some(error) => self.end(&own, ContenderStep::Refused(Failure::Server(error))),
                // Swept since, or all of it was removed: the list says so.
                None if has_tried => self.list(own),
                None => self.share(own, share, renews, true),
            },
            // Its own znode.
            (_, EnsembleError::NoNode, _) => self.restart(),
            (_, EnsembleError::NotEmpty, _) if renews => self.share(own, share, false, false),
            (_, _, Remedy::Configure) => {
                self.end(&own, ContenderStep::Refused(Failure::Server(error)));
            }
            // It may have been carried out after all.
            _ => {
                self.steps.push_back(ContenderStep::Pause);
                self.search_share(own, share);
            }
        }
    }

    fn has_share(&mut self, own: Own, share: OwnShare) {
        self.steps
            .push_back(ContenderStep::Keep(share.path.clone()));
        self.for_each(&own, ContenderStep::Forget);
        self.place = None;
        self.state = State::First {
            own,
            share: Some(share),
        };
    }

    pub(super) fn search_share(&mut self, own: Own, share: OwnShare) {
        let sync = self.ask(self.plan.sync());
        let list = self.ask(self.plan.shares(0, false));
        self.state = State::Uncertain {
            own,
            share,
            sync,
            list,
            is_synced: false,
        };
    }

    pub(super) fn searched_share(
        &mut self,
        own: Own,
        share: OwnShare,
        is_synced: bool,
        reply: Response<'_>,
    ) {
        let is_there = match self.finding(reply) {
            Finding::Reply(EnsembleReply::Children { names, .. }) => {
                let name = share.path.rsplit('/').next().unwrap_or_default();
                names.iter().any(|other| other == name.as_bytes())
            }
            Finding::Absent => false,
            Finding::SessionLost => return self.restart(),
            Finding::Reply(_) | Finding::Nothing => return self.search_share(own, share),
        };
        match is_there {
            true => self.has_share(own, share),
            // It was not made, and never will be; or it was removed. The queue knows.
            false if is_synced => self.list(own),
            false => {
                self.steps.push_back(ContenderStep::Pause);
                self.search_share(own, share);
            }
        }
    }
}
