//! Requests of any kind to bytes, also such as the library never sends, and replies to text.

#![expect(clippy::unwrap_used, reason = "what cannot be read fails the test")]

use redlatch_zookeeper::jute::{FrameWriter, JuteError, Reader};

pub(super) const ANYONE: &[(i32, &str, &str)] = &[(31, "world", "anyone")];
pub(super) const CREATOR: &[(i32, &str, &str)] = &[(31, "auth", "")];

pub(super) const CREATE: i32 = 1;
pub(super) const GET_DATA: i32 = 4;
pub(super) const GET_CHILDREN: i32 = 8;
pub(super) const GET_CHILDREN2: i32 = 12;
pub(super) const EXISTS: i32 = 3;
pub(super) const CREATE2: i32 = 15;
pub(super) const CREATE_TTL: i32 = 21;
pub(super) const CREATE_CONTAINER: i32 = 19;

/// The access control list of a znode to be created.
pub(super) type Acl = &'static [(i32, &'static str, &'static str)];

#[derive(Clone, Debug)]
pub(super) enum Request {
    Create {
        opcode: i32,
        path: String,
        data: Option<Vec<u8>>,
        acl: Acl,
        flags: i32,
    },
    Delete {
        path: String,
        version: i32,
    },
    /// Exists, getData, getChildren, getChildren2.
    Read {
        opcode: i32,
        path: String,
        watch: bool,
    },
    SetData {
        path: String,
        data: Option<Vec<u8>>,
        version: i32,
    },
    Check {
        path: String,
        version: i32,
    },
    Sync(String),
    Ping,
    Multi(Vec<Request>),
    Auth {
        scheme: &'static str,
        credentials: &'static [u8],
    },
    Close,
    /// A request of this type with this body.
    Bytes(i32, Vec<u8>),
}

pub(super) fn create(opcode: i32, path: &str, flags: i32) -> Request {
    let data = Some(path.as_bytes().to_vec());
    Request::Create {
        opcode,
        path: path.to_owned(),
        data,
        acl: ANYONE,
        flags,
    }
}

pub(super) fn read(opcode: i32, path: &str, watch: bool) -> Request {
    Request::Read {
        opcode,
        path: path.to_owned(),
        watch,
    }
}

pub(super) fn delete(path: &str, version: i32) -> Request {
    Request::Delete {
        path: path.to_owned(),
        version,
    }
}

pub(super) fn set_data(path: &str, data: &[u8], version: i32) -> Request {
    Request::SetData {
        path: path.to_owned(),
        data: Some(data.to_vec()),
        version,
    }
}

pub(super) fn check(path: &str, version: i32) -> Request {
    Request::Check {
        path: path.to_owned(),
        version,
    }
}

impl Request {
    fn opcode(&self) -> i32 {
        match self {
            Self::Create { opcode, .. } | Self::Read { opcode, .. } => *opcode,
            Self::Bytes(opcode, _) => *opcode,
            Self::Delete { .. } => 2,
            Self::SetData { .. } => 5,
            Self::Sync(_) => 9,
            Self::Ping => 11,
            Self::Check { .. } => 13,
            Self::Multi(_) => 14,
            Self::Auth { .. } => 100,
            Self::Close => -11,
        }
    }

    /// The frame with its length. The xid is that of the type, if this has one of its own.
    pub(super) fn encode(&self, xid: i32) -> Vec<u8> {
        let xid = match self {
            Self::Ping => -2,
            Self::Auth { .. } => -4,
            _ => xid,
        };
        if let Self::Bytes(opcode, body) = self {
            let length = i32::try_from(body.len()).unwrap() + 8;
            let header = [length, xid, *opcode].map(i32::to_be_bytes);
            return [&header.concat()[..], body].concat();
        }
        let mut bytes = Vec::new();
        let mut frame = FrameWriter::begin(&mut bytes);
        frame.int(xid).int(self.opcode());
        self.write(&mut frame);
        frame.finish_within(usize::MAX).unwrap();
        bytes
    }

