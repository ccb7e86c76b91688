//! The tree of znodes, and how it changes.

use super::acl::{AclIdentity, ZnodeAcl, permission};
use super::messages::{NewZnode, Refusal, ZnodeWrite, flags};
use super::sessions::{EventKind, ZnodeEvent};
use redlatch_zookeeper::jute::FrameWriter;
use std::collections::{BTreeMap, BTreeSet};

/// Znodes of the server itself, which no client may delete.
pub(super) const RESERVED: [&str; 4] = ["/", "/zookeeper", "/zookeeper/quota", "/zookeeper/config"];

/// All znodes by their paths. Every znode but the root has a parent.
#[derive(Debug)]
pub(super) struct Tree {
    znodes: BTreeMap<Box<str>, Znode>,
}

/// The parent's path and the own name. `None` without a slash.
pub(super) fn split(path: &str) -> Option<(&str, &str)> {
    let (parent, name) = path.rsplit_once('/')?;
    Some((if parent.is_empty() { "/" } else { parent }, name))
}

/// Fails unless the path is one that a znode may have, by the rules of ZooKeeper.
pub(super) fn check_path(path: &str) -> Result<(), Refusal> {
    if path == "/" {
        return Ok(());
    }
    let rest = path.strip_prefix('/').ok_or(Refusal::BadArguments)?;
    let mut names = rest.split('/');
    if names.any(|name| matches!(name, "" | "." | "..")) || rest.contains(is_forbidden) {
        return Err(Refusal::BadArguments);
    }
    Ok(())
}

fn is_forbidden(c: char) -> bool {
    matches!(c, '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}' | '\u{e000}'..='\u{f8ff}')
        || ('\u{fff0}'..='\u{ffff}').contains(&c)
        // A pair of surrogates there, each of which is forbidden.
        || c > '\u{ffff}'
}

impl Tree {
    /// The tree of a new server: the root, and the znodes of the server itself.
    pub(super) fn new() -> Self {
        let mut tree = Self {
            znodes: BTreeMap::new(),
        };
        for path in RESERVED {
            let acl = if path.ends_with("config") {
                ZnodeAcl::read_only()
            } else {
                ZnodeAcl::open()
            };
            let zero = Stamp {
                zxid: 0,
                time_ms: 0,
            };
            // It was never created: its parent does not count it.
            tree.put(
                path,
                Some(Znode::new(zero, Lifetime::Persistent, acl, Some(&[]))),
            );
        }
        tree
    }

    pub(super) fn len(&self) -> usize {
        self.znodes.len()
    }

    /// The znode with this path. The empty path is the root's as well.
    pub(super) fn znode(&self, path: &str) -> Result<&Znode, Refusal> {
        let path = if path.is_empty() { "/" } else { path };
        self.znodes.get(path).ok_or(Refusal::NoNode)
    }

    /// The ephemeral znodes of a session.
    pub(super) fn of_session(&self, session: i64) -> Vec<Box<str>> {
        self.paths(|znode| znode.lifetime == Lifetime::Ephemeral(session))
    }

    /// The containers that have had children and have none.
    pub(super) fn empty_containers(&self) -> Vec<Box<str>> {
        self.paths(|znode| {
            let is_empty = znode.children.is_empty() && znode.creates > 0;
            is_empty && znode.lifetime == Lifetime::Container
        })
    }

    fn paths(&self, is_meant: impl Fn(&Znode) -> bool) -> Vec<Box<str>> {
        let meant = self.znodes.iter().filter(|(_, znode)| is_meant(znode));
        meant.map(|(path, _)| path.clone()).collect()
    }

    /// Puts a znode here, or removes the one that is here. Returns the one that was here. Its
    /// parent is there, and counts nothing.
    pub(super) fn put(&mut self, path: &str, znode: Option<Znode>) -> Option<Znode> {
        if let Some((_, name)) = split(path).filter(|(_, name)| !name.is_empty()) {
            let siblings = &mut self.parent(path).children;
            match znode {
                Some(_) => siblings.insert(name.into()),
                None => siblings.remove(name),
            };
        }
        match znode {
            Some(znode) => self.znodes.insert(path.into(), znode),
            None => self.znodes.remove(path),
        }
    }

    /// The parent of a znode that is there, or could be; of the root itself.
    pub(super) fn parent(&mut self, path: &str) -> &mut Znode {
        let parent = split(path).and_then(|(parent, _)| self.znodes.get_mut(parent));
        parent.expect("every znode has a parent")
    }

