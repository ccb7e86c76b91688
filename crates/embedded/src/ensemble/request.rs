//! Bytes to requests, as a server reads them: in doubt as a ZooKeeper 3.8 does, which ignores what
//! follows the last value of a request.

use super::reply::Refusal;
use redlatch_zookeeper::jute::{JuteError, Reader};

/// The numbers of the requests' types, and of the operations' within a transaction.
pub(super) mod opcode {
    pub(in super::super) const CREATE: i32 = 1;
    pub(in super::super) const DELETE: i32 = 2;
    pub(super) const EXISTS: i32 = 3;
    pub(super) const GET_DATA: i32 = 4;
    pub(in super::super) const SET_DATA: i32 = 5;
    pub(super) const GET_CHILDREN: i32 = 8;
    pub(super) const SYNC: i32 = 9;
    pub(super) const PING: i32 = 11;
    pub(super) const GET_CHILDREN2: i32 = 12;
    pub(in super::super) const CHECK: i32 = 13;
    pub(super) const MULTI: i32 = 14;
    pub(in super::super) const CREATE2: i32 = 15;
    pub(super) const CREATE_CONTAINER: i32 = 19;
    pub(super) const CREATE_TTL: i32 = 21;
    pub(super) const AUTH: i32 = 100;
    pub(super) const CLOSE_SESSION: i32 = -11;
    pub(in super::super) const ERROR: i32 = -1;
}

/// The first frame of a connection.
#[derive(Debug, PartialEq)]
pub(super) struct Connect<'a> {
    pub(super) last_zxid: i64,
    pub(super) timeout_ms: i32,
    pub(super) session: i64,
    pub(super) password: &'a [u8],
}

impl<'a> Connect<'a> {
    pub(super) fn decode(frame: &'a [u8]) -> Result<Self, JuteError> {
        let mut reader = Reader::new(frame);
        let _version = reader.int()?;
        Ok(Self {
            last_zxid: reader.long()?,
            timeout_ms: reader.int()?,
            session: reader.long()?,
            password: reader.buffer()?.unwrap_or_default(),
        })
    }
}

