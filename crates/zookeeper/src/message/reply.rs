//! Bytes to replies.

use super::multi::Results;
use super::request::RequestKind;
use super::stat::Stat;
use crate::jute::{JuteError, Reader};

/// The body of a reply without an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply<'a> {
    /// A znode was created.
    Created {
        /// Its path, with its number if it is sequential.
        path: &'a str,
        /// Its stat, unless it was asked for as to a server before 3.5.
        stat: Option<Stat>,
    },
    /// It exists.
    Found(Stat),
    Data {
        /// The data; null is empty.
        data: &'a [u8],
        stat: Stat,
    },
    Children {
        names: Names<'a>,
        /// The stat of their parent.
        stat: Stat,
    },
    /// The server has what its leader had.
    Synced,
    /// What became of a transaction.
    Results(Results<'a>),
    /// The request was carried out, and there is nothing to say about it.
    Done,
}

impl<'a> Reply<'a> {
    /// Reads the body of the reply to a request of this kind.
    ///
    /// # Errors
    ///
    /// The body is not of this kind: too short, too long, or with values that cannot be.
    pub fn decode(kind: RequestKind, body: &'a [u8]) -> Result<Self, JuteError> {
        let mut reader = Reader::new(body);
        let reply = match kind {
            RequestKind::Create => {
                Self::Created { path: reader.text()?, stat: Some(Stat::read(&mut reader)?) }
            }
            RequestKind::PlainCreate => Self::Created { path: reader.text()?, stat: None },
            RequestKind::Exists => Self::Found(Stat::read(&mut reader)?),
            RequestKind::GetData => Self::Data {
                data: reader.buffer()?.unwrap_or_default(),
                stat: Stat::read(&mut reader)?,
            },
            RequestKind::GetChildren => {
                Self::Children { names: Names::read(&mut reader)?, stat: Stat::read(&mut reader)? }
            }
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
    count: usize,
}

impl<'a> Names<'a> {
    fn read(reader: &mut Reader<'a>) -> Result<Self, JuteError> {
        // The length of a name takes four bytes.
        let count = reader.count(4)?;
        let start = reader.rest();
        for _ in 0..count {
            reader.raw_text()?;
        }
        Ok(Self { bytes: &start[..start.len() - reader.rest().len()], count })
    }

    pub fn len(&self) -> usize {
        self.count
    }

    /// Are there none?
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    pub fn iter(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let mut reader = Reader::new(self.bytes);
        // The errors were returned when the reply was decoded.
        (0..self.count).map_while(move |_| reader.raw_text().ok())
    }
}
