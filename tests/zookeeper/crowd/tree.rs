//! The znodes of the model's server: directories, and what clients have created in them.

use super::wish::LOCKS;
use crate::random::Random;
use redlatch_zookeeper::message::{Create, CreateKind, MultiOperation};
use std::collections::BTreeMap;

pub(super) const NO_NODE: i32 = -101;
const NODE_EXISTS: i32 = -110;
const NOT_EMPTY: i32 = -111;

/// The root and what is above it are always there.
pub(super) const ROOT: &str = "/locks";

#[derive(Clone)]
pub(super) struct Tree {
    pub(super) zxid: i64,
    /// The directories, each with the number of the next znode in it.
    directories: BTreeMap<String, i64>,
    znodes: BTreeMap<String, Znode>,
    /// The first number of directories that were never there.
    first: BTreeMap<String, i64>,
    /// Paths that were created or deleted, and directories whose children were.
    changed: Vec<(String, Change)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    Deleted,
    Children,
}

#[derive(Clone, Copy)]
pub(super) struct Znode {
    pub(super) created_by: i64,
    session: i64,
}

impl Tree {
    pub(super) fn new(random: &mut Random) -> Self {
        // Also close to where directories are renewed, and to where numbers end.
        let starts = [0, (1 << 30) - 4, i64::from(i32::MAX) - 4];
        let mut tree = Self {
            zxid: 100,
            directories: BTreeMap::new(),
            znodes: BTreeMap::new(),
            first: BTreeMap::new(),
            changed: Vec::new(),
        };
        for lock in LOCKS {
            let path = format!("{ROOT}/{lock}");
            let first = starts[random.below(3) as usize];
            if random.one_in(2) {
                tree.directories.insert(path, first);
            } else {
                tree.first.insert(path, first);
            }
        }
        tree
    }

    pub(super) fn take_changes(&mut self) -> Vec<(String, Change)> {
        std::mem::take(&mut self.changed)
    }

    pub(super) fn paths(&self) -> Vec<String> {
        self.znodes.keys().cloned().collect()
    }

    pub(super) fn of_session(&self, session: i64) -> Vec<String> {
        let of_it = self
            .znodes
            .iter()
            .filter(|(_, znode)| znode.session == session);
        of_it.map(|(path, _)| path.clone()).collect()
    }

    pub(super) fn znode(&self, path: &str) -> Option<Znode> {
        self.znodes.get(path).copied()
    }

    /// The names in a directory, if it is there.
    pub(super) fn children(&self, path: &str) -> Option<Vec<String>> {
        self.directories.get(path)?;
        let below = format!("{path}/");
        let names = self
            .znodes
            .keys()
            .filter_map(|child| child.strip_prefix(&below));
        Some(names.map(str::to_owned).collect())
    }

    /// Removes some directory if it is empty, as servers do with containers.
    pub(super) fn sweep(&mut self, random: &mut Random) {
        let nth = random.below(self.directories.len().max(1) as u64) as usize;
        if let Some(path) = self.directories.keys().nth(nth).cloned() {
            // One that is not empty stays.
            let _not_empty = self.delete(&path);
        }
    }

    /// Carries out all of them, or none. Returns the paths of what was created, or the place of
    /// what has failed.
    pub(super) fn transact(
        &mut self,
        session: i64,
        operations: &[MultiOperation],
    ) -> Result<Vec<Option<String>>, (usize, i32)> {
        self.zxid += 1;
        let before = self.clone();
        let mut created = Vec::new();
        for (place, operation) in operations.iter().enumerate() {
            let result = match operation {
                MultiOperation::Create(create) => self.create(session, create).map(Some),
                MultiOperation::Delete(path) => self.delete(path).map(|()| None),
                MultiOperation::Check(path) => self.check(path).map(|()| None),
            };
            match result {
                Ok(path) => created.push(path),
                Err(error) => {
                    let zxid = self.zxid;
                    *self = Self { zxid, ..before };
                    return Err((place, error));
                }
            }
        }
        Ok(created)
    }

    fn create(&mut self, session: i64, create: &Create) -> Result<String, i32> {
        let path = create.path.to_string();
        let is_there = path == ROOT || self.check(&path).is_ok();
        let (parent, _) = path.rsplit_once('/').expect("a path has a slash");
        let parent = parent.to_owned();
        match create.kind {
            CreateKind::Container | CreateKind::Persistent if is_there => Err(NODE_EXISTS),
            CreateKind::Container | CreateKind::Persistent => {
                let first = self.first.remove(&path).unwrap_or_default();
                self.directories.insert(path.clone(), first);
                Ok(path)
            }
            kind => {
                let next = self.directories.get_mut(&parent).ok_or(NO_NODE)?;
                // At its end the counter stands still.
                let number = (*next).min(i64::from(i32::MAX));
                *next += 1;
                if is_there {
                    return Err(NODE_EXISTS);
                }
                let is_sequential = kind == CreateKind::EphemeralSequential;
                let path = if is_sequential {
                    format!("{path}{number:010}")
                } else {
                    path
                };
                self.znodes.insert(
                    path.clone(),
                    Znode {
                        created_by: self.zxid,
                        session,
                    },
                );
                self.changed.push((parent, Change::Children));
                Ok(path)
            }
        }
    }

    fn check(&self, path: &str) -> Result<(), i32> {
        let is_there = self.znodes.contains_key(path) || self.directories.contains_key(path);
        if is_there { Ok(()) } else { Err(NO_NODE) }
    }

    pub(super) fn delete(&mut self, path: &str) -> Result<(), i32> {
        if self.znodes.remove(path).is_some() {
            let (parent, _) = path.rsplit_once('/').expect("a path has a slash");
            self.changed.push((parent.to_owned(), Change::Children));
        } else {
            let children = self.children(path).ok_or(NO_NODE)?;
            if !children.is_empty() {
                return Err(NOT_EMPTY);
            }
            self.directories.remove(path);
        }
        self.changed.push((path.to_owned(), Change::Deleted));
        Ok(())
    }
}
