//! Bytes to replies: what a frame from the server is, the reply to a request or news of a watch,
//! and what the body of a reply says.

use super::{RequestKind, opcode};
use crate::jute::{JuteError, Reader};
use std::fmt;

/// The body of a reply without an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EnsembleReply<'a> {
    /// A znode was created at this path, which has its number if it is sequential.
    Created { path: &'a str, stat: Stat },
    /// It exists.
    Found(Stat),
    /// Null is empty.
    Data { data: &'a [u8], stat: Stat },
    /// The stat is that of their parent.
    Children { names: Names<'a>, stat: Stat },
    /// The server has what its leader had.
    Synced,
    /// What became of a transaction.
    Results(Results<'a>),
    /// The request was carried out, and there is nothing to say about it.
    Done,
}

impl<'a> EnsembleReply<'a> {
    /// Reads the body of the reply to a request of this kind.
    pub fn decode(kind: RequestKind, body: &'a [u8]) -> Result<Self, JuteError> {
        let mut reader = Reader::new(body);
        let reply = match kind {
            RequestKind::Create => Self::Created {
                path: reader.text()?,
                stat: Stat::read(&mut reader)?,
            },
            RequestKind::Exists => Self::Found(Stat::read(&mut reader)?),
            RequestKind::GetData => Self::Data {
                data: reader.buffer()?.unwrap_or_default(),
                stat: Stat::read(&mut reader)?,
            },
            RequestKind::GetChildren => Self::Children {
                names: Names::read(&mut reader)?,
                stat: Stat::read(&mut reader)?,
            },
            RequestKind::Sync => {
                reader.text()?;
                Self::Synced
            }
            RequestKind::Multi(count) => Self::Results(Results::read(&mut reader, count)?),
            RequestKind::Bodiless => Self::Done,
        };
        reader.finish()?;
        Ok(reply)
    }
}

/// The names of children, in no order. Others may have chosen them, so they are bytes. They were
/// checked when the reply was decoded, and are read again, not copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Names<'a> {
    bytes: &'a [u8],
    pub count: usize,
}

impl<'a> Names<'a> {
    fn read(reader: &mut Reader<'a>) -> Result<Self, JuteError> {
        // The length of a name takes four bytes.
        let count = reader.count(4)?;
        let start = reader.rest();
        for _ in 0..count {
            reader.raw_text()?;
        }
        Ok(Self {
            bytes: &start[..start.len() - reader.rest().len()],
            count,
        })
    }

    pub fn iter(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let mut reader = Reader::new(self.bytes);
        // The errors were returned when the reply was decoded.
        (0..self.count).map_while(move |_| reader.raw_text().ok())
    }
}

/// The xid of watch events.
const EVENT_XID: i32 = -1;

/// A frame behind the connect reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Incoming<'a> {
    /// The reply to the oldest request without one. The body is for [`EnsembleReply::decode`];
    /// there is nothing to read if the header has an error.
    Reply { header: ReplyHeader, body: &'a [u8] },
    /// A watch has ended, because what it waited for has happened at this path. What that was is
    /// not kept: whoever watches looks again.
    Event { path: &'a str },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplyHeader {
    /// The xid of the request.
    pub xid: i32,
    /// For a write its transaction; otherwise the last one that the server knew.
    pub zxid: i64,
    /// Why it was not carried out.
    pub error: Option<EnsembleError>,
}

impl<'a> Incoming<'a> {
    /// Reads the header of a frame, and all of an event.
    pub fn decode(frame: &'a [u8]) -> Result<Self, JuteError> {
        let mut reader = Reader::new(frame);
        let xid = reader.int()?;
        let zxid = reader.long()?;
        let error = EnsembleError::of_code(reader.int()?);
        if xid != EVENT_XID {
            let header = ReplyHeader { xid, zxid, error };
            return Ok(Self::Reply {
                header,
                body: reader.rest(),
            });
        }
        let _kind = reader.int()?;
        // The state of the connection, which is "connected": otherwise no event would arrive.
        let _state = reader.int()?;
        let path = reader.text()?;
        reader.finish()?;
        Ok(Self::Event { path })
    }
}

/// What became of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OperationResult<'a> {
    /// The znode was created, with this path.
    Created(&'a str),
    /// The delete or check was carried out.
    Done,
    /// The transaction was not carried out. `None`: not because of this operation.
    Failed(Option<EnsembleError>),
}

/// The results of a transaction in the order of its operations. They were checked when the reply
/// was decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Results<'a> {
    bytes: &'a [u8],
    count: usize,
}

impl<'a> Results<'a> {
    /// Reads `count` results and the header behind them.
    fn read(reader: &mut Reader<'a>, count: usize) -> Result<Self, JuteError> {
        let start = reader.rest();
        let mut failed = 0;
        for _ in 0..count {
            let result = read_one(reader)?.ok_or(JuteError::BadResults)?;
            failed += usize::from(matches!(result, OperationResult::Failed(_)));
        }
        // All or none.
        if read_one(reader)?.is_some() || (failed != 0 && failed != count) {
            return Err(JuteError::BadResults);
        }
        Ok(Self {
            bytes: &start[..start.len() - reader.rest().len()],
            count,
        })
    }

    pub fn iter(&self) -> impl Iterator<Item = OperationResult<'a>> + use<'a> {
        let mut reader = Reader::new(self.bytes);
        // The errors were returned when the reply was decoded.
        (0..self.count).map_while(move |_| read_one(&mut reader).ok().flatten())
    }

    /// The error that stopped the transaction; `None` if it was carried out.
    pub fn error(&self) -> Option<EnsembleError> {
        self.failure().map(|(_, error)| error)
    }

    /// The same with the place of the operation that has failed, from 0. If no operation says why,
    /// it is the first.
    pub fn failure(&self) -> Option<(usize, EnsembleError)> {
        let mut failed = false;
        for (place, result) in self.iter().enumerate() {
            match result {
                OperationResult::Failed(Some(EnsembleError::RuntimeInconsistency) | None) => {
                    failed = true;
                }
                OperationResult::Failed(Some(error)) => return Some((place, error)),
                OperationResult::Created(_) | OperationResult::Done => {}
            }
        }
        failed.then_some((0, EnsembleError::RuntimeInconsistency))
    }
}

/// One result; `None` at the header behind the last one.
fn read_one<'a>(reader: &mut Reader<'a>) -> Result<Option<OperationResult<'a>>, JuteError> {
    let code = reader.int()?;
    let is_last = reader.boolean()?;
    let _error = reader.int()?;
    if is_last {
        return Ok(None);
    }
    Ok(Some(match code {
        opcode::CREATE => OperationResult::Created(reader.text()?),
        opcode::DELETE | opcode::CHECK => OperationResult::Done,
        opcode::ERROR => OperationResult::Failed(EnsembleError::of_code(reader.int()?)),
        _ => return Err(JuteError::BadResults),
    }))
}

