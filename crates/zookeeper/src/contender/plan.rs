//! What a contender wants: which lock, and as whom.

use super::state::Own;
use crate::message::{Acl, Create, CreateKind, Operation, Request};
use crate::name::{ContenderId, Layout};
use crate::path::{Directory, Root};
use redlatch_protocol::engine::Share;
use std::sync::Arc;
use std::time::Duration;

/// The lock that a contender wants, and how.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Persistent znodes above the lock's directory, from the top.
    above: Arc<[Arc<str>]>,
    /// The lock's directory, or those of a set of locks: at least one, and none twice.
    directories: Arc<[Directory]>,
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
    /// The share of the lock that it wants, if not all of it; `number` of a permit is the first one
    /// that it tries. A set of locks is taken whole.
    pub share: Option<Share>,
}

impl Plan {
    /// Waits for the lock with this directory, below this root, without data.
    pub fn new(root: &Root, directory: Directory) -> Self {
        Self::of_set(root, vec![directory])
    }

    /// The same for all locks with these directories together. One that is named twice counts once.
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
        self.directories.iter().map(|directory| directory.path().len() + NAME_MAX).sum()
    }

    pub(super) fn directory(&self, at: usize) -> &Directory {
        &self.directories[at]
    }

    pub(super) fn directories(&self) -> &[Directory] {
        &self.directories
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
    pub(super) fn join(&self, id: ContenderId, is_plain: bool) -> Request {
        let prefix = self.layout.prefix(id);
        let kind = CreateKind::EphemeralSequential;
        let mut creates = self.directories.iter().map(|directory| {
            Create::new(directory.child(&prefix), Arc::clone(&self.data), self.acl, kind)
        });
        if self.is_set() {
            return Request::Multi(creates.map(Operation::PlainCreate).collect());
        }
        let create = creates.next().expect("there is a directory");
        if is_plain { Request::PlainCreate(create) } else { Request::Create(create) }
    }

    /// The request that leaves the queue with a share at this path, and with `renews` removes the
    /// queue's directory.
    pub(super) fn take_share(&self, own: &Own, share: &Arc<str>, renews: bool) -> Request {
        let kind = CreateKind::Ephemeral;
        let create = Create::new(Arc::clone(share), Arc::clone(&self.data), self.acl, kind);
        let directory = self.directory(0).path();
        let operations = [Operation::PlainCreate(create)].into_iter();
        let operations = operations.chain(self.paths(own).map(Operation::Delete));
        let renewed = renews.then(|| Operation::Delete(Arc::clone(directory)));
        Request::Multi(operations.chain(renewed).collect())
    }

    /// The requests that create the locks' directories, and with `all` what is above them.
    pub(super) fn parents(&self, all: bool, is_plain: bool) -> Vec<Request> {
        let above = self.above.iter().filter(|_| all);
        let above = above
            .map(|path| self.create_parent(Arc::clone(path), is_plain, CreateKind::Persistent));
        let each = self.directories.iter();
        let each = each.map(|directory| self.container(Arc::clone(directory.path()), is_plain));
        above.chain(each).collect()
    }

    /// The request that creates a directory: one that goes when it is empty, if servers know that.
    pub(super) fn container(&self, path: Arc<str>, is_plain: bool) -> Request {
        let kind = if is_plain { CreateKind::Persistent } else { CreateKind::Container };
        self.create_parent(path, is_plain, kind)
    }

    fn create_parent(&self, path: Arc<str>, is_plain: bool, kind: CreateKind) -> Request {
        let create = Create::new(path, Arc::from([]), self.acl, kind);
        if is_plain { Request::PlainCreate(create) } else { Request::Create(create) }
    }

    /// The request for the names of all contenders of a lock.
    pub(super) fn list(&self, at: usize) -> Request {
        Request::GetChildren { path: Arc::clone(self.directory(at).path()), watch: false }
    }

    /// The request for the names of all shares of a lock.
    pub(super) fn shares(&self, at: usize, watch: bool) -> Request {
        Request::GetChildren { path: self.directory(at).shares(), watch }
    }

    /// The request before a look that must see what was created before.
    pub(super) fn sync(&self) -> Request {
        Request::Sync(Arc::clone(self.directory(0).path()))
    }
}