    /// Sets how many children a znode is said to have had: for tests of the counter's end.
    #[cfg(test)]
    pub(super) fn set_creates(&mut self, path: &str, creates: i32) {
        self.znodes
            .get_mut(path)
            .expect("a znode of the test")
            .creates = creates;
    }
}

// One znode, and its stat.

/// A transaction: its number, and when it happened in milliseconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    pub(super) zxid: i64,
    pub(super) time_ms: i64,
}

/// How a znode ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lifetime {
    /// When it is deleted.
    Persistent,
    /// Also with this session.
    Ephemeral(i64),
    /// Also some time after its last child was deleted.
    Container,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Znode {
    pub(super) data: Option<Box<[u8]>>,
    pub(super) acl: ZnodeAcl,
    pub(super) lifetime: Lifetime,
    created: Stamp,
    pub(super) modified: Stamp,
    pub(super) version: i32,
    /// How many children were created so far: the number of the next sequential one. It stands
    /// still at its maximum.
    pub(super) creates: i32,
    /// The last transaction that created or deleted a child, or this znode.
    pub(super) children_zxid: i64,
    pub(super) children: BTreeSet<Box<str>>,
}

impl Znode {
    pub(super) fn new(
        change: Stamp,
        lifetime: Lifetime,
        acl: ZnodeAcl,
        data: Option<&[u8]>,
    ) -> Self {
        Self {
            data: data.map(Box::from),
            acl,
            lifetime,
            created: change,
            modified: change,
            version: 0,
            creates: 0,
            children_zxid: change.zxid,
            children: BTreeSet::new(),
        }
    }

    /// Appends what a server says about a znode besides its data: 68 bytes.
    pub(super) fn write_stat(&self, frame: &mut FrameWriter<'_>) {
        let children = int(self.children.len());
        let data = self.data.as_ref().map_or(0, |data| data.len());
        frame.long(self.created.zxid).long(self.modified.zxid);
        frame.long(self.created.time_ms).long(self.modified.time_ms);
        // The number of all creates and deletes of children.
        let children_version = self.creates.wrapping_mul(2).wrapping_sub(children);
        // No request of this server changes an ACL, whose version is the third.
        frame.int(self.version).int(children_version).int(0);
        frame.long(match self.lifetime {
            Lifetime::Persistent | Lifetime::Container => 0,
            Lifetime::Ephemeral(session) => session,
        });
        frame.int(int(data)).int(children);
        frame.long(self.children_zxid);
    }
}

fn int(length: usize) -> i32 {
    i32::try_from(length).unwrap_or(i32::MAX)
}

// Changes of the tree: one operation, or several of which all are carried out or none.

/// "Whatever version it has."
const ANY_VERSION: i32 = -1;

/// What became of an operation.
#[derive(Debug, PartialEq)]
pub(super) enum OperationEffect {
    /// With the znode, if its stat was asked for.
    Created(Box<str>, Option<Box<Znode>>),
    Deleted,
    DataSet(Box<Znode>),
    Checked,
}

/// What a change has replaced.
#[derive(Debug)]
struct Undo {
    path: Box<str>,
    /// The znode as it was, if it was there.
    former: Option<Znode>,
    /// `creates` and `children_zxid` of its parent.
    parent: (i32, i64),
}

/// A transaction that is being carried out. It counts when it is committed.
#[derive(Debug)]
pub(super) struct TreeTransaction<'a> {
    tree: &'a mut Tree,
    change: Stamp,
    /// Whose change it is.
    session: i64,
    identities: &'a [AclIdentity],
    undo: Vec<Undo>,
    events: Vec<ZnodeEvent>,
}

impl<'a> TreeTransaction<'a> {
    pub(super) fn begin(
        tree: &'a mut Tree,
        change: Stamp,
        session: i64,
        identities: &'a [AclIdentity],
    ) -> Self {
        Self {
            tree,
            change,
            session,
            identities,
            undo: Vec::new(),
            events: Vec::new(),
        }
    }

    /// What has happened, in its order.
    pub(super) fn commit(self) -> Vec<ZnodeEvent> {
        self.events
    }

    /// The tree is as it was before.
    pub(super) fn roll_back(self) {
        for Undo {
            path,
            former,
            parent: counts,
        } in self.undo.into_iter().rev()
        {
            self.tree.put(&path, former);
            let parent = self.tree.parent(&path);
            (parent.creates, parent.children_zxid) = counts;
        }
    }

