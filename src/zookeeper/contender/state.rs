//! How far a contender has come.

use super::Serial;
use crate::zookeeper::message::ServerError;
use crate::zookeeper::name::{ContenderId, Number};

/// The znode of a contender.
#[derive(Clone, Debug)]
pub(super) struct Own {
    pub(super) name: String,
    pub(super) number: Number,
    /// The transaction that created it; `None` until it is known.
    pub(super) created_by: Option<i64>,
}

#[derive(Debug)]
pub(super) enum State {
    /// To begin, with the lock's directory or without.
    New,
    /// Looking whether others are there, before anything is created.
    Looking {
        list: Serial,
    },
    /// The creation is in flight, and a list behind it.
    Joining {
        id: ContenderId,
        /// The creation of the directory, if that is in flight before it.
        directory: Option<Serial>,
        create: Serial,
        list: Serial,
        /// Why the directory was not created.
        refusal: Option<ServerError>,
    },
    /// The creation was not answered: looking for its znode.
    Unknown {
        id: ContenderId,
        search: Search,
    },
    /// Found by its id: asking which transaction created it.
    Dating {
        own: Own,
        stat: Serial,
    },
    /// Asking for all contenders.
    Listing {
        own: Own,
        list: Serial,
    },
    /// Asking which transactions created them, where numbers mean nothing.
    Comparing {
        own: Own,
        others: Vec<String>,
        asked: String,
        stat: Serial,
    },
    /// Beginning to watch the znode before its own.
    Watching {
        own: Own,
        before: String,
        data: Serial,
        has_changed: bool,
    },
    /// Waiting until that one changes.
    Queued {
        own: Own,
        before: String,
    },
    /// Nobody is before it. Waiting until the session is valid for long enough.
    First {
        own: Own,
    },
    /// The lock is held.
    Held {
        own: Own,
    },
    /// Given up while the creation is in flight.
    Abandoned {
        id: ContenderId,
        create: Serial,
    },
    /// Given up without knowing what was created.
    Searching {
        id: ContenderId,
        search: Search,
    },
    /// Its znode is being deleted, and the directory too if nobody else is in it.
    LeavingBoth {
        own: Own,
        multi: Serial,
    },
    /// Its znode is being deleted, and may be already.
    Leaving {
        delete: Serial,
        may_be_done: bool,
    },
    Over,
}

/// A list behind a sync. It says nothing if the sync was not answered, or refused.
#[derive(Clone, Copy, Debug)]
pub(super) struct Search {
    pub(super) sync: Serial,
    pub(super) list: Serial,
    pub(super) is_synced: bool,
}
