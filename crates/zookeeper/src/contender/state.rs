//! How far a contender has come.

use super::Serial;
use crate::message::ServerError;
use crate::name::{ContenderId, Number};
use crate::shares::Granted;
use std::collections::VecDeque;
use std::sync::Arc;

/// The znodes of a contender in the queues of its locks.
#[derive(Clone, Debug)]
pub(super) struct Own {
    pub(super) id: ContenderId,
    /// One for each lock.
    pub(super) numbers: Vec<Number>,
    /// The transaction that created them; `None` until it is known.
    pub(super) created_by: Option<i64>,
    /// The lock for which it waits. Those before have neither another contender before it nor
    /// shares, and that stays so while it is in their queues.
    pub(super) at: usize,
}

impl Own {
    /// Its number in the queue in which it waits.
    pub(super) fn number(&self) -> Number {
        self.numbers[self.at]
    }
}

/// The znode of a share.
#[derive(Clone, Debug)]
pub(super) struct OwnShare {
    pub(super) path: Arc<str>,
    pub(super) granted: Granted,
}

/// The lists of one lock, in this order: a share that was made between them is in the second, and
/// not missing in both.
#[derive(Clone, Copy, Debug)]
pub(super) struct Look {
    pub(super) list: Serial,
    pub(super) shares: Serial,
}

#[derive(Debug)]
pub(super) enum State {
    /// To begin, with the lock's directory or without.
    New,
    /// Looking whether others are there, before anything is created.
    Looking {
        looks: VecDeque<Look>,
    },
    /// The creation is in flight, and lists behind it.
    Joining {
        id: ContenderId,
        /// The creation of the directories, if that is in flight before it.
        directories: Vec<Serial>,
        create: Serial,
        looks: VecDeque<Look>,
        /// Why a directory was not created.
        refusal: Option<ServerError>,
    },
    /// The creation was not answered: looking for its znodes.
    Unknown {
        id: ContenderId,
        search: Search,
    },
    /// Found by its id: asking which transaction created it.
    Dating {
        own: Own,
        stat: Serial,
    },
    /// Asking for all contenders of the first of these locks.
    Listing {
        own: Own,
        looks: VecDeque<Look>,
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
    /// Nobody is before it. Asking for the shares that were granted; then the other lists of a set
    /// are answered.
    Checking {
        own: Own,
        shares: Serial,
        is_watched: bool,
        has_changed: bool,
        looks: VecDeque<Look>,
    },
    /// Nobody is before it. Waiting until a share is given back.
    Blocked {
        own: Own,
    },
    /// The transaction that makes its share is in flight.
    Sharing {
        own: Own,
        share: OwnShare,
        /// The creation of the directory of shares, if that is in flight before it.
        directory: Option<Serial>,
        multi: Serial,
        renews: bool,
        /// Why the directory was not created.
        refusal: Option<ServerError>,
    },
    /// That transaction was not answered: looking for the share.
    Uncertain {
        own: Own,
        share: OwnShare,
        sync: Serial,
        list: Serial,
        is_synced: bool,
    },
    /// It has what it wants. Waiting until the session is valid for long enough.
    First {
        own: Own,
        share: Option<OwnShare>,
    },
    /// The lock is held, or a share of it.
    Held {
        own: Own,
        share: Option<OwnShare>,
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
    /// Its znodes are being deleted in one transaction, and these directories too if nobody else is
    /// in them.
    LeavingTogether {
        own: Own,
        renewed: Vec<usize>,
        multi: Serial,
    },
    /// Its znodes are being deleted one by one, and may be already.
    Leaving {
        delete: Serial,
        rest: VecDeque<Arc<str>>,
        may_be_done: bool,
        left: super::Left,
    },
    Over,
}

/// Lists of all queues behind a sync. They say nothing if the sync was not answered, or refused.
#[derive(Clone, Debug)]
pub(super) struct Search {
    pub(super) sync: Serial,
    pub(super) is_synced: bool,
    pub(super) lists: VecDeque<Serial>,
    /// The numbers under the id, of the lists that were answered.
    pub(super) found: Vec<Option<Number>>,
}