/// Any other frame of a client.
#[derive(Debug, PartialEq)]
pub(super) enum Request<'a> {
    Write(Operation<'a>),
    Multi(Vec<Operation<'a>>),
    Read(Read<'a>),
    Sync(&'a str),
    Ping,
    Auth { scheme: &'a str, credentials: &'a [u8] },
    CloseSession,
}

/// What is asked about a znode.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Read<'a> {
    pub(super) what: Part,
    pub(super) path: &'a str,
    pub(super) watch: bool,
}

/// A part of a znode.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Part {
    Stat,
    Data,
    /// The names of its children.
    Children,
    /// The names of its children, and its stat.
    ChildrenAndStat,
}

/// What changes a znode.
#[derive(Debug, PartialEq)]
pub(super) enum Operation<'a> {
    Create(Create<'a>),
    Delete { path: &'a str, version: i32 },
    SetData { path: &'a str, data: Option<&'a [u8]>, version: i32 },
    Check { path: &'a str, version: i32 },
}

/// Creates a znode.
#[derive(Debug, PartialEq)]
pub(super) struct Create<'a> {
    pub(super) path: &'a str,
    pub(super) data: Option<&'a [u8]>,
    pub(super) acl: Vec<AclEntry<'a>>,
    pub(super) flags: i32,
    /// Is the reply to contain the znode's stat?
    pub(super) with_stat: bool,
}

/// One entry of an access control list.
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

/// The xid of a request and its type, which are in front of every request but the first.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct RequestHeader {
    pub(super) xid: i32,
    opcode: i32,
}

impl RequestHeader {
    /// Reads the header, and leaves the reader at the body.
    pub(super) fn read(reader: &mut Reader<'_>) -> Result<Self, JuteError> {
        Ok(Self { xid: reader.int()?, opcode: reader.int()? })
    }

    /// Is it a request that gets a transaction number, also if it is refused?
    pub(super) fn is_write(self) -> bool {
        use opcode::{CHECK, CREATE, CREATE_CONTAINER, CREATE_TTL, CREATE2};
        use opcode::{DELETE, MULTI, SET_DATA};
        [CHECK, CREATE, CREATE_CONTAINER, CREATE_TTL, CREATE2, DELETE, MULTI, SET_DATA]
            .contains(&self.opcode)
    }
}

impl<'a> Request<'a> {
    /// Reads the body behind this header. `None`: the type is not known.
    pub(super) fn decode(
        header: RequestHeader,
        body: &mut Reader<'a>,
    ) -> Result<Option<Self>, Refusal> {
        let mut read = |what| -> Result<Self, JuteError> {
            Ok(Self::Read(Read { what, path: body.text()?, watch: body.boolean()? }))
        };
        Ok(Some(match header.opcode {
            opcode::EXISTS => read(Part::Stat)?,
            opcode::GET_DATA => read(Part::Data)?,
            opcode::GET_CHILDREN => read(Part::Children)?,
            opcode::GET_CHILDREN2 => read(Part::ChildrenAndStat)?,
            opcode::SYNC => Self::Sync(body.text()?),
            opcode::PING => Self::Ping,
            opcode::MULTI => Self::Multi(read_operations(body)?),
            opcode::AUTH => {
                let _type = body.int()?;
                Self::Auth { scheme: body.text()?, credentials: body.buffer()?.unwrap_or_default() }
            }
            opcode::CLOSE_SESSION => Self::CloseSession,
            opcode::CREATE_TTL => {
                Create::read(true, body)?;
                let _ttl = body.long()?;
                return Err(Refusal::Unimplemented);
            }
            other => match Operation::read(other, body)? {
                Some(operation) => Self::Write(operation),
                None => return Ok(None),
            },
        }))
    }
}

fn read_operations<'a>(body: &mut Reader<'a>) -> Result<Vec<Operation<'a>>, Refusal> {
    let mut operations = Vec::new();
    loop {
        let opcode = body.int()?;
        let is_last = body.boolean()?;
        let _error = body.int()?;
        if is_last {
            return Ok(operations);
        }
        let mut operation = Operation::read(opcode, body)?.ok_or(Refusal::Marshalling)?;
        if let Operation::Create(create) = &mut operation {
            if flags::TTL.contains(&create.flags) {
                return Err(Refusal::Marshalling);
            }
            // In a transaction the flags count, not the type, and so in its results.
            create.with_stat = create.flags == flags::CONTAINER;
        }
        operations.push(operation);
    }
}

impl<'a> Operation<'a> {
    fn read(opcode: i32, body: &mut Reader<'a>) -> Result<Option<Self>, JuteError> {
        Ok(Some(match opcode {
            opcode::CREATE => Self::Create(Create::read(false, body)?),
            opcode::CREATE2 | opcode::CREATE_CONTAINER => Self::Create(Create::read(true, body)?),
            opcode::DELETE => Self::Delete { path: body.text()?, version: body.int()? },
            opcode::CHECK => Self::Check { path: body.text()?, version: body.int()? },
            opcode::SET_DATA => {
                let (path, data) = (body.text()?, body.buffer()?);
                Self::SetData { path, data, version: body.int()? }
            }
            _ => return Ok(None),
        }))
    }
}

impl<'a> Create<'a> {
    fn read(with_stat: bool, body: &mut Reader<'a>) -> Result<Self, JuteError> {
        let path = body.text()?;
        let data = body.buffer()?;
        let acl = read_acl(body)?;
        Ok(Self { path, data, acl, flags: body.int()?, with_stat })
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
    let mut entry =
        || Ok(AclEntry { permissions: body.int()?, scheme: body.text()?, id: body.text()? });
    (0..count).map(|_| entry()).collect()
}
