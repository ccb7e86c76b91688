//! What a client tells about its work while it works: see [`Builder::on_event`].
//!
//! Events are for counters, histograms and logs. Whatever a program needs to know to go on, it is
//! told by what its calls return; an event repeats it for whoever watches the program.
//!
//! ```
//! use redlatch::{Event, LockClient};
//!
//! let client = LockClient::builder().node("redis://10.0.0.1").on_event(|event| match event {
//!     Event::Acquired { waited, .. } => eprintln!("waited for {waited:?}"),
//!     Event::NodeDown { .. } => eprintln!("{event}"),
//!     _ => {}
//! });
//! # drop(client);
//! ```
//!
//! [`Builder::on_event`]: crate::Builder::on_event

mod listener;
mod text;

pub(crate) use listener::Listener;

use crate::error::{ExtendError, LockError, LockLost};
use crate::name::Name;
use crate::node::{NodeError, NodeReport};
use crate::released::Released;
use std::time::Duration;

/// Something that happened to a lock or to a node.
///
/// What it says it borrows, so that telling it allocates nothing. Resources are named without the
/// [prefix](crate::Builder::key_prefix) of their keys, nodes by their URLs without the password.
/// There is no password and no token in any event, also not in what it looks like as text.
///
/// The `Display` text is one line for a log.
#[derive(Clone)]
#[non_exhaustive]
pub enum Event<'a> {
    /// The nodes have been asked once for a lock, and have answered or had their time.
    #[non_exhaustive]
    Attempt {
        /// What was to be locked.
        resource: Name<'a>,
        /// Which attempt of this call it was, from 1.
        number: u64,
        /// What came of it.
        outcome: AttemptOutcome,
        /// How long the nodes took.
        took: Duration,
    },
    /// A call that waits for the lock now sleeps until enough nodes have been up for
    /// [`max_ttl`](crate::Builder::max_ttl), because nobody can be granted a lock before: see
    /// [`restart_guard`](crate::Builder::restart_guard). Told once for each such wait, by the
    /// thread that asks the nodes; others of this client stand in line behind it.
    #[non_exhaustive]
    Quarantined {
        /// What is to be locked.
        resource: Name<'a>,
        /// For how long no majority can grant it.
        left: Duration,
        /// What each node said. Those whose grants do not count yet say
        /// [`NodeError::Quarantined`], with the time that is left for each.
        reports: &'a [NodeReport],
    },
    /// A call has taken the lock, from the nodes or from another thread of this client.
    #[non_exhaustive]
    Acquired {
        /// What is locked.
        resource: Name<'a>,
        /// How many attempts it took.
        attempts: u64,
        /// From the call to now.
        waited: Duration,
        /// For how long the lock may be relied on.
        validity: Duration,
    },
    /// A call has come back without the lock, because others hold it.
    #[non_exhaustive]
    Contended {
        /// What was to be locked.
        resource: Name<'a>,
        /// How many attempts were made. None if another thread of this client held it all along.
        attempts: u64,
        /// From the call to now.
        waited: Duration,
    },
    /// A call has come back with an error of the nodes or the system. What was refused before
    /// anything was asked, such as a ttl that is too long, is not told.
    #[non_exhaustive]
    Failed {
        /// What was to be locked.
        resource: Name<'a>,
        /// How many attempts were made.
        attempts: u64,
        /// From the call to now.
        waited: Duration,
        /// What the call returns.
        error: &'a LockError,
    },
    /// A majority confirmed that a lock lives on.
    #[non_exhaustive]
    Extended {
        /// What is locked.
        resource: Name<'a>,
        /// How long it took.
        took: Duration,
        /// For how long the lock may be relied on.
        validity: Duration,
        /// Was it renewed because it is [kept alive](crate::LockRequest::keep_alive), and not by a
        /// call?
        is_automatic: bool,
    },
    /// A lock was not extended, and is as good as it was. If it was lost, that is
    /// [`Lost`](Self::Lost) instead.
    #[non_exhaustive]
    NotExtended {
        /// What is locked.
        resource: Name<'a>,
        /// How long it took.
        took: Duration,
        /// For how long the lock may be relied on.
        validity: Duration,
        /// What the call returns, or would.
        error: &'a ExtendError,
        /// Was it to be renewed because it is [kept alive](crate::LockRequest::keep_alive), and not
        /// by a call? Then it is tried again.
        is_automatic: bool,
    },
    /// A lock was lost while there still was a guard. Of one that is
    /// [kept alive](crate::LockRequest::keep_alive) it is told when it happens, of others when it
    /// is noticed: when the lock was to be extended or released. Told once for each guard.
    #[non_exhaustive]
    Lost {
        /// What was locked.
        resource: Name<'a>,
        /// From when it was asked for to now, so for longer than it was really held.
        held: Duration,
        /// How it was lost.
        lost: LockLost,
    },
    /// A lock was given back: by a release or by dropping its guard, to the nodes or to another
    /// thread of this client that waited for it.
    #[non_exhaustive]
    Released {
        /// What was locked.
        resource: Name<'a>,
        /// From when it was asked for to now.
        held: Duration,
        /// Whether it was held to the end. `None` if that is not known: too few nodes answered, or
        /// nobody waited for their answers.
        outcome: Option<Released>,
    },
    /// There is a connection to a node, and it has answered the greeting.
    #[non_exhaustive]
    NodeUp {
        /// The node's URL.
        url: &'a str,
    },
    /// The connection to a node was lost, or the first one could not be made. Told once until the
    /// node is up again, and not for each time that it is tried in vain.
    #[non_exhaustive]
    NodeDown {
        /// The node's URL.
        url: &'a str,
        /// Why it is down.
        error: &'a NodeError,
    },
    /// A node has been silent for longer than [`node_timeout`](crate::Builder::node_timeout), with
    /// something to answer. Told once until it has answered something in time.
    #[non_exhaustive]
    NodeSlow {
        /// The node's URL.
        url: &'a str,
        /// For how long it has been silent.
        silent: Duration,
    },
}

