//! The socket as rustls sees it: what it reads is watched, and what it writes is gathered.

use super::Socket;
use super::errors::Peer;
use std::io::{self, IoSlice, Read, Write};

/// The reading side.
pub(super) struct Watched<'a> {
    socket: &'a mut Socket,
    peer: &'a mut Peer,
    /// Did the last read leave nothing in the socket? Then the next byte causes an event.
    pub(super) is_drained: bool,
}

impl<'a> Watched<'a> {
    pub(super) fn new(socket: &'a mut Socket, peer: &'a mut Peer) -> Self {
        Self { socket, peer, is_drained: false }
    }
}

impl Read for Watched<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.socket.read(buffer)?;
        self.is_drained = count < buffer.len();
        self.peer.spoke(&buffer[..count]);
        Ok(count)
    }
}

/// The writing side. Several records are sent by one call, as if they were one: a vectored write
/// would raise SIGPIPE in a program that does not ignore it, which the plain write never does.
pub(super) struct Gathering<'a>(pub(super) &'a mut Socket);

impl Write for Gathering<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        match slices {
            [record] => self.0.write(record),
            records => {
                let all: Vec<u8> =
                    records.iter().flat_map(|record| record.iter().copied()).collect();
                self.0.write(&all)
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
