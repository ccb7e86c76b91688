//! Changes of the tree: one operation, or several of which all are carried out or none.

use super::messages::{Create, Operation, Refusal, flags};
use super::sessions::{Event, EventKind};
use super::tree::{Acl, Change, Identity, Lifetime, RESERVED, Tree, Znode};
use super::tree::{check_path, permission, split};

/// "Whatever version it has."
const ANY_VERSION: i32 = -1;

/// Who wants the change.
#[derive(Clone, Copy, Debug)]
pub(super) struct Requester<'a> {
    pub(super) session: i64,
    pub(super) identities: &'a [Identity],
}

/// What became of an operation.
#[derive(Debug, PartialEq)]
pub(super) enum Outcome {
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
pub(super) struct Transaction<'a> {
    tree: &'a mut Tree,
    change: Change,
    undo: Vec<Undo>,
    events: Vec<Event>,
}

impl<'a> Transaction<'a> {
    pub(super) fn begin(tree: &'a mut Tree, change: Change) -> Self {
        Self { tree, change, undo: Vec::new(), events: Vec::new() }
    }

    /// What has happened, in its order.
    pub(super) fn commit(self) -> Vec<Event> {
        self.events
    }

    /// The tree is as it was before.
    pub(super) fn roll_back(self) {
        for Undo { path, former, parent: counts } in self.undo.into_iter().rev() {
            self.tree.put(&path, former);
            let parent = self.tree.parent(&path);
            (parent.creates, parent.children_zxid) = counts;
        }
    }

    /// Carries out one operation, or refuses it and changes nothing.
    pub(super) fn run(
        &mut self,
        requester: Requester<'_>,
        operation: &Operation<'_>,
    ) -> Result<Outcome, Refusal> {
        match operation {
            Operation::Create(create) => self.create(requester, create),
            Operation::Delete { path, version } => {
                let (parent, _) = split(path).ok_or(Refusal::BadArguments)?;
                if path.contains('\0') || RESERVED.contains(path) {
                    return Err(Refusal::BadArguments);
                }
                let parent = self.tree.znode(parent)?;
                parent.acl.check(permission::DELETE, requester.identities)?;
                let znode = self.tree.znode(path)?;
                check_version(znode, *version)?;
                if !znode.children.is_empty() {
                    return Err(Refusal::NotEmpty);
                }
                self.delete(path)?;
                Ok(Outcome::Deleted)
            }
            Operation::SetData { path, data, version } => {
                check_path(path)?;
                let znode = self.tree.znode(path)?;
                znode.acl.check(permission::WRITE, requester.identities)?;
                check_version(znode, *version)?;
                let mut znode = znode.clone();
                znode.data = data.map(Box::from);
                znode.modified = self.change;
                znode.version = znode.version.wrapping_add(1);
                self.put(path, Some(znode.clone()), |_| {});
                self.events.push(Event::new(EventKind::DataChanged, path));
                Ok(Outcome::DataSet(Box::new(znode)))
            }
            Operation::Check { path, version } => {
                check_path(path)?;
                let znode = self.tree.znode(path)?;
                znode.acl.check(permission::READ, requester.identities)?;
                check_version(znode, *version)?;
                Ok(Outcome::Checked)
            }
        }
    }

    fn create(
        &mut self,
        requester: Requester<'_>,
        create: &Create<'_>,
    ) -> Result<Outcome, Refusal> {
        let lifetime = lifetime(create.flags, requester.session)?;
        let (parent_path, _) = split(create.path).ok_or(Refusal::BadArguments)?;
        if create.path.contains('\0') {
            return Err(Refusal::BadArguments);
        }
        let acl = Acl::of_request(&create.acl, requester.identities)?;
        let parent = self.tree.znode(parent_path)?;
        parent.acl.check(permission::CREATE, requester.identities)?;
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
                (parent.creates, parent.children_zxid) = (creates, zxid);
            }
        });
        self.events.push(Event::new(EventKind::Created, &path));
        self.events.push(Event::new(EventKind::ChildrenChanged, parent_path));
        Ok(Outcome::Created(path.into(), created))
    }

    /// Deletes a znode without children, whoever wants it: the end of a session, the sweep of
    /// containers.
    pub(super) fn delete(&mut self, path: &str) -> Result<(), Refusal> {
        let (parent, _) = split(path).ok_or(Refusal::BadArguments)?;
        self.tree.znode(path)?;
        let zxid = self.change.zxid;
        self.put(path, None, |parent| parent.children_zxid = zxid);
        self.events.push(Event::new(EventKind::Deleted, path));
        self.events.push(Event::new(EventKind::ChildrenChanged, parent));
        Ok(())
    }

    /// Puts a znode here, or removes the one that is here. `count` changes its parent's counts.
    fn put(&mut self, path: &str, znode: Option<Znode>, count: impl FnOnce(&mut Znode)) {
        let former = self.tree.put(path, znode);
        let parent = self.tree.parent(path);
        let counts = (parent.creates, parent.children_zxid);
        count(parent);
        self.undo.push(Undo { path: path.into(), former, parent: counts });
    }
}

fn check_version(znode: &Znode, expected: i32) -> Result<(), Refusal> {
    if expected == ANY_VERSION || expected == znode.version {
        Ok(())
    } else {
        Err(Refusal::BadVersion)
    }
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
    use super::*;
    use crate::ensemble::messages::AclEntry;

    fn create(path: &str, flags: i32) -> Operation<'_> {
        let acl = vec![AclEntry { permissions: 31, scheme: "world", id: "anyone" }];
        Operation::Create(Create { path, data: None, acl, flags, with_stat: false })
    }

    fn run(tree: &mut Tree, zxid: i64, operation: &Operation<'_>) -> Result<Outcome, Refusal> {
        let mut transaction = Transaction::begin(tree, Change { zxid, time_ms: 0 });
        transaction.run(Requester { session: 7, identities: &[] }, operation)
    }

    #[test]
    fn what_was_undone_never_was() {
        let mut tree = Tree::new();
        let requester = Requester { session: 7, identities: &[] };
        run(&mut tree, 1, &create("/a", flags::CONTAINER)).unwrap();
        run(&mut tree, 2, &create("/a/b", flags::EPHEMERAL)).unwrap();
        let before = format!("{:?}", tree.znode("/a").unwrap());
        let mut transaction = Transaction::begin(&mut tree, Change { zxid: 3, time_ms: 0 });
        for operation in [
            Operation::SetData { path: "/a", data: Some(b"data"), version: 0 },
            Operation::Delete { path: "/a/b", version: 0 },
            create("/a/c", flags::EPHEMERAL),
        ] {
            transaction.run(requester, &operation).unwrap();
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
            let Ok(Outcome::Created(path, _)) = outcome else { panic!("{outcome:?}") };
            names.push(path);
        }
        assert_eq!(names, ["/a/x2147483646", "/a/y2147483647", "/a/z2147483647"].map(Box::from));
    }

    #[test]
    fn negative_numbers_have_ten_characters() {
        let mut tree = Tree::new();
        run(&mut tree, 1, &create("/a", 0)).unwrap();
        tree.set_creates("/a", i32::MIN);
        let outcome = run(&mut tree, 2, &create("/a/x", flags::SEQUENTIAL));
        assert_eq!(outcome, Ok(Outcome::Created("/a/x-2147483648".into(), None)));
        tree.set_creates("/a", -7);
        let outcome = run(&mut tree, 3, &create("/a/x", flags::SEQUENTIAL));
        assert_eq!(outcome, Ok(Outcome::Created("/a/x-000000007".into(), None)));
    }
}