/// What came of one attempt to take a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum AttemptOutcome {
    /// A majority granted the lock, in time.
    Granted,
    /// A majority answered, and others hold the lock.
    Contended,
    /// Too few nodes answered to know.
    NoQuorum,
    /// A majority granted the lock, but with too little validity left.
    TooSlow,
    /// Two of the nodes are one server.
    SameServer,
}

impl<'a> Event<'a> {
    /// What kind of event it is, in a word that can be a label: `acquired`, `node_down`.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Attempt { .. } => "attempt",
            Self::Quarantined { .. } => "quarantined",
            Self::Acquired { .. } => "acquired",
            Self::Contended { .. } => "contended",
            Self::Failed { .. } => "failed",
            Self::Extended { .. } => "extended",
            Self::NotExtended { .. } => "not_extended",
            Self::Lost { .. } => "lost",
            Self::Released { .. } => "released",
            Self::NodeUp { .. } => "node_up",
            Self::NodeDown { .. } => "node_down",
            Self::NodeSlow { .. } => "node_slow",
        }
    }

    /// The resource that it is about, if it is about a lock.
    #[must_use]
    pub fn resource(&self) -> Option<Name<'a>> {
        match self {
            Self::Attempt { resource, .. }
            | Self::Quarantined { resource, .. }
            | Self::Acquired { resource, .. }
            | Self::Contended { resource, .. }
            | Self::Failed { resource, .. }
            | Self::Extended { resource, .. }
            | Self::NotExtended { resource, .. }
            | Self::Lost { resource, .. }
            | Self::Released { resource, .. } => Some(*resource),
            Self::NodeUp { .. } | Self::NodeDown { .. } | Self::NodeSlow { .. } => None,
        }
    }

    /// The node that it is about, if it is about one.
    #[must_use]
    pub fn url(&self) -> Option<&'a str> {
        match self {
            Self::NodeUp { url } | Self::NodeDown { url, .. } | Self::NodeSlow { url, .. } => {
                Some(url)
            }
            _ => None,
        }
    }
}

impl AttemptOutcome {
    /// In a word that can be a label: `granted`, `no_quorum`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Granted => "granted",
            Self::Contended => "contended",
            Self::NoQuorum => "no_quorum",
            Self::TooSlow => "too_slow",
            Self::SameServer => "same_server",
        }
    }
}
