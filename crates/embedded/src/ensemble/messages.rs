//! Bytes to requests, and replies and events to bytes. Requests are read as a server reads them: in
//! doubt as a ZooKeeper 3.8 does, which ignores what follows the last value of a request.

use super::sessions::ZnodeEvent;
use super::tree::{OperationEffect, Znode};
use redlatch_zookeeper::jute::{FRAME_MAX, FrameWriter, JuteError, Reader};
use redlatch_zookeeper::message::PASSWORD_LENGTH;
use std::cmp::Ordering;
use std::time::Duration;

/// The numbers of the requests' types, and of the operations' within a transaction.
mod opcode {
    pub(super) const CREATE: i32 = 1;
    pub(super) const DELETE: i32 = 2;
    pub(super) const EXISTS: i32 = 3;
    pub(super) const GET_DATA: i32 = 4;
    pub(super) const SET_DATA: i32 = 5;
    pub(super) const GET_CHILDREN: i32 = 8;
    pub(super) const SYNC: i32 = 9;
    pub(super) const PING: i32 = 11;
    pub(super) const GET_CHILDREN2: i32 = 12;
    pub(super) const CHECK: i32 = 13;
    pub(super) const MULTI: i32 = 14;
    pub(super) const CREATE2: i32 = 15;
    pub(super) const CREATE_CONTAINER: i32 = 19;
    pub(super) const CREATE_TTL: i32 = 21;
    pub(super) const AUTH: i32 = 100;
    pub(super) const CLOSE_SESSION: i32 = -11;
    pub(super) const ERROR: i32 = -1;
}

/// A frame of a client but for its first, behind its xid and its type.
#[derive(Debug, PartialEq)]
pub(super) enum ClientRequest<'a> {
    Write(ZnodeWrite<'a>),
    Multi(Vec<ZnodeWrite<'a>>),
    Read {
        part: Part,
        path: &'a str,
        watch: bool,
    },
    Sync(&'a str),
    Ping,
    Auth {
        scheme: &'a str,
        credentials: &'a [u8],
    },
    CloseSession,
    /// Of a type that this server does not know.
    Unknown,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Part {
    Stat,
    Data,
    /// The names of its children.
    Children,
    /// The names of its children, and its stat.
    ChildrenAndStat,
}

#[derive(Debug, PartialEq)]
pub(super) enum ZnodeWrite<'a> {
    Create(NewZnode<'a>),
    Delete {
        path: &'a str,
        version: i32,
    },
    SetData {
        path: &'a str,
        data: Option<&'a [u8]>,
        version: i32,
    },
    Check {
        path: &'a str,
        version: i32,
    },
}

#[derive(Debug, PartialEq)]
pub(super) struct NewZnode<'a> {
    pub(super) path: &'a str,
    pub(super) data: Option<&'a [u8]>,
    pub(super) acl: Vec<AclEntry<'a>>,
    pub(super) flags: i32,
    /// Is the reply to contain the znode's stat?
    pub(super) with_stat: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct AclEntry<'a> {
    pub(super) permissions: i32,
    pub(super) scheme: &'a str,
    pub(super) id: &'a str,
}

/// Flags of a znode to be created.
pub(super) mod flags {
    pub(in super::super) const EPHEMERAL: i32 = 1;
    pub(in super::super) const SEQUENTIAL: i32 = 2;
    pub(in super::super) const CONTAINER: i32 = 4;
    /// With a time to live; servers refuse it by default.
    pub(in super::super) const TTL: [i32; 2] = [5, 6];
}

impl<'a> ClientRequest<'a> {
    /// Does a request of this type get a transaction number, also if it is refused?
    pub(super) fn is_write(opcode: i32) -> bool {
        use opcode::{CHECK, CREATE, CREATE_CONTAINER, CREATE_TTL, CREATE2};
        use opcode::{DELETE, MULTI, SET_DATA};
        [
            CHECK,
            CREATE,
            CREATE_CONTAINER,
            CREATE_TTL,
            CREATE2,
            DELETE,
            MULTI,
            SET_DATA,
        ]
        .contains(&opcode)
    }

    /// Reads the body of a request of this type.
    pub(super) fn decode(opcode: i32, body: &mut Reader<'a>) -> Result<Self, Refusal> {
        Ok(match opcode {
            opcode::EXISTS => Self::read(Part::Stat, body)?,
            opcode::GET_DATA => Self::read(Part::Data, body)?,
            opcode::GET_CHILDREN => Self::read(Part::Children, body)?,
            opcode::GET_CHILDREN2 => Self::read(Part::ChildrenAndStat, body)?,
            opcode::SYNC => Self::Sync(body.text()?),
            opcode::PING => Self::Ping,
            opcode::MULTI => Self::Multi(read_operations(body)?),
            opcode::AUTH => {
                let _type = body.int()?;
                Self::Auth {
                    scheme: body.text()?,
                    credentials: body.buffer()?.unwrap_or_default(),
                }
            }
            opcode::CLOSE_SESSION => Self::CloseSession,
            opcode::CREATE_TTL => {
                NewZnode::read(true, body)?;
                let _ttl = body.long()?;
                return Err(Refusal::Unimplemented);
            }
            other => ZnodeWrite::read(other, body)?.map_or(Self::Unknown, Self::Write),
        })
    }

    /// Reads a request for this part of a znode.
    fn read(part: Part, body: &mut Reader<'a>) -> Result<Self, JuteError> {
        Ok(Self::Read {
            part,
            path: body.text()?,
            watch: body.boolean()?,
        })
    }
}

fn read_operations<'a>(body: &mut Reader<'a>) -> Result<Vec<ZnodeWrite<'a>>, Refusal> {
    let mut operations = Vec::new();
    loop {
        let opcode = body.int()?;
        let is_last = body.boolean()?;
        let _error = body.int()?;
        if is_last {
            return Ok(operations);
        }
        let mut operation = ZnodeWrite::read(opcode, body)?.ok_or(Refusal::Marshalling)?;
        if let ZnodeWrite::Create(create) = &mut operation {
            if flags::TTL.contains(&create.flags) {
                return Err(Refusal::Marshalling);
            }
            // In a transaction the flags count, not the type, and so in its results.
            create.with_stat = create.flags == flags::CONTAINER;
        }
        operations.push(operation);
    }
}

