//! The tree of znodes.

use super::acl::Acl;
use super::refusal::Refusal;
use super::znode::{Change, FormerData, Lifetime, Znode};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Znodes of the server itself, which no client may delete.
const RESERVED: [&str; 4] = ["/", "/zookeeper", "/zookeeper/quota", "/zookeeper/config"];

/// All znodes by their paths. Every znode but the root has a parent.
#[derive(Debug)]
pub(super) struct Tree {
    znodes: HashMap<Box<str>, Znode>,
    ephemerals: BTreeMap<i64, BTreeSet<Box<str>>>,
    containers: BTreeSet<Box<str>>,
}

/// How to undo a change of the tree.
#[derive(Debug)]
pub(super) enum Undo {
    Create { path: Box<str>, parent_creates: i32, parent_zxid: i64 },
    Delete { path: Box<str>, znode: Box<Znode>, parent_zxid: i64 },
    SetData { path: Box<str>, former: FormerData },
}

/// The parent's path and the own name. `None` without a slash.
pub(super) fn split(path: &str) -> Option<(&str, &str)> {
    let (parent, name) = path.rsplit_once('/')?;
    Some((if parent.is_empty() { "/" } else { parent }, name))
}

pub(super) fn is_reserved(path: &str) -> bool {
    RESERVED.contains(&path)
}

/// Fails unless the path is one that a znode may have, by the rules of ZooKeeper.
pub(super) fn check_path(path: &str) -> Result<(), Refusal> {
    if path == "/" {
        return Ok(());
    }
    let rest = path.strip_prefix('/').ok_or(Refusal::BadArguments)?;
    let is_name = |name: &str| !matches!(name, "" | "." | "..");
    let is_forbidden = |c: char| {
        matches!(c, '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}' | '\u{e000}'..='\u{f8ff}')
            || ('\u{fff0}'..='\u{ffff}').contains(&c)
            // A pair of surrogates there, each of which is forbidden.
            || c > '\u{ffff}'
    };
    if rest.split('/').all(is_name) && !rest.contains(is_forbidden) {
        Ok(())
    } else {
        Err(Refusal::BadArguments)
    }
}

impl Tree {
    /// The tree of a new server: the root, and the znodes of the server itself.
    pub(super) fn new() -> Self {
        let mut tree = Self {
            znodes: HashMap::new(),
            ephemerals: BTreeMap::new(),
            containers: BTreeSet::new(),
        };
        for path in RESERVED {
            let acl = if path.ends_with("config") { Acl::read_only() } else { Acl::default() };
            let zero = Change { zxid: 0, time_ms: 0 };
            let mut znode = Znode::new(zero, Lifetime::Persistent, acl, Some(&[]));
            // Their children were never created.
            let below = RESERVED.iter().filter_map(|other| split(other));
            let below = below.filter(|(parent, name)| *parent == path && !name.is_empty());
            znode.children = below.map(|(_, name)| name.into()).collect();
            tree.znodes.insert(path.into(), znode);
        }
        tree
    }

    /// The number of znodes.
    pub(super) fn len(&self) -> usize {
        self.znodes.len()
    }

    /// The znode with this path. The empty path is the root's as well.
    pub(super) fn znode(&self, path: &str) -> Result<&Znode, Refusal> {
        let path = if path.is_empty() { "/" } else { path };
        self.znodes.get(path).ok_or(Refusal::NoNode)
    }

    fn znode_mut(&mut self, path: &str) -> Option<&mut Znode> {
        self.znodes.get_mut(path)
    }

    /// The ephemeral znodes of a session.
    pub(super) fn of_session(&self, session: i64) -> Vec<Box<str>> {
        self.ephemerals.get(&session).into_iter().flatten().cloned().collect()
    }

    /// The containers that have had children and have none.
    pub(super) fn empty_containers(&self) -> Vec<Box<str>> {
        let is_empty = |path: &str| {
            self.znodes.get(path).is_some_and(|it| it.children.is_empty() && it.creates > 0)
        };
        self.containers.iter().filter(|path| is_empty(path)).cloned().collect()
    }

    /// Adds a znode whose parent is there, and which is not there itself.
    pub(super) fn create(&mut self, path: &str, znode: Znode) -> Result<Undo, Refusal> {
        let (parent_path, name) = split(path).ok_or(Refusal::BadArguments)?;
        let parent = self.znode_mut(parent_path).ok_or(Refusal::NoNode)?;
        let undo = Undo::Create {
            path: path.into(),
            parent_creates: parent.creates,
            parent_zxid: parent.children_zxid,
        };
        // At its maximum the counter stands still, and the stat with it, as in ZooKeeper.
        if let Some(creates) = parent.creates.checked_add(1) {
            parent.creates = creates;
            parent.children_zxid = znode.children_zxid;
        }
        parent.children.insert(name.into());
        self.insert(path, znode);
        Ok(undo)
    }

