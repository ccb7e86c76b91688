//! What a client and a server say to each other: requests to bytes, bytes to replies.
//!
//! ```text
//!   client                                        server
//!   ConnectRequest  ───────────────────────────▶
//!                   ◀───────────────────────────  ConnectReply
//!   Request, xid    ───────────────────────────▶
//!                   ◀───────────────────────────  Incoming::Reply, the same xid
//!                   ◀───────────────────────────  Incoming::Event, when it happens
//! ```
//!
//! Replies come in the order of the requests. Their bodies do not say of which kind they are, so a
//! [`RequestKind`] is kept for each request, and [`Reply::decode`] needs it.
//!
//! | request | type | reply body |
//! |---|---|---|
//! | [`Request::Create`] | 15, 19 for a container | path, stat |
//! | [`Request::PlainCreate`] | 1 | path |
//! | [`Request::Delete`] | 2 | none |
//! | [`Request::Exists`] | 3 | stat |
//! | [`Request::GetData`] | 4 | data, stat |
//! | [`Request::Sync`] | 9 | path |
//! | [`Request::GetChildren`] | 12 | names, stat |
//! | [`Request::Multi`] | 14 | a result for each operation |
//! | [`Request::Auth`] | 100 | none |
//! | [`Request::CloseSession`] | -11 | none |
//!
//! Ping is not among them: what it proves is too little (see the module `validity`).

mod connect;
mod incoming;
mod multi;
mod operation;
mod reply;
mod request;
mod server_error;
mod stat;

pub use connect::{ConnectReply, ConnectRequest, PASSWORD_LENGTH};
pub use incoming::{EventKind, Incoming, ReplyHeader, WatchEvent};
pub use multi::{OperationResult, Results};
pub use operation::{Acl, Create, CreateKind, Operation};
pub use reply::{Names, Reply};
pub use request::{AUTH_XID, Request, RequestKind};
pub use server_error::{Remedy, ServerError};
pub use stat::Stat;

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

#[cfg(test)]
mod tests;
