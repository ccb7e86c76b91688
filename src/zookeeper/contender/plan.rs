//! What a contender wants: which lock, and as whom.

use crate::zookeeper::message::{Acl, Create, CreateKind, Request};
use crate::zookeeper::name::{ContenderId, Layout};
use crate::zookeeper::path::{Directory, Root};
use std::sync::Arc;
use std::time::Duration;

/// The lock that a contender wants, and how.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Plan {
    /// Persistent znodes above the lock's directory, from the top.
    above: Arc<[Arc<str>]>,
    /// The lock's directory.
    pub(super) directory: Directory,
    /// The family of names.
    pub layout: Layout,
    /// The contender's data: its owner.
    pub data: Arc<[u8]>,
    /// Who has rights to what it creates.
    pub acl: Acl,
    /// Does it wait for its turn? Otherwise it also looks before it creates anything.
    pub waits: bool,
    /// How much longer the session must be valid when the lock is granted.
    pub min_validity: Duration,
}

impl Plan {
    /// Waits for the lock with this directory, below this root, without data.
    #[must_use]
    pub fn new(root: &Root, directory: Directory) -> Self {
        Self {
            above: root.persistent().map(Arc::from).collect(),
            directory,
            layout: Layout::default(),
            data: Arc::from([]),
            acl: Acl::Anyone,
            waits: true,
            min_validity: Duration::ZERO,
        }
    }

    /// The request that joins the queue, under this id.
    pub(super) fn join(&self, id: ContenderId, is_plain: bool) -> Request {
        let path = self.directory.child(&self.layout.prefix(id));
        let kind = CreateKind::EphemeralSequential;
        let create = Create::new(path, Arc::clone(&self.data), self.acl, kind);
        if is_plain { Request::PlainCreate(create) } else { Request::Create(create) }
    }

    /// The requests that create the lock's directory, and with `all` what is above it.
    pub(super) fn parents(&self, all: bool, is_plain: bool) -> Vec<Request> {
        let create = |path: &Arc<str>, kind| {
            let create = Create::new(Arc::clone(path), Arc::from([]), self.acl, kind);
            if is_plain { Request::PlainCreate(create) } else { Request::Create(create) }
        };
        let kind = if is_plain { CreateKind::Persistent } else { CreateKind::Container };
        let above = self.above.iter().filter(|_| all);
        let above = above.map(|path| create(path, CreateKind::Persistent));
        above.chain([create(self.directory.path(), kind)]).collect()
    }

    /// The request for the names of all contenders.
    pub(super) fn list(&self) -> Request {
        Request::GetChildren { path: Arc::clone(self.directory.path()), watch: false }
    }

    /// The request before a look that must see what was created before.
    pub(super) fn sync(&self) -> Request {
        Request::Sync(Arc::clone(self.directory.path()))
    }
}