    fn insert(&mut self, path: &str, znode: Znode) {
        match znode.lifetime {
            Lifetime::Persistent => {}
            Lifetime::Ephemeral(session) => {
                self.ephemerals.entry(session).or_default().insert(path.into());
            }
            Lifetime::Container => {
                self.containers.insert(path.into());
            }
        }
        self.znodes.insert(path.into(), znode);
    }

    /// Removes a znode that has no children.
    pub(super) fn delete(&mut self, path: &str, zxid: i64) -> Result<Undo, Refusal> {
        let (parent_path, name) = split(path).ok_or(Refusal::BadArguments)?;
        let znode = self.remove(path).ok_or(Refusal::NoNode)?;
        let parent = self.znode_mut(parent_path).expect("every znode has a parent");
        parent.children.remove(name);
        let parent_zxid = std::mem::replace(&mut parent.children_zxid, zxid);
        Ok(Undo::Delete { path: path.into(), znode: Box::new(znode), parent_zxid })
    }

    fn remove(&mut self, path: &str) -> Option<Znode> {
        let znode = self.znodes.remove(path)?;
        self.containers.remove(path);
        if let Lifetime::Ephemeral(session) = znode.lifetime {
            let paths = self.ephemerals.entry(session).or_default();
            paths.remove(path);
            if paths.is_empty() {
                self.ephemerals.remove(&session);
            }
        }
        Some(znode)
    }

    pub(super) fn set_data(
        &mut self,
        path: &str,
        change: Change,
        data: Option<&[u8]>,
    ) -> Result<Undo, Refusal> {
        let znode = self.znode_mut(path).ok_or(Refusal::NoNode)?;
        Ok(Undo::SetData { path: path.into(), former: znode.set_data(change, data) })
    }

    /// Undoes the latest change that was not undone yet.
    pub(super) fn undo(&mut self, undo: Undo) {
        let present = "what was changed is there, as later changes were undone before";
        match undo {
            Undo::Create { path, parent_creates, parent_zxid } => {
                self.remove(&path);
                let (parent_path, name) = split(&path).expect(present);
                let parent = self.znode_mut(parent_path).expect(present);
                parent.children.remove(name);
                parent.creates = parent_creates;
                parent.children_zxid = parent_zxid;
            }
            Undo::Delete { path, znode, parent_zxid } => {
                let (parent_path, name) = split(&path).expect(present);
                let parent = self.znode_mut(parent_path).expect(present);
                parent.children.insert(name.into());
                parent.children_zxid = parent_zxid;
                self.insert(&path, *znode);
            }
            Undo::SetData { path, former } => {
                self.znode_mut(&path).expect(present).restore_data(former);
            }
        }
    }

    /// Sets how many children a znode is said to have had: for tests of the counter's end.
    #[cfg(test)]
    pub(super) fn set_creates(&mut self, path: &str, creates: i32) {
        self.znode_mut(path).expect("a znode of the test").creates = creates;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_those_of_zookeeper() {
        for path in ["/", "/a", "/a/b", "/a.b", "/...", "/ä", "/a b"] {
            assert_eq!(check_path(path), Ok(()), "{path}");
        }
        for path in ["", "a", "/a/", "//", "/a//b", "/.", "/a/..", "/./b", "/\0", "/\u{1f512}"] {
            assert_eq!(check_path(path), Err(Refusal::BadArguments), "{path}");
        }
    }

    #[test]
    fn what_was_undone_never_was() {
        let mut tree = Tree::new();
        let change = |zxid| Change { zxid, time_ms: 0 };
        let znode = |zxid, lifetime| Znode::new(change(zxid), lifetime, Acl::default(), None);
        tree.create("/a", znode(1, Lifetime::Container)).unwrap();
        tree.create("/a/b", znode(2, Lifetime::Ephemeral(9))).unwrap();
        let before = format!("{:?}", tree.znode("/a").unwrap());
        let undo = [
            tree.set_data("/a", change(3), Some(b"data")).unwrap(),
            tree.delete("/a/b", 3).unwrap(),
            tree.create("/a/c", znode(3, Lifetime::Ephemeral(9))).unwrap(),
        ];
        assert_eq!(tree.of_session(9), ["/a/c".into()]);
        undo.into_iter().rev().for_each(|undo| tree.undo(undo));
        assert_eq!(format!("{:?}", tree.znode("/a").unwrap()), before);
        assert_eq!(tree.of_session(9), ["/a/b".into()]);
        assert_eq!(tree.znode("/a/c").unwrap_err(), Refusal::NoNode);
        assert!(tree.empty_containers().is_empty());
    }
}
