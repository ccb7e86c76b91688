//! What a client and a server say to each other: requests to bytes, bytes to replies.
//!
//! ```text
//!   client                                        server
//!   ConnectRequest  ───────────────────────────▶
//!                   ◀───────────────────────────  ConnectReply
//!   a request, xid  ───────────────────────────▶
//!                   ◀───────────────────────────  Incoming::Reply, the same xid
//!                   ◀───────────────────────────  Incoming::Event, when it happens
//! ```
//!
//! Replies come in the order of the requests. Their bodies do not say of which kind they are, so a
//! [`RequestKind`] is kept for each request, and [`EnsembleReply::decode`] needs it.
//!
//! [`EnsembleRequest::form`] says what each request is on the wire.
//!
//! Ping is not among the requests: what it proves is too little (see the module `validity`).

mod reply;

use super::jute::{FrameWriter, JuteError, Reader};
use super::validity::Reach;
pub use reply::{
    EnsembleError, EnsembleReply, Incoming, Names, OperationResult, Remedy, ReplyHeader, Results,
    Stat,
};
use std::fmt;
use std::sync::Arc;

/// The numbers of the requests' types.
mod opcode {
    pub(super) const CREATE: i32 = 1;
    pub(super) const DELETE: i32 = 2;
    pub(super) const EXISTS: i32 = 3;
    pub(super) const GET_DATA: i32 = 4;
    pub(super) const SYNC: i32 = 9;
    pub(super) const GET_CHILDREN2: i32 = 12;
    pub(super) const CHECK: i32 = 13;
    pub(super) const MULTI: i32 = 14;
    pub(super) const CREATE2: i32 = 15;
    pub(super) const CREATE_CONTAINER: i32 = 19;
    pub(super) const AUTH: i32 = 100;
    pub(super) const CLOSE_SESSION: i32 = -11;
    /// In the header of a result in a multi: the operation failed. Also in the last header.
    pub(super) const ERROR: i32 = -1;
}

// The first frame of a connection, and its answer. They have no header.

/// The bytes of a session's password.
pub const PASSWORD_LENGTH: usize = 16;

/// What is not shown: credentials, or the password of a session, as whoever has it can end the
/// session.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Secret<T>(pub T);

impl<T> fmt::Debug for Secret<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

/// The only version of the protocol.
const PROTOCOL_VERSION: i32 = 0;

/// Begins a session, or continues one on a new connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectRequest {
    /// The largest zxid of any reply so far. A server that is behind it closes the connection.
    pub last_zxid: i64,
    /// The wanted timeout of the session, in milliseconds. The server has the last word.
    pub timeout_ms: i32,
    /// The session to continue; 0 for a new one.
    pub session: i64,
    /// The password of that session; zeros for a new one.
    pub password: Secret<[u8; PASSWORD_LENGTH]>,
}

impl ConnectRequest {
    /// Asks for a new session with this timeout.
    pub fn new(timeout_ms: i32, last_zxid: i64) -> Self {
        Self {
            last_zxid,
            timeout_ms,
            session: 0,
            password: Secret([0; PASSWORD_LENGTH]),
        }
    }

    /// Appends the request to `out`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let mut frame = FrameWriter::begin(out);
        frame
            .int(PROTOCOL_VERSION)
            .long(self.last_zxid)
            .int(self.timeout_ms)
            .long(self.session)
            .buffer(&self.password.0)
            // Not content with a server that may only read.
            .boolean(false);
        frame.finish().expect("45 bytes are below the limit");
    }
}

/// The answer to a [`ConnectRequest`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectReply {
    /// The granted timeout of the session, in milliseconds. Zero or less: there is no such session.
    pub timeout_ms: i32,
    pub session: i64,
    /// The password with which it can be continued.
    pub password: Secret<[u8; PASSWORD_LENGTH]>,
}

impl ConnectReply {
    /// Reads a frame. What later versions append to it is ignored, as `readOnly` was by clients
    /// from before 3.4: nothing else follows in this frame, so nothing can be misread.
    pub fn decode(frame: &[u8]) -> Result<Self, JuteError> {
        let mut reader = Reader::new(frame);
        let _version = reader.int()?;
        let timeout_ms = reader.int()?;
        let session = reader.long()?;
        let password = reader.buffer()?.unwrap_or_default();
        let password = password.try_into().map_err(|_| JuteError::Truncated)?;
        Ok(Self {
            timeout_ms,
            session,
            password: Secret(password),
        })
    }
}

// Requests to bytes: what a client asks of a server, and the operations of a transaction.

/// The xid of [`EnsembleRequest::Auth`], and of its reply.
pub const AUTH_XID: i32 = -4;

/// What a client asks of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EnsembleRequest {
    /// Creates a znode.
    Create(Create),
    /// Deletes a znode, whatever its version.
    Delete(Arc<str>),
    /// The stat of a znode. A watch, which tells of its next change, also waits for one that is not
    /// there.
    Exists { path: Arc<str>, watch: bool },
    /// The data of a znode. If there is none, no watch is left.
    GetData { path: Arc<str>, watch: bool },
    /// The names of a znode's children, in no order. A watch tells of the next change of this list.
    GetChildren { path: Arc<str>, watch: bool },
    /// Answered when the server has what its leader had committed before.
    Sync(Arc<str>),
    /// A transaction: all operations or none.
    Multi(Arc<[MultiOperation]>),
    /// Credentials of the scheme `digest`: user, colon, password. For this connection.
    Auth(Secret<Arc<[u8]>>),
    /// Ends the session, and its ephemeral znodes.
    CloseSession,
}