impl<'a> ZnodeWrite<'a> {
    fn read(opcode: i32, body: &mut Reader<'a>) -> Result<Option<Self>, JuteError> {
        Ok(Some(match opcode {
            opcode::CREATE => Self::Create(NewZnode::read(false, body)?),
            opcode::CREATE2 | opcode::CREATE_CONTAINER => Self::Create(NewZnode::read(true, body)?),
            opcode::DELETE => Self::Delete {
                path: body.text()?,
                version: body.int()?,
            },
            opcode::CHECK => Self::Check {
                path: body.text()?,
                version: body.int()?,
            },
            opcode::SET_DATA => {
                let path = body.text()?;
                let data = body.buffer()?;
                Self::SetData {
                    path,
                    data,
                    version: body.int()?,
                }
            }
            _ => return Ok(None),
        }))
    }
}

impl<'a> NewZnode<'a> {
    fn read(with_stat: bool, body: &mut Reader<'a>) -> Result<Self, JuteError> {
        let path = body.text()?;
        let data = body.buffer()?;
        let acl = read_acl(body)?;
        Ok(Self {
            path,
            data,
            acl,
            flags: body.int()?,
            with_stat,
        })
    }
}

/// A list that is null is an empty one.
fn read_acl<'a>(body: &mut Reader<'a>) -> Result<Vec<AclEntry<'a>>, JuteError> {
    let mut null = *body;
    if null.int()? == -1 {
        *body = null;
        return Ok(Vec::new());
    }
    let count = body.count(12)?;
    let mut entries = Vec::with_capacity(count);
    for _ in 0..count {
        entries.push(AclEntry {
            permissions: body.int()?,
            scheme: body.text()?,
            id: body.text()?,
        });
    }
    Ok(entries)
}

/// What a server sends: a frame with its length. `None` if it is longer than a client accepts.
pub(super) type Frame = Option<Vec<u8>>;

