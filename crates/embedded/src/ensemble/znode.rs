//! One znode, and its stat.

use super::acl::Acl;
use redlatch_zookeeper::jute::FrameWriter;
use std::collections::BTreeSet;

/// A transaction: its number, and when it happened in milliseconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Change {
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

#[derive(Clone, Debug)]
pub(super) struct Znode {
    pub(super) data: Option<Box<[u8]>>,
    pub(super) acl: Acl,
    pub(super) lifetime: Lifetime,
    created: Change,
    modified: Change,
    pub(super) version: i32,
    /// How many children were created so far: the number of the next sequential one. It stands
    /// still at its maximum.
    pub(super) creates: i32,
    /// The last transaction that created or deleted a child, or this znode.
    pub(super) children_zxid: i64,
    /// The names of its children.
    pub(super) children: BTreeSet<Box<str>>,
}

impl Znode {
    pub(super) fn new(change: Change, lifetime: Lifetime, acl: Acl, data: Option<&[u8]>) -> Self {
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

    /// Replaces the data. Returns what is needed to undo it.
    pub(super) fn set_data(&mut self, change: Change, data: Option<&[u8]>) -> FormerData {
        let former =
            FormerData { data: self.data.take(), modified: self.modified, version: self.version };
        self.data = data.map(Box::from);
        self.modified = change;
        self.version = self.version.wrapping_add(1);
        former
    }

    pub(super) fn restore_data(&mut self, former: FormerData) {
        self.data = former.data;
        self.modified = former.modified;
        self.version = former.version;
    }

    pub(super) fn stat(&self) -> Stat {
        let length = |length: usize| i32::try_from(length).unwrap_or(i32::MAX);
        let children = length(self.children.len());
        Stat {
            created: self.created,
            modified: self.modified,
            version: self.version,
            // The number of all creates and deletes of children.
            children_version: self.creates.wrapping_mul(2).wrapping_sub(children),
            owner: match self.lifetime {
                Lifetime::Persistent | Lifetime::Container => 0,
                Lifetime::Ephemeral(session) => session,
            },
            data_length: length(self.data.as_ref().map_or(0, |data| data.len())),
            children,
            children_zxid: self.children_zxid,
        }
    }
}

/// The data that a znode had before a change, and what the change of it has changed besides.
#[derive(Debug)]
pub(super) struct FormerData {
    data: Option<Box<[u8]>>,
    modified: Change,
    version: i32,
}

/// What a server says about a znode besides its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stat {
    created: Change,
    modified: Change,
    version: i32,
    children_version: i32,
    owner: i64,
    data_length: i32,
    children: i32,
    children_zxid: i64,
}

impl Stat {
    /// The number of children.
    pub(super) fn children(&self) -> i32 {
        self.children
    }

    /// Appends its 68 bytes.
    pub(super) fn write(&self, frame: &mut FrameWriter<'_>) {
        frame.long(self.created.zxid).long(self.modified.zxid);
        frame.long(self.created.time_ms).long(self.modified.time_ms);
        // No request of this server changes an ACL, whose version is the third.
        frame.int(self.version).int(self.children_version).int(0);
        frame.long(self.owner).int(self.data_length).int(self.children);
        frame.long(self.children_zxid);
    }
}
