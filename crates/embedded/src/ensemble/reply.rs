//! Replies and events to bytes.

use super::request::{Part, opcode};
use super::sessions::Event;
use super::transaction::Outcome;
use super::tree::Znode;
use redlatch_zookeeper::jute::{FRAME_MAX, FrameWriter, JuteError};
use redlatch_zookeeper::message::PASSWORD_LENGTH;
use std::time::Duration;

/// The xid and the zxid of events.
const EVENT: (i32, i64) = (-1, -1);

/// "Connected": the state of the connection that an event tells.
const CONNECTED: i32 = 3;

/// What a server sends: one frame.
#[derive(Debug)]
pub(super) enum Reply<'a> {
    /// The session, its timeout and its password. `None`: there is no such session.
    Session(Option<(i64, Duration, [u8; PASSWORD_LENGTH])>),
    /// A request was carried out.
    Done(ReplyHeader, Body<'a>),
    /// A request was refused.
    Refused(ReplyHeader, Refusal),
    Event(&'a Event),
}

/// The header of a reply, but for the error.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReplyHeader {
    pub(super) xid: i32,
    pub(super) zxid: i64,
}

/// What follows the header.
#[derive(Debug)]
pub(super) enum Body<'a> {
    Empty,
    Path(&'a str),
    Znode(Part, &'a Znode),
    Outcome(&'a Outcome),
    /// The results of a transaction.
    Outcomes(&'a [Outcome]),
    /// Its first operation that was refused by its index, why, and the number of operations.
    Failed(usize, Refusal, usize),
}

impl Reply<'_> {
    /// The frame with its length. `None` if it is longer than a client accepts.
    pub(super) fn encode(&self) -> Option<Vec<u8>> {
        let mut bytes = Vec::new();
        let mut frame = FrameWriter::begin(&mut bytes);
        match self {
            Self::Session(session) => write_session(session.as_ref(), &mut frame),
            Self::Done(header, body) => {
                frame.int(header.xid).long(header.zxid).int(0);
                body.write(&mut frame);
            }
            Self::Refused(header, refusal) => {
                frame.int(header.xid).long(header.zxid).int(refusal.code());
            }
            Self::Event(event) => {
                let (xid, zxid) = EVENT;
                frame.int(xid).long(zxid).int(0);
                frame.int(event.kind as i32).int(CONNECTED).text(&event.path);
            }
        }
        frame.finish_within(FRAME_MAX).ok()?;
        Some(bytes)
    }
}

fn write_session(
    session: Option<&(i64, Duration, [u8; PASSWORD_LENGTH])>,
    frame: &mut FrameWriter<'_>,
) {
    let gone = (0, Duration::ZERO, [0; PASSWORD_LENGTH]);
    let (id, timeout, password) = session.unwrap_or(&gone);
    let timeout_ms = i32::try_from(timeout.as_millis()).unwrap_or(i32::MAX);
    // The version of the protocol at first, and at last "not only for reading".
    frame.int(0).int(timeout_ms).long(*id).buffer(password).boolean(false);
}

impl Body<'_> {
    fn write(&self, frame: &mut FrameWriter<'_>) {
        match self {
            Self::Empty => {}
            Self::Path(path) => {
                frame.text(path);
            }
            Self::Znode(part, znode) => write_znode(*part, znode, frame),
            Self::Outcome(outcome) => write_outcome(outcome, frame),
            Self::Outcomes(outcomes) => {
                for outcome in *outcomes {
                    frame.int(result_type(outcome)).boolean(false).int(0);
                    write_outcome(outcome, frame);
                }
                write_end(frame);
            }
            Self::Failed(failed, refusal, count) => {
                for index in 0..*count {
                    let code = match index.cmp(failed) {
                        // Not because of this operation.
                        std::cmp::Ordering::Less => 0,
                        std::cmp::Ordering::Equal => refusal.code(),
                        std::cmp::Ordering::Greater => Refusal::RuntimeInconsistency.code(),
                    };
                    frame.int(opcode::ERROR).boolean(false).int(code).int(code);
                }
                write_end(frame);
            }
        }
    }
}

/// The header behind the last result.
fn write_end(frame: &mut FrameWriter<'_>) {
    frame.int(opcode::ERROR).boolean(true).int(-1);
}

fn write_znode(part: Part, znode: &Znode, frame: &mut FrameWriter<'_>) {
    match part {
        Part::Stat => {}
        Part::Data => write_data(znode.data.as_deref(), frame),
        Part::Children | Part::ChildrenAndStat => {
            frame.int(znode.stat().children());
            for name in &znode.children {
                frame.text(name);
            }
        }
    }
    if part != Part::Children {
        znode.stat().write(frame);
    }
}

fn write_data(data: Option<&[u8]>, frame: &mut FrameWriter<'_>) {
    match data {
        Some(data) => frame.buffer(data),
        None => frame.int(-1),
    };
}

fn write_outcome(outcome: &Outcome, frame: &mut FrameWriter<'_>) {
    match outcome {
        Outcome::Created(path, stat) => {
            frame.text(path);
            if let Some(stat) = stat {
                stat.write(frame);
            }
        }
        Outcome::DataSet(stat) => stat.write(frame),
        Outcome::Deleted | Outcome::Checked => {}
    }
}

/// What a result in a transaction is marked as: a create with a stat, whichever type was asked for,
/// as the one of these types that has one.
fn result_type(outcome: &Outcome) -> i32 {
    match outcome {
        Outcome::Created(_, None) => opcode::CREATE,
        Outcome::Created(_, Some(_)) => opcode::CREATE2,
        Outcome::Deleted => opcode::DELETE,
        Outcome::DataSet(_) => opcode::SET_DATA,
        Outcome::Checked => opcode::CHECK,
    }
}

// Why a request is refused.

/// The errors of this server, with their codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// Another operation of the same transaction has failed.
    RuntimeInconsistency = -2,
    /// The bytes of the request are no request of its type.
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

impl Refusal {
    pub(super) fn code(self) -> i32 {
        self as i32
    }
}

impl From<JuteError> for Refusal {
    fn from(_: JuteError) -> Self {
        Self::Marshalling
    }
}
