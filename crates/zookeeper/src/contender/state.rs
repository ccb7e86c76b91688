//! What a contender wants, how far it has come, and what it wants done next.

use crate::message::{
    Acl, Create, CreateKind, EnsembleError, EnsembleReply, EnsembleRequest, MultiOperation,
};
use crate::path::{ContenderId, Directory, Layout, Number, Root};
use crate::session::Failure;
use crate::shares::GrantedShare;
use redlatch_protocol::engine::Share;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

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
    pub(super) granted: GrantedShare,
}

/// The lists of one lock, in this order: a share that was made between them is in the second, and
/// not missing in both.
#[derive(Clone, Copy, Debug)]
pub(super) struct ListPair {
    pub(super) list: Serial,
    pub(super) shares: Serial,
}

/// Those that are not answered, in the order of the locks.
pub(super) type ListPairs = VecDeque<ListPair>;

impl ListPair {
    pub(super) fn has(self, serial: Serial) -> bool {
        self.list == serial || self.shares == serial
    }
}

#[derive(Debug)]
pub(super) enum State {
    /// To begin, with the lock's directory or without.
    New,
    /// Looking whether others are there, before anything is created.
    Looking { looks: ListPairs },
    /// The creation is in flight, and lists behind it. Before it that of the directories, if they
    /// are missing.
    Joining {
        id: ContenderId,
        parents: Vec<Serial>,
        create: Serial,
        looks: ListPairs,
    },
    /// The creation was not answered: looking for its znodes.
    Unknown { id: ContenderId, search: Search },
    /// It has znodes in the queues, and none of them is given up.
    InQueue { own: Own, turn: Turn },
    /// The transaction that makes its share is in flight. Before it the creation of the directory
    /// of shares, if that is missing.
    Sharing {
        own: Own,
        share: OwnShare,
        parent: Option<Serial>,
        multi: Serial,
        renews: bool,
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
    First { own: Own, share: Option<OwnShare> },
    /// The lock is held, or a share of it.
    Held { own: Own, share: Option<OwnShare> },
    /// Its znodes are being deleted in one transaction, and these directories too if nobody else is
    /// in them.
    DeletingTogether {
        own: Own,
        renewed: Vec<usize>,
        multi: Serial,
    },
    /// Its znodes are being deleted one by one, and may be already.
    Deleting {
        delete: Serial,
        rest: VecDeque<Arc<str>>,
        may_be_done: bool,
        cleanup: Cleanup,
    },
    /// There is nothing more to do for it.
    Over,
}

/// How far a contender in the queues has come to its turn.
#[derive(Debug)]
pub(super) enum Turn {
    /// Found by its id: asking which transaction created it.
    Dating { stat: Serial },
    /// Asking for all contenders of the first of these locks.
    Listing { looks: ListPairs },
    /// Asking which transactions created them, where numbers mean nothing.
    Comparing {
        others: Vec<String>,
        asked: String,
        stat: Serial,
    },
    /// Beginning to watch the znode before its own.
    Watching {
        before: String,
        data: Serial,
        has_changed: bool,
    },
    /// Waiting until that one changes.
    Queued { before: String },
    /// Nobody is before it. Asking for the shares that were granted; then the other lists of a set
    /// are answered.
    Checking {
        shares: Serial,
        is_watched: bool,
        has_changed: bool,
        looks: ListPairs,
    },
    /// Nobody is before it. Waiting until a share is given back.
    Blocked,
}

impl Turn {
    /// The request whose answer is the next to say something.
    pub(super) fn awaits(&self) -> Option<Serial> {
        match self {
            Self::Dating { stat } | Self::Comparing { stat, .. } => Some(*stat),
            Self::Listing { looks } => looks.front().map(|look| look.list),
            Self::Watching { data, .. } => Some(*data),
            Self::Checking { shares, .. } => Some(*shares),
            Self::Queued { .. } | Self::Blocked => None,
        }
    }
}

/// What an answer about znodes says.
pub(super) enum Finding<'a> {
    Reply(EnsembleReply<'a>),
    /// The znode is not there.
    Absent,
    Nothing,
    SessionLost,
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

/// Identifies a request of one contender.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Serial(pub(super) u32);

/// What is to be done for a contender.
#[derive(Debug, PartialEq)]
pub enum ContenderStep {
    /// Call `begin`.
    Begin,
    /// Send this request, and give its answer to `answered`.
    Send(Serial, EnsembleRequest),
    /// The session has this znode.
    Keep(Arc<str>),
    /// A transaction has deleted this znode, so it need not be kept any more.
    Forget(Arc<str>),
    /// Nothing more before a pause, such as that of the session between connections: a server has
    /// refused what may be possible later.
    Pause,
    /// Delete this znode, on one connection after another until it is answered. With a serial, give
    /// the answer to `answered`.
    Delete(Option<Serial>, Arc<str>),
    /// The lock is held.
    Held(Held),
    /// Others have the lock or wait for it, and this contender does not wait.
    Contended,
    /// A server refuses what is needed. Nothing was created, or it is being deleted.
    Refused(Failure),
    /// A znode of a lock that was held is gone, or the session is.
    Lost,
    /// The contender was given up, and has left nothing behind.
    CleanedUp(Cleanup),
}

/// A lock that was granted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    /// The paths of the znodes that hold it: that of the lock, or those of a set.
    pub paths: Arc<[Arc<str>]>,
    /// The transaction by which the contender joined the queue: the fencing token.
    pub created_by: i64,
    /// The number of a permit, from 0.
    pub slot: Option<u32>,
}

/// What became of the znodes of a contender that was given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cleanup {
    /// They were deleted.
    Deleted,
    /// One was not there any more, or their session has ended.
    WasGone,
    /// There were none.
    Nothing,
    /// A server refuses to delete one. It ends with the session.
    Refused(EnsembleError),
}