/// What must be known of a request when it is written and when it is answered.
#[derive(Clone, Copy, Debug)]
pub struct RequestForm {
    opcode: i32,
    pub kind: RequestKind,
    /// How far it goes. `None`: its answer says nothing about the session, as that to credentials.
    pub reach: Option<Reach>,
}

/// What must be known of a request to read its reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestKind {
    Create,
    Exists,
    GetData,
    GetChildren,
    Sync,
    /// [`EnsembleRequest::Multi`] with this number of operations.
    Multi(usize),
    /// A request whose reply has no body: delete, auth and closeSession.
    Bodiless,
}

impl EnsembleRequest {
    pub fn form(&self) -> RequestForm {
        use RequestKind::{self as Kind, Bodiless};
        let server = Some(Reach::Server);
        let leader = Some(Reach::Leader);
        let majority = Some(Reach::Majority);
        let (opcode, kind, reach) = match self {
            Self::Create(it) if it.kind == CreateKind::Container => {
                (opcode::CREATE_CONTAINER, Kind::Create, majority)
            }
            Self::Create(_) => (opcode::CREATE2, Kind::Create, majority),
            Self::Delete(_) => (opcode::DELETE, Bodiless, majority),
            Self::Exists { .. } => (opcode::EXISTS, Kind::Exists, server),
            Self::GetData { .. } => (opcode::GET_DATA, Kind::GetData, server),
            Self::GetChildren { .. } => (opcode::GET_CHILDREN2, Kind::GetChildren, server),
            Self::Sync(_) => (opcode::SYNC, Kind::Sync, leader),
            Self::Multi(parts) => (opcode::MULTI, Kind::Multi(parts.len()), majority),
            Self::Auth(_) => (opcode::AUTH, Bodiless, None),
            Self::CloseSession => (opcode::CLOSE_SESSION, Bodiless, majority),
        };
        RequestForm {
            opcode,
            kind,
            reach,
        }
    }

    /// Appends the request to `out`, unless it is longer than servers accept. The reply will have
    /// the same `xid`.
    pub fn encode(&self, xid: i32, out: &mut Vec<u8>) -> Result<(), JuteError> {
        let mut frame = FrameWriter::begin(out);
        frame.int(xid).int(self.form().opcode);
        match self {
            Self::Create(create) => create.write(&mut frame),
            Self::Delete(path) => {
                frame.text(path).int(ANY_VERSION);
            }
            Self::Exists { path, watch }
            | Self::GetData { path, watch }
            | Self::GetChildren { path, watch } => {
                frame.text(path).boolean(*watch);
            }
            Self::Sync(path) => {
                frame.text(path);
            }
            Self::Multi(operations) => {
                for operation in operations.iter() {
                    // An error of -1 in a request: none yet.
                    frame.int(operation.opcode()).boolean(false).int(-1);
                    operation.write(&mut frame);
                }
                frame.int(opcode::ERROR).boolean(true).int(-1);
            }
            Self::Auth(credentials) => {
                frame.int(0).text("digest").buffer(&credentials.0);
            }
            Self::CloseSession => {}
        }
        frame.finish()
    }
}

/// "Whatever version it has."
const ANY_VERSION: i32 = -1;

/// All rights: read 1, write 2, create 4, delete 8, admin 16.
const ALL_RIGHTS: i32 = 31;

/// What becomes of a new znode, by the flags of its create request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CreateKind {
    /// It stays until it is deleted.
    Persistent = 0,
    /// It ends with the session.
    Ephemeral = 1,
    /// It ends with the session, and ten digits of its parent's counter are appended to its name.
    EphemeralSequential = 3,
    /// The server removes it some time after its last child. From version 3.5 on.
    Container = 4,
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
    pub acl: Acl,
    pub kind: CreateKind,
}

impl Create {
    fn write(&self, frame: &mut FrameWriter<'_>) {
        let (scheme, id) = match self.acl {
            Acl::Anyone => ("world", "anyone"),
            Acl::Creator => ("auth", ""),
        };
        frame.text(&self.path).buffer(&self.data);
        frame.int(1).int(ALL_RIGHTS).text(scheme).text(id);
        frame.int(self.kind as i32);
    }
}

/// A part of a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MultiOperation {
    /// Its result has no stat. No container is created in a transaction.
    Create(Create),
    /// Deletes the znode with this path, whatever its version.
    Delete(Arc<str>),
    /// Fails if there is no znode with this path. It changes nothing, and exists in a transaction
    /// alone.
    Check(Arc<str>),
}

impl MultiOperation {
    fn opcode(&self) -> i32 {
        match self {
            Self::Create(_) => opcode::CREATE,
            Self::Delete(_) => opcode::DELETE,
            Self::Check(_) => opcode::CHECK,
        }
    }

    fn write(&self, frame: &mut FrameWriter<'_>) {
        match self {
            Self::Create(create) => create.write(frame),
            Self::Delete(path) | Self::Check(path) => {
                frame.text(path).int(ANY_VERSION);
            }
        }
    }
}

#[cfg(test)]
mod tests;
