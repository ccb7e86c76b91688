//! Looking for the master of a group although there is a connection to a server.
//!
//! A master that was replaced, or cut off, need not end its connections: it may refuse votes, or be
//! silent, for as long as it is let. So when it does, those that know the master are asked at once,
//! and again as long as it does so, and the connection stays in use meanwhile. It is left only for
//! a server that is named in its place. Who answers is an address book, and no more: that server is
//! greeted as any other is.

use super::{Session, State};
use crate::node::{NodeError, Phase, ServerError};
use crate::time::Time;
use std::io::ErrorKind;
use std::sync::Arc;

/// What is known about the search for the master, and where it was found.
#[derive(Debug, Default)]
pub(super) struct Search {
    /// Was a vote refused as by a master that was replaced, since the last search began?
    is_wanted: bool,
    /// Did the last search begin because of that?
    is_doubted: bool,
    began: Option<Time>,
    /// The epoch of the failover authority that has named the address, and when it was asked last.
    pub(super) epoch: u64,
    pub(super) located_at: Option<Time>,
    /// The place that was named, and by whom, in words.
    announced: Option<Arc<str>>,
}

/// What those that know the master have said about the server of the present connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whereabouts {
    /// It is the master.
    Here,
    /// Its address is that of the master. Another server may have that by now, or be behind it.
    SameAddress,
    /// Another server is the master.
    Elsewhere,
}

impl Search {
    /// The connection is over. The next one is made to whom is named then; not so often that a
    /// master without replicas is greeted in a tight loop.
    pub(super) fn closed(&mut self) {
        self.is_wanted = false;
    }
}

impl Session {
    /// Notes the epoch of the failover authority that has named the address, and since when it was
    /// asked. Call it before [`connected`](Self::connected).
    pub fn located(&mut self, epoch: u64, asked_at: Time) {
        self.search.epoch = self.search.epoch.max(epoch);
        self.search.located_at = Some(asked_at);
    }

    /// Notes which place was named, and by whom. Call it before [`connected`](Self::connected).
    pub fn announced(&mut self, place: Arc<str>) {
        self.search.announced = Some(place);
    }

    /// The error of a connection that is being made to a group, or was lost, with the place that
    /// was meant: the URL does not have it.
    pub(super) fn of_announced(&self, problem: NodeError) -> NodeError {
        if self.options.group.is_none() || !self.is_found() {
            return problem;
        }
        let announced = self.search.announced.as_ref();
        let place = announced
            .map(|place| format!("{place}: "))
            .unwrap_or_default();
        let awaited = if announced.is_some() {
            "; if it is down, its failover is awaited, else the announced address cannot be \
             reached from here"
        } else {
            "; if it is down, its failover is awaited"
        };
        match problem {
            NodeError::Unreachable { kind, text } => NodeError::Unreachable {
                kind,
                text: format!("{place}{text}{awaited}"),
            },
            NodeError::TimedOut(
                phase @ (Phase::Connecting | Phase::Securing | Phase::Greeting),
            ) => {
                let text = format!("{place}timed out {phase}{awaited}");
                NodeError::Unreachable {
                    kind: ErrorKind::TimedOut,
                    text,
                }
            }
            NodeError::Disconnected(text) => NodeError::Disconnected(format!("{place}{text}")),
            problem => problem,
        }
    }

    /// The server has refused a vote, as a master does that was replaced or cut off.
    pub(super) fn doubt(&mut self) {
        self.search.is_wanted |= self.options.group.is_some();
    }

    /// Does a master of a group refuse to write like this when its replicas have left it?
    pub(super) fn is_abandoned(&self, error: &ServerError) -> bool {
        self.options.group.is_some() && error.text.contains("NOREPLICAS")
    }

    /// When the master of a group is to be looked for: at once if a vote was refused, and when an
    /// answer is late. Not more often than connections are made to a server that is down.
    pub(super) fn looks_in_group_at(&self) -> Option<Time> {
        match self.state {
            State::Down { .. }
            | State::Connecting {
                phase: Phase::Resolving,
                ..
            } => return None,
            State::Connecting { .. } | State::Greeting { .. } | State::Ready => {}
        }
        let wanted_at = if self.search.is_wanted {
            Some(Time::ZERO)
        } else {
            self.silent_at()
        };
        let again_at = self
            .search
            .began
            .map(|at| at.after(self.options.reconnect.1));
        wanted_at.map(|at| at.max(again_at.unwrap_or(Time::ZERO)))
    }

    /// The master is being looked for. [`named`](Self::named) follows if somebody answers.
    pub fn looking(&mut self, now: Time) {
        self.search.is_doubted = std::mem::take(&mut self.search.is_wanted);
        self.search.began = Some(now);
    }

    /// Those that know the master, asked at `asked_at`, have said in this epoch where it is.
    /// Returns whether the connection is given up for it: the socket must be closed.
    pub fn named(&mut self, now: Time, epoch: u64, asked_at: Time, it_is: Whereabouts) -> bool {
        let search = &self.search;
        // What was asked before this server was named, or is of an earlier epoch, may be over.
        let is_outdated = epoch < search.epoch || search.located_at.is_some_and(|at| asked_at < at);
        // In a new epoch, the server was replaced meanwhile, and elected again.
        let is_left = match it_is {
            Whereabouts::Here => epoch > search.epoch,
            Whereabouts::SameAddress => self.search.is_doubted,
            Whereabouts::Elsewhere => true,
        };
        if self.is_down() || is_outdated || !is_left {
            return false;
        }
        self.closed(now, NodeError::ReignChanged);
        // It was not the connection that failed.
        self.state = State::Down { retry_at: now };
        true
    }
}