/// The lock that a contender wants, and how.
#[derive(Clone, Debug)]
pub struct ContenderPlan {
    /// Persistent znodes above the lock's directory, from the top.
    above: Arc<[Arc<str>]>,
    /// The lock's directory, or those of a set of locks: at least one, and none twice.
    pub(super) directories: Arc<[Directory]>,
    pub layout: Layout,
    /// The contender's data: its owner.
    pub data: Arc<[u8]>,
    pub acl: Acl,
    /// Does it wait for its turn? Otherwise it also looks before it creates anything.
    pub waits: bool,
    /// How much longer the session must be valid when the lock is granted.
    pub min_validity: Duration,
    /// The share of the lock that it wants, if not all of it; `number` of a permit is the first one
    /// that it tries. A set of locks is taken whole.
    pub share: Option<Share>,
}

impl ContenderPlan {
    /// Waits for all locks with these directories together, below this root, without data. One that
    /// is named twice counts once.
    ///
    /// # Panics
    ///
    /// There is no directory.
    pub fn of_set(root: &Root, directories: Vec<Directory>) -> Self {
        assert!(!directories.is_empty(), "a set has a lock");
        let mut each: Vec<Directory> = Vec::with_capacity(directories.len());
        for directory in directories {
            if !each.contains(&directory) {
                each.push(directory);
            }
        }
        Self {
            above: root.persistent().map(Arc::from).collect(),
            directories: each.into(),
            layout: Layout::default(),
            data: Arc::from([]),
            acl: Acl::Anyone,
            waits: true,
            min_validity: Duration::ZERO,
            share: None,
        }
    }

    /// How many bytes the paths of its znodes have, at most.
    pub fn path_bytes(&self) -> usize {
        /// A family's prefix with an id, and a number.
        const NAME_MAX: usize = 64;
        self.directories
            .iter()
            .map(|directory| directory.path.len() + NAME_MAX)
            .sum()
    }

    pub(super) fn is_set(&self) -> bool {
        self.directories.len() > 1
    }

    /// The paths of these znodes of the queues.
    pub(super) fn paths(&self, own: &Own) -> impl Iterator<Item = Arc<str>> {
        let each = self.directories.iter().zip(&own.numbers);
        each.map(|(directory, number)| directory.child(&self.layout.name(own.id, *number)))
    }

    /// The request that joins the queues, under this id.
    pub(super) fn join(&self, id: ContenderId) -> EnsembleRequest {
        let prefix = self.layout.prefix(id);
        let kind = CreateKind::EphemeralSequential;
        let mut creates = self
            .directories
            .iter()
            .map(|it| self.create(it.child(&prefix), kind));
        if self.is_set() {
            return EnsembleRequest::Multi(creates.map(MultiOperation::Create).collect());
        }
        EnsembleRequest::Create(creates.next().expect("there is a directory"))
    }

    /// The request that leaves the queue with a share at this path, and with `renews` removes the
    /// queue's directory.
    pub(super) fn take_share(&self, own: &Own, share: &Arc<str>, renews: bool) -> EnsembleRequest {
        let create = MultiOperation::Create(self.create(Arc::clone(share), CreateKind::Ephemeral));
        let mut operations = vec![create];
        operations.extend(self.paths(own).map(MultiOperation::Delete));
        if renews {
            let directory = Arc::clone(&self.directories[0].path);
            operations.push(MultiOperation::Delete(directory));
        }
        EnsembleRequest::Multi(operations.into())
    }

    /// The requests that create the locks' directories, and with `all` what is above them.
    pub(super) fn parents(&self, all: bool) -> Vec<EnsembleRequest> {
        let mut creates = Vec::new();
        if all {
            for path in self.above.iter() {
                creates.push(self.directory(path, CreateKind::Persistent));
            }
        }
        for directory in self.directories.iter() {
            creates.push(self.container(&directory.path));
        }
        creates
    }

    /// The request that creates a directory which goes when it is empty.
    pub(super) fn container(&self, path: &Arc<str>) -> EnsembleRequest {
        self.directory(path, CreateKind::Container)
    }

    /// The request that creates a znode for others below it.
    fn directory(&self, path: &Arc<str>, kind: CreateKind) -> EnsembleRequest {
        let path = Arc::clone(path);
        let data = Arc::from([]);
        EnsembleRequest::Create(Create {
            path,
            data,
            acl: self.acl,
            kind,
        })
    }

    fn create(&self, path: Arc<str>, kind: CreateKind) -> Create {
        Create {
            path,
            data: Arc::clone(&self.data),
            acl: self.acl,
            kind,
        }
    }

    /// The request for the names of all contenders of a lock.
    pub(super) fn list(&self, at: usize) -> EnsembleRequest {
        EnsembleRequest::GetChildren {
            path: Arc::clone(&self.directories[at].path),
            watch: false,
        }
    }

    /// The request for the names of all shares of a lock.
    pub(super) fn shares(&self, at: usize, watch: bool) -> EnsembleRequest {
        EnsembleRequest::GetChildren {
            path: self.directories[at].shares(),
            watch,
        }
    }

    /// The request before a look that must see what was created before.
    pub(super) fn sync(&self) -> EnsembleRequest {
        EnsembleRequest::Sync(Arc::clone(&self.directories[0].path))
    }
}
