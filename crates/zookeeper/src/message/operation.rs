//! What changes a znode: alone, or as a part of a transaction.

use super::opcode;
use crate::jute::FrameWriter;
use std::sync::Arc;

/// "Whatever version it has."
const ANY_VERSION: i32 = -1;

/// All rights: read 1, write 2, create 4, delete 8, admin 16.
const ALL_RIGHTS: i32 = 31;

/// What becomes of a new znode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CreateKind {
    /// It stays until it is deleted.
    Persistent,
    /// It ends with the session.
    Ephemeral,
    /// It ends with the session, and ten digits of its parent's counter are appended to its name.
    EphemeralSequential,
    /// The server removes it some time after its last child. From version 3.5 on.
    Container,
}

impl CreateKind {
    fn flags(self) -> i32 {
        match self {
            Self::Persistent => 0,
            Self::Ephemeral => 1,
            Self::EphemeralSequential => 3,
            Self::Container => 4,
        }
    }
}

/// Who has rights to a new znode: all of them, as nobody has a part of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Acl {
    /// Every client: `world:anyone`.
    Anyone,
    /// Clients with the credentials of the one that creates it: `auth`.
    Creator,
}

/// Creates a znode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Create {
    /// Its path; of a sequential one without the number.
    pub path: Arc<str>,
    pub data: Arc<[u8]>,
    /// Who has rights to it.
    pub acl: Acl,
    /// What becomes of it.
    pub kind: CreateKind,
}

impl Create {
    /// Creates a znode of this kind.
    pub fn new(path: Arc<str>, data: Arc<[u8]>, acl: Acl, kind: CreateKind) -> Self {
        Self { path, data, acl, kind }
    }

    /// The type of this request: containers have one of their own.
    pub(super) fn opcode(&self) -> i32 {
        match self.kind {
            CreateKind::Container => opcode::CREATE_CONTAINER,
            _ => opcode::CREATE2,
        }
    }

    pub(super) fn write(&self, frame: &mut FrameWriter<'_>) {
        let (scheme, id) = match self.acl {
            Acl::Anyone => ("world", "anyone"),
            Acl::Creator => ("auth", ""),
        };
        frame.text(&self.path).buffer(&self.data);
        frame.int(1).int(ALL_RIGHTS).text(scheme).text(id);
        frame.int(self.kind.flags());
    }
}

/// A part of a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Creates a znode.
    Create(Create),
    /// The same, as every server knows it; those from 3.5 on answer both alike. Not for containers.
    PlainCreate(Create),
    /// Deletes the znode with this path, whatever its version.
    Delete(Arc<str>),
    /// Fails if there is no znode with this path. It changes nothing, and exists in a transaction
    /// alone.
    Check(Arc<str>),
}

impl Operation {
    pub(super) fn opcode(&self) -> i32 {
        match self {
            Self::Create(create) => create.opcode(),
            Self::PlainCreate(_) => opcode::CREATE,
            Self::Delete(_) => opcode::DELETE,
            Self::Check(_) => opcode::CHECK,
        }
    }

    pub(super) fn write(&self, frame: &mut FrameWriter<'_>) {
        match self {
            Self::Create(create) | Self::PlainCreate(create) => create.write(frame),
            Self::Delete(path) | Self::Check(path) => {
                frame.text(path).int(ANY_VERSION);
            }
        }
    }
}
