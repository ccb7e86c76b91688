//! The network between the client and the server.

use std::collections::{BTreeSet, VecDeque};
use std::io::{self, ErrorKind, Read, Write};

/// The type of a record of application data, as it stands on the wire.
const DATA: u8 = 23;

/// A record's type, version and length.
const HEADER: usize = 5;

/// What is done to the next bytes to the client.
#[derive(Clone, Copy)]
pub(crate) enum Tampering<'a> {
    Alter {
        at: usize,
        bits: u8,
    },
    Drop {
        count: usize,
    },
    /// The last bytes that were delivered come again.
    Repeat {
        count: usize,
    },
    Insert(&'a [u8]),
}

/// A record that the server sent.
struct Record {
    /// Where it begins and ends in all that the server sent.
    start: usize,
    end: usize,
    kind: u8,
    /// How many bytes the server had written by then.
    said: usize,
}

/// The socket, as the client sees it, and what is on the way to it.
#[derive(Default)]
pub(crate) struct Network {
    on_the_way: VecDeque<u8>,
    delivered: Vec<u8>,
    /// How many of the delivered bytes the client has read.
    read: usize,
    pub(crate) to_server: Vec<u8>,
    /// The client cannot write.
    pub(crate) is_blocked: bool,
    pub(crate) has_ended: bool,
    records: Vec<Record>,
    /// How many bytes the server has sent, and how many of them have been delivered or dropped.
    sent: usize,
    passed: usize,
    is_tampered: bool,
    /// The places of altered bytes.
    altered: BTreeSet<usize>,
    /// How many bytes the client may read at most, because a record of data was altered.
    readable: Option<usize>,
}

impl Network {
    /// The server sends these records, which contain what it has written so far.
    pub(crate) fn enter(&mut self, mut records: &[u8], said: usize) {
        self.on_the_way.extend(records);
        while let Some(header) = records.get(..HEADER) {
            let length = HEADER + usize::from(u16::from_be_bytes([header[3], header[4]]));
            let start = self.sent;
            let end = self.sent + length;
            self.records.push(Record {
                start,
                end,
                kind: header[0],
                said,
            });
            self.sent = end;
            records = &records[length.min(records.len())..];
        }
        assert!(records.is_empty(), "a server writes whole records");
    }

    pub(crate) fn deliver(&mut self, count: usize) {
        let count = count.min(self.on_the_way.len());
        self.delivered.extend(self.on_the_way.drain(..count));
        self.passed += count;
    }

    pub(crate) fn tamper(&mut self, tampering: Tampering<'_>) {
        match tampering {
            Tampering::Alter { at, bits } => {
                let Some(byte) = self.on_the_way.get_mut(at) else {
                    return;
                };
                // A byte that is altered twice might be the same again.
                if self.altered.insert(self.passed + at) {
                    *byte ^= bits;
                    self.limit(self.passed + at);
                }
            }
            Tampering::Drop { count } => {
                let count = count.min(self.on_the_way.len());
                self.on_the_way.drain(..count);
                self.passed += count;
            }
            Tampering::Repeat { count } => {
                let from = self.delivered.len().saturating_sub(count);
                self.delivered.extend_from_within(from..);
            }
            Tampering::Insert(bytes) => self.delivered.extend_from_slice(bytes),
        }
        self.is_tampered = true;
    }

    /// A byte was altered: if it is in a record of data, and not in the version, which means
    /// nothing there, only what came before that record is readable.
    fn limit(&mut self, place: usize) {
        let index = self.records.iter().position(|record| record.end > place);
        let index = index.expect("every byte is in a record");
        let record = &self.records[index];
        if record.kind == DATA && place >= record.start + 3 {
            // Records that were sent together all say what had been written behind the last one.
            let before = index
                .checked_sub(1)
                .map_or(0, |index| self.records[index].said);
            self.readable = Some(self.readable.unwrap_or(usize::MAX).min(before));
        }
    }

    pub(crate) fn is_tampered(&self) -> bool {
        self.is_tampered
    }

    /// How many bytes of the server the client may have read.
    pub(crate) fn readable(&self) -> usize {
        self.readable.unwrap_or(usize::MAX)
    }
}

impl Read for Network {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let rest = &self.delivered[self.read..];
        if rest.is_empty() && !self.has_ended {
            return Err(ErrorKind::WouldBlock.into());
        }
        let count = rest.len().min(buffer.len());
        buffer[..count].copy_from_slice(&rest[..count]);
        self.read += count;
        Ok(count)
    }
}

impl Write for Network {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.is_blocked {
            return Err(ErrorKind::WouldBlock.into());
        }
        self.to_server.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