    fn write(&self, frame: &mut FrameWriter<'_>) {
        match self {
            Self::Create {
                opcode,
                path,
                data,
                acl,
                flags,
            } => {
                write_data(data.as_deref(), frame.text(path));
                frame.int(i32::try_from(acl.len()).unwrap());
                for (permissions, scheme, id) in *acl {
                    frame.int(*permissions).text(scheme).text(id);
                }
                frame.int(*flags);
                if *opcode == CREATE_TTL {
                    frame.long(1_000);
                }
            }
            Self::Delete { path, version } | Self::Check { path, version } => {
                frame.text(path).int(*version);
            }
            Self::Read { path, watch, .. } => {
                frame.text(path).boolean(*watch);
            }
            Self::SetData {
                path,
                data,
                version,
            } => {
                write_data(data.as_deref(), frame.text(path)).int(*version);
            }
            Self::Sync(path) => {
                frame.text(path);
            }
            Self::Multi(operations) => {
                for operation in operations {
                    frame.int(operation.opcode()).boolean(false).int(-1);
                    operation.write(frame);
                }
                frame.int(-1).boolean(true).int(-1);
            }
            Self::Auth {
                scheme,
                credentials,
            } => {
                frame.int(0).text(scheme).buffer(credentials);
            }
            Self::Bytes(..) | Self::Ping | Self::Close => {}
        }
    }

    /// The body of a reply without an error, as text. The session `own` is called so.
    pub(super) fn describe(&self, body: &[u8], own: i64) -> Result<String, JuteError> {
        let mut reader = Reader::new(body);
        let text = match self {
            Self::Multi(_) => {
                let mut text = String::new();
                while let Some(result) = describe_result(&mut reader, own)? {
                    text += &format!("[{result}] ");
                }
                text
            }
            _ => describe_body(self.opcode(), &mut reader, own)?,
        };
        reader.finish()?;
        Ok(text)
    }
}

fn write_data<'a, 'b>(
    data: Option<&[u8]>,
    frame: &'a mut FrameWriter<'b>,
) -> &'a mut FrameWriter<'b> {
    match data {
        Some(data) => frame.buffer(data),
        None => frame.int(-1),
    }
}

fn describe_body(opcode: i32, body: &mut Reader<'_>, own: i64) -> Result<String, JuteError> {
    Ok(match opcode {
        CREATE => body.text()?.to_owned(),
        9 => format!("synced {}", body.text()?),
        CREATE2 | CREATE_CONTAINER => format!("{} {}", body.text()?, stat(body, own)?),
        EXISTS | 5 => stat(body, own)?,
        GET_DATA => format!("{:?} {}", body.buffer()?, stat(body, own)?),
        GET_CHILDREN => format!("{:?}", names(body)?),
        GET_CHILDREN2 => format!("{:?} {}", names(body)?, stat(body, own)?),
        _ => String::new(),
    })
}

fn describe_result(body: &mut Reader<'_>, own: i64) -> Result<Option<String>, JuteError> {
    let opcode = body.int()?;
    let is_last = body.boolean()?;
    let error = body.int()?;
    if is_last {
        return Ok(None);
    }
    let rest = match opcode {
        -1 => format!("error {}", body.int()?),
        _ => describe_body(opcode, body, own)?,
    };
    Ok(Some(format!("{opcode} {error} {rest}")))
}

/// Servers return them in no order.
fn names<'a>(body: &mut Reader<'a>) -> Result<Vec<&'a str>, JuteError> {
    let count = body.count(4)?;
    let names: Result<Vec<_>, _> = (0..count).map(|_| body.text()).collect();
    let mut names = names?;
    names.sort_unstable();
    Ok(names)
}

/// All but the times, which must be of this century.
fn stat(body: &mut Reader<'_>, own: i64) -> Result<String, JuteError> {
    let created = body.long()?;
    let modified = body.long()?;
    for time in [body.long()?, body.long()?] {
        assert!(time == 0 || time / 1_000 > 946_684_800, "{time}");
    }
    let version = body.int()?;
    let children_version = body.int()?;
    let acl_version = body.int()?;
    let owner = match body.long()? {
        0 => "nobody",
        owner if owner == own => "own",
        _ => "another",
    };
    let length = body.int()?;
    let children = body.int()?;
    let changed = body.long()?;
    Ok(format!(
        "(zxids {created} {modified} {changed}, versions {version} {children_version} \
         {acl_version}, of {owner}, {length} bytes, {children} children)"
    ))
}