/// The stat of a znode: 68 bytes, of which these fields are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stat {
    /// The transaction that created it.
    pub created_by: i64,
    /// When that was, in milliseconds since 1970, by the leader's clock.
    pub created_at_ms: i64,
    /// The session with which it ends; 0 if it is not ephemeral.
    pub owner: i64,
    /// The number of its children.
    pub children: i32,
}

impl Stat {
    fn read(reader: &mut Reader<'_>) -> Result<Self, JuteError> {
        let created_by = reader.long()?;
        let _modified_by = reader.long()?;
        let created_at_ms = reader.long()?;
        let _modified_at_ms = reader.long()?;
        let _versions = (reader.int()?, reader.int()?, reader.int()?);
        let owner = reader.long()?;
        let _data_length = reader.int()?;
        let children = reader.int()?;
        let _children_changed_by = reader.long()?;
        Ok(Self {
            created_by,
            created_at_ms,
            owner,
            children,
        })
    }
}

// The errors of servers: their codes, and what helps.

/// Why a server did not carry out a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EnsembleError {
    /// -101: the znode, or the parent of one to be created, is not there.
    NoNode,
    /// -110: it exists already.
    NodeExists,
    /// -111: it has children, so it is not deleted.
    NotEmpty,
    /// -112: the session has ended.
    SessionExpired,
    /// -12: the session is not known.
    UnknownSession,
    /// -118: the session has a later connection to another server.
    SessionMoved,
    /// -102: the credentials do not suffice.
    NoAuth,
    /// -114: the ACL is refused.
    InvalidAcl,
    /// -115: the credentials are wrong.
    AuthFailed,
    /// -6: the server does not know this request: one before 3.5, or it is switched off.
    Unimplemented,
    /// -119: the server has no majority, and can only be read.
    NotReadOnly,
    /// -120: the session is known to this server alone, and has no ephemeral znodes.
    EphemeralOnLocalSession,
    /// -125: a quota is used up.
    QuotaExceeded,
    /// -127: the server has too many requests.
    ThrottledOperation,
    /// -122: the server did not manage it in time.
    RequestTimeout,
    /// -2, in the results of a transaction: another operation failed, or the server is in trouble.
    RuntimeInconsistency,
    /// Any other code.
    Other(i32),
}