    /// Carries out one operation, or refuses it and changes nothing.
    pub(super) fn run(&mut self, operation: &ZnodeWrite<'_>) -> Result<OperationEffect, Refusal> {
        match operation {
            ZnodeWrite::Create(create) => self.create(create),
            ZnodeWrite::Delete { path, version } => {
                let (parent, _) = split(path).ok_or(Refusal::BadArguments)?;
                if path.contains('\0') || RESERVED.contains(path) {
                    return Err(Refusal::BadArguments);
                }
                let parent = self.tree.znode(parent)?;
                parent.acl.check(permission::DELETE, self.identities)?;
                let znode = self.tree.znode(path)?;
                check_version(znode, *version)?;
                if !znode.children.is_empty() {
                    return Err(Refusal::NotEmpty);
                }
                self.delete(path)?;
                Ok(OperationEffect::Deleted)
            }
            ZnodeWrite::SetData {
                path,
                data,
                version,
            } => {
                check_path(path)?;
                let mut znode = self.tree.znode(path)?.clone();
                znode.acl.check(permission::WRITE, self.identities)?;
                check_version(&znode, *version)?;
                znode.data = data.map(Box::from);
                znode.modified = self.change;
                znode.version = znode.version.wrapping_add(1);
                self.put(path, Some(znode.clone()), |_| {});
                self.events
                    .push(ZnodeEvent::new(EventKind::DataChanged, path));
                Ok(OperationEffect::DataSet(Box::new(znode)))
            }
            ZnodeWrite::Check { path, version } => {
                check_path(path)?;
                let znode = self.tree.znode(path)?;
                znode.acl.check(permission::READ, self.identities)?;
                check_version(znode, *version)?;
                Ok(OperationEffect::Checked)
            }
        }
    }

    fn create(&mut self, create: &NewZnode<'_>) -> Result<OperationEffect, Refusal> {
        let lifetime = lifetime(create.flags, self.session)?;
        let (parent_path, _) = split(create.path).ok_or(Refusal::BadArguments)?;
        if create.path.contains('\0') {
            return Err(Refusal::BadArguments);
        }
        let acl = ZnodeAcl::of_request(&create.acl, self.identities)?;
        let parent = self.tree.znode(parent_path)?;
        parent.acl.check(permission::CREATE, self.identities)?;
        let is_sequential =
            create.flags & flags::SEQUENTIAL != 0 && create.flags & flags::CONTAINER == 0;
        let path = if is_sequential {
            format!("{}{:010}", create.path, parent.creates)
        } else {
            create.path.to_owned()
        };
        check_path(&path)?;
        if self.tree.znode(&path).is_ok() {
            return Err(Refusal::NodeExists);
        }
        if let Lifetime::Ephemeral(_) = parent.lifetime {
            return Err(Refusal::NoChildrenForEphemerals);
        }
        let znode = Znode::new(self.change, lifetime, acl, create.data);
        let created = create.with_stat.then(|| Box::new(znode.clone()));
        let zxid = self.change.zxid;
        self.put(&path, Some(znode), |parent| {
            // At its maximum the counter stands still, and the stat with it, as in ZooKeeper.
            if let Some(creates) = parent.creates.checked_add(1) {
                parent.creates = creates;
                parent.children_zxid = zxid;
            }
        });
        self.events.push(ZnodeEvent::new(EventKind::Created, &path));
        self.events
            .push(ZnodeEvent::new(EventKind::ChildrenChanged, parent_path));
        Ok(OperationEffect::Created(path.into(), created))
    }

    /// Deletes a znode without children, whoever wants it: the end of a session, the sweep of
    /// containers.
    pub(super) fn delete(&mut self, path: &str) -> Result<(), Refusal> {
        let (parent, _) = split(path).ok_or(Refusal::BadArguments)?;
        self.tree.znode(path)?;
        let zxid = self.change.zxid;
        self.put(path, None, |parent| parent.children_zxid = zxid);
        self.events.push(ZnodeEvent::new(EventKind::Deleted, path));
        self.events
            .push(ZnodeEvent::new(EventKind::ChildrenChanged, parent));
        Ok(())
    }

    /// Puts a znode here, or removes the one that is here. `count` changes its parent's counts.
    fn put(&mut self, path: &str, znode: Option<Znode>, count: impl FnOnce(&mut Znode)) {
        let former = self.tree.put(path, znode);
        let parent = self.tree.parent(path);
        let counts = (parent.creates, parent.children_zxid);
        count(parent);
        self.undo.push(Undo {
            path: path.into(),
            former,
            parent: counts,
        });
    }
}

fn check_version(znode: &Znode, expected: i32) -> Result<(), Refusal> {
    let is_meant = expected == ANY_VERSION || expected == znode.version;
    is_meant.then_some(()).ok_or(Refusal::BadVersion)
}