fn frame(write: impl FnOnce(&mut FrameWriter<'_>)) -> Frame {
    let mut bytes = Vec::new();
    let mut frame = FrameWriter::begin(&mut bytes);
    write(&mut frame);
    frame.finish_within(FRAME_MAX).ok()?;
    Some(bytes)
}

/// The session, its timeout and its password. `None`: there is no such session.
pub(super) fn session(session: Option<(i64, Duration, [u8; PASSWORD_LENGTH])>) -> Frame {
    let (id, timeout, password) = session.unwrap_or((0, Duration::ZERO, [0; PASSWORD_LENGTH]));
    let timeout_ms = i32::try_from(timeout.as_millis()).unwrap_or(i32::MAX);
    // The version of the protocol at first, and at last "not only for reading".
    frame(|frame| {
        _ = frame
            .int(0)
            .int(timeout_ms)
            .long(id)
            .buffer(&password)
            .boolean(false);
    })
}

/// The request with this xid was carried out. The body follows the header.
pub(super) fn done(xid: i32, zxid: i64, body: impl FnOnce(&mut FrameWriter<'_>)) -> Frame {
    frame(|frame| body(frame.int(xid).long(zxid).int(0)))
}

pub(super) fn refused(xid: i32, zxid: i64, refusal: Refusal) -> Frame {
    frame(|frame| _ = frame.int(xid).long(zxid).int(refusal as i32))
}

/// "Connected": the state of the connection that an event tells.
const CONNECTED: i32 = 3;

pub(super) fn event(event: &ZnodeEvent) -> Frame {
    // Events have this xid and this zxid.
    done(-1, -1, |frame| {
        _ = frame
            .int(event.kind as i32)
            .int(CONNECTED)
            .text(&event.path);
    })
}

impl Znode {
    pub(super) fn write(&self, part: Part, frame: &mut FrameWriter<'_>) {
        match (part, &self.data) {
            (Part::Stat, _) => {}
            (Part::Data, Some(data)) => _ = frame.buffer(data),
            (Part::Data, None) => _ = frame.int(-1),
            (Part::Children | Part::ChildrenAndStat, _) => {
                frame.int(i32::try_from(self.children.len()).unwrap_or(i32::MAX));
                self.children.iter().for_each(|name| _ = frame.text(name));
            }
        }
        if part != Part::Children {
            self.write_stat(frame);
        }
    }
}

impl OperationEffect {
    pub(super) fn write(&self, frame: &mut FrameWriter<'_>) {
        if let Self::Created(path, _) = self {
            frame.text(path);
        }
        if let Self::Created(_, Some(znode)) | Self::DataSet(znode) = self {
            znode.write_stat(frame);
        }
    }
}

/// The results of a transaction, or of one of `count` operations, of which this one was refused.
pub(super) fn write_results(
    results: &Result<Vec<OperationEffect>, (usize, Refusal)>,
    count: usize,
    frame: &mut FrameWriter<'_>,
) {
    match results {
        Ok(outcomes) => outcomes.iter().for_each(|outcome| {
            outcome.write(frame.int(result_type(outcome)).boolean(false).int(0));
        }),
        Err((failed, refusal)) => (0..count).for_each(|index| {
            let code = match index.cmp(failed) {
                // Not because of this operation.
                Ordering::Less => 0,
                Ordering::Equal => *refusal as i32,
                Ordering::Greater => Refusal::RuntimeInconsistency as i32,
            };
            frame.int(opcode::ERROR).boolean(false).int(code).int(code);
        }),
    }
    // The header behind the last result.
    frame.int(opcode::ERROR).boolean(true).int(-1);
}

/// What a result in a transaction is marked as: a create with a stat, whichever type was asked for,
/// as the one of these types that has one.
fn result_type(outcome: &OperationEffect) -> i32 {
    match outcome {
        OperationEffect::Created(_, None) => opcode::CREATE,
        OperationEffect::Created(_, Some(_)) => opcode::CREATE2,
        OperationEffect::Deleted => opcode::DELETE,
        OperationEffect::DataSet(_) => opcode::SET_DATA,
        OperationEffect::Checked => opcode::CHECK,
    }
}

// Why a request is refused.

/// The errors of this server, with their codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// Another operation of the same transaction has failed.
    RuntimeInconsistency = -2,
    /// The bytes of the request are not a request of its type.
    Marshalling = -5,
    Unimplemented = -6,
    BadArguments = -8,
    NoNode = -101,
    NoAuth = -102,
    BadVersion = -103,
    NoChildrenForEphemerals = -108,
    NodeExists = -110,
    NotEmpty = -111,
    InvalidAcl = -114,
    AuthFailed = -115,
}

impl From<JuteError> for Refusal {
    fn from(_: JuteError) -> Self {
        Self::Marshalling
    }
}