/// What helps against an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remedy {
    /// It says something about a znode: the request's author knows what follows.
    Author,
    /// A new session. All znodes of the old one are gone, or about to be.
    NewSession,
    /// A new connection to the same or another server.
    Reconnect,
    /// Another configuration. Trying again is no use.
    Configure,
    /// Patience: the same request later.
    Wait,
}

/// The codes with their errors, names, and what helps.
const TABLE: [(i32, EnsembleError, &str, Remedy); 16] = [
    (-101, EnsembleError::NoNode, "NoNode", Remedy::Author),
    (
        -110,
        EnsembleError::NodeExists,
        "NodeExists",
        Remedy::Author,
    ),
    (-111, EnsembleError::NotEmpty, "NotEmpty", Remedy::Author),
    (
        -112,
        EnsembleError::SessionExpired,
        "SessionExpired",
        Remedy::NewSession,
    ),
    (
        -12,
        EnsembleError::UnknownSession,
        "UnknownSession",
        Remedy::NewSession,
    ),
    (
        -118,
        EnsembleError::SessionMoved,
        "SessionMoved",
        Remedy::Reconnect,
    ),
    (-102, EnsembleError::NoAuth, "NoAuth", Remedy::Configure),
    (
        -114,
        EnsembleError::InvalidAcl,
        "InvalidACL",
        Remedy::Configure,
    ),
    (
        -115,
        EnsembleError::AuthFailed,
        "AuthFailed",
        Remedy::Configure,
    ),
    (
        -6,
        EnsembleError::Unimplemented,
        "Unimplemented",
        Remedy::Configure,
    ),
    (
        -119,
        EnsembleError::NotReadOnly,
        "NotReadOnly",
        Remedy::Reconnect,
    ),
    (
        -120,
        EnsembleError::EphemeralOnLocalSession,
        "EphemeralOnLocalSession",
        Remedy::Reconnect,
    ),
    (
        -125,
        EnsembleError::QuotaExceeded,
        "QuotaExceeded",
        Remedy::Wait,
    ),
    (
        -127,
        EnsembleError::ThrottledOperation,
        "ThrottledOp",
        Remedy::Wait,
    ),
    (
        -122,
        EnsembleError::RequestTimeout,
        "RequestTimeout",
        Remedy::Wait,
    ),
    (
        -2,
        EnsembleError::RuntimeInconsistency,
        "RuntimeInconsistency",
        Remedy::Author,
    ),
];

impl EnsembleError {
    /// The error with this code; `None` for 0, which is success.
    pub fn of_code(code: i32) -> Option<Self> {
        if code == 0 {
            return None;
        }
        let known = TABLE.iter().find(|(number, ..)| *number == code);
        Some(known.map_or(Self::Other(code), |(_, error, ..)| *error))
    }

    pub fn remedy(self) -> Remedy {
        let known = TABLE.iter().find(|(_, error, ..)| *error == self);
        known.map_or(Remedy::Wait, |(.., remedy)| *remedy)
    }
}

/// ZooKeeper's name for it and its code.
impl fmt::Display for EnsembleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Self::Other(code) = self {
            return write!(f, "error {code}");
        }
        let known = TABLE.iter().find(|(_, error, ..)| error == self);
        let (code, _, name, _) = known.expect("every other error is in the table");
        write!(f, "{name} ({code})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_one_error_and_is_shown_with_it() {
        for (code, error, name, _) in TABLE {
            assert_eq!(EnsembleError::of_code(code), Some(error));
            assert_eq!(error.to_string(), format!("{name} ({code})"));
        }
        assert_eq!(EnsembleError::of_code(0), None);
        assert_eq!(EnsembleError::of_code(-4), Some(EnsembleError::Other(-4)));
        assert_eq!(EnsembleError::Other(-4).to_string(), "error -4");
    }

    #[test]
    fn only_errors_that_another_session_would_not_have_end_the_session() {
        let ends = TABLE
            .iter()
            .filter(|(.., remedy)| *remedy == Remedy::NewSession);
        let names: Vec<&str> = ends.map(|(_, _, name, _)| *name).collect();
        assert_eq!(names, ["SessionExpired", "UnknownSession"]);
    }
}
