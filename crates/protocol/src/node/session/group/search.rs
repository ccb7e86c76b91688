//! Looking for the master of a group although there is a connection to a server.
//!
//! A master that was replaced, or cut off, need not end its connections: it may refuse votes, or be
//! silent, for as long as it is let. So when it does, those that know the master are asked at once,
//! and again as long as it does so, and the connection stays in use meanwhile. It is left only for
//! a server that is named in its place. Who answers is an address book, and no more: that server is
//! greeted as any other is.

use crate::node::session::{Session, State};
use crate::node::{NodeError, Phase, ServerError, Whereabouts};
use crate::time::Time;
use std::io::ErrorKind;
use std::sync::Arc;

/// What is known about the search for the master, and where it was found.
#[derive(Debug, Default)]
pub(in crate::node::session) struct Search {
    /// Was a vote refused as by a master that was replaced, since the last search began?
    is_wanted: bool,
    /// Did the last search begin because of that?
    is_doubted: bool,
    began: Option<Time>,
    /// The epoch of the failover authority that has named the address, and when it was asked last.
    pub(in crate::node::session) epoch: u64,
    pub(in crate::node::session) located_at: Option<Time>,
    /// The place that was named, and by whom, in words.
    announced: Option<Arc<str>>,
}

impl Search {
    /// The connection is over. The next one is made to whom is named then; not so often that a
    /// master without replicas is greeted in a tight loop.
    pub(in crate::node::session) fn closed(&mut self) {
        self.is_wanted = false;
    }

    /// The server has refused a vote, as a master does that was replaced or cut off.
    pub(in crate::node::session) fn doubt(&mut self) {
        self.is_wanted = true;
    }

    /// The server has answered with this error, perhaps as a master does whose replicas have left
    /// it.
    pub(in crate::node::session) fn refused(&mut self, error: &ServerError) {
        self.is_wanted |= error.text.contains("NOREPLICAS");
    }
}

impl Session {
    /// Notes the epoch of the failover authority that has named the address, and since when it was
    /// asked. Call it before [`connected`](Self::connected).
    pub fn located(&mut self, epoch: u64, asked_at: Time) {
        self.trust.group.search.epoch = self.trust.group.search.epoch.max(epoch);
        self.trust.group.search.located_at = Some(asked_at);
    }

    /// Notes which place was named, and by whom. Call it before [`connected`](Self::connected).
    pub fn announced(&mut self, place: Arc<str>) {
        self.trust.group.search.announced = Some(place);
    }

    /// Is it known at which address the node is tried?
    fn is_found(&self) -> bool {
        let is_sought = matches!(
            self.state,
            State::Connecting {
                phase: Phase::Resolving,
                ..
            }
        );
        !is_sought && !self.is_down()
    }

    /// The error of a connection that is being made to a group, or was lost, with the place that
    /// was meant: the URL does not have it.
    pub(in crate::node::session) fn of_announced(&self, problem: NodeError) -> NodeError {
        if !self.is_found() {
            return problem;
        }
        let announced = self.trust.group.search.announced.as_ref();
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

    /// When the master of a group is to be looked for: at once if a vote was refused, and when an
    /// answer is late. Not more often than connections are made to a server that is down.
    pub(in crate::node::session) fn looks_in_group_at(&self) -> Option<Time> {
        match self.state {
            State::Down { .. }
            | State::Connecting {
                phase: Phase::Resolving,
                ..
            } => return None,
            State::Connecting { .. } | State::Greeting { .. } | State::Ready => {}
        }
        let wanted_at = if self.trust.group.search.is_wanted {
            Some(Time::ZERO)
        } else {
            self.silent_at()
        };
        let again_at = self
            .trust
            .group
            .search
            .began
            .map(|at| at.after(self.options.reconnect.1));
        wanted_at.map(|at| at.max(again_at.unwrap_or(Time::ZERO)))
    }

    /// The master is being looked for. [`named`](Self::named) follows if somebody answers.
    pub fn looking(&mut self, now: Time) {
        self.trust.group.search.is_doubted = std::mem::take(&mut self.trust.group.search.is_wanted);
        self.trust.group.search.began = Some(now);
    }

    /// Those that know the master, asked at `asked_at`, have said in this epoch where it is.
    /// Returns whether the connection is given up for it: the socket must be closed.
    pub fn named(&mut self, now: Time, epoch: u64, asked_at: Time, it_is: Whereabouts) -> bool {
        let search = &self.trust.group.search;
        // What was asked before this server was named, or is of an earlier epoch, may be over.
        let is_outdated = epoch < search.epoch || search.located_at.is_some_and(|at| asked_at < at);
        // In a new epoch, the server was replaced meanwhile, and elected again.
        let is_left = match it_is {
            Whereabouts::Here => epoch > search.epoch,
            Whereabouts::SameAddress => self.trust.group.search.is_doubted,
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