fn lifetime(flags: i32, session: i64) -> Result<Lifetime, Refusal> {
    match flags {
        flags::CONTAINER => Ok(Lifetime::Container),
        0..=3 if flags & flags::EPHEMERAL != 0 => Ok(Lifetime::Ephemeral(session)),
        0..=3 => Ok(Lifetime::Persistent),
        _ if flags::TTL.contains(&flags) => Err(Refusal::Unimplemented),
        _ => Err(Refusal::BadArguments),
    }
}

#[cfg(test)]
mod tests {
    use super::super::messages::AclEntry;
    use super::*;

    #[test]
    fn paths_are_those_of_zookeeper() {
        for path in ["/", "/a", "/a/b", "/a.b", "/...", "/ä", "/a b"] {
            assert_eq!(check_path(path), Ok(()), "{path}");
        }
        for path in [
            "",
            "a",
            "/a/",
            "//",
            "/a//b",
            "/.",
            "/a/..",
            "/./b",
            "/\0",
            "/\u{1f512}",
        ] {
            assert_eq!(check_path(path), Err(Refusal::BadArguments), "{path}");
        }
    }

    fn create(path: &str, flags: i32) -> ZnodeWrite<'_> {
        let acl = vec![AclEntry {
            permissions: 31,
            scheme: "world",
            id: "anyone",
        }];
        ZnodeWrite::Create(NewZnode {
            path,
            data: None,
            acl,
            flags,
            with_stat: false,
        })
    }

    fn run(
        tree: &mut Tree,
        zxid: i64,
        operation: &ZnodeWrite<'_>,
    ) -> Result<OperationEffect, Refusal> {
        TreeTransaction::begin(tree, Stamp { zxid, time_ms: 0 }, 7, &[]).run(operation)
    }

    #[test]
    fn what_was_undone_never_was() {
        let mut tree = Tree::new();
        run(&mut tree, 1, &create("/a", flags::CONTAINER)).unwrap();
        run(&mut tree, 2, &create("/a/b", flags::EPHEMERAL)).unwrap();
        let before = format!("{:?}", tree.znode("/a").unwrap());
        let change = Stamp {
            zxid: 3,
            time_ms: 0,
        };
        let mut transaction = TreeTransaction::begin(&mut tree, change, 7, &[]);
        for operation in [
            ZnodeWrite::SetData {
                path: "/a",
                data: Some(b"data"),
                version: 0,
            },
            ZnodeWrite::Delete {
                path: "/a/b",
                version: 0,
            },
            create("/a/c", flags::EPHEMERAL),
        ] {
            transaction.run(&operation).unwrap();
        }
        assert_eq!(transaction.tree.of_session(7), ["/a/c".into()]);
        transaction.roll_back();
        assert_eq!(format!("{:?}", tree.znode("/a").unwrap()), before);
        assert_eq!(tree.of_session(7), ["/a/b".into()]);
        assert_eq!(tree.znode("/a/c").unwrap_err(), Refusal::NoNode);
        assert!(tree.empty_containers().is_empty());
    }

    #[test]
    fn the_counter_of_sequential_znodes_stands_still_at_its_end() {
        let mut tree = Tree::new();
        run(&mut tree, 1, &create("/a", 0)).unwrap();
        tree.set_creates("/a", i32::MAX - 1);
        let mut names = Vec::new();
        for (zxid, name) in (2..).zip(["/a/x", "/a/y", "/a/z"]) {
            let outcome = run(&mut tree, zxid, &create(name, flags::SEQUENTIAL));
            let Ok(OperationEffect::Created(path, _)) = outcome else {
                panic!("{outcome:?}")
            };
            names.push(path);
        }
        assert_eq!(
            names,
            ["/a/x2147483646", "/a/y2147483647", "/a/z2147483647"].map(Box::from)
        );
    }

    #[test]
    fn negative_numbers_have_ten_characters() {
        let mut tree = Tree::new();
        run(&mut tree, 1, &create("/a", 0)).unwrap();
        tree.set_creates("/a", i32::MIN);
        let outcome = run(&mut tree, 2, &create("/a/x", flags::SEQUENTIAL));
        assert_eq!(
            outcome,
            Ok(OperationEffect::Created("/a/x-2147483648".into(), None))
        );
        tree.set_creates("/a", -7);
        let outcome = run(&mut tree, 3, &create("/a/x", flags::SEQUENTIAL));
        assert_eq!(
            outcome,
            Ok(OperationEffect::Created("/a/x-000000007".into(), None))
        );
    }
}
