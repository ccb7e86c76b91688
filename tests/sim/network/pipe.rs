//! One direction of a connection: bytes in order, some of them in flight.

use std::collections::VecDeque;

/// A unit of arrival: a number of bytes, or the end.
#[derive(Clone, Copy, Debug)]
pub(super) enum Piece {
    Bytes(usize),
    End,
}

/// One direction, towards one side.
#[derive(Debug, Default)]
pub(super) struct Pipe {
    /// The bytes sent. The first `read` bytes were read; the first `arrived` can be read.
    pub(super) bytes: Vec<u8>,
    pub(super) read: usize,
    pub(super) arrived: usize,
    pub(super) flying: VecDeque<Piece>,
    pub(super) last_arrival: u64,
    pub(super) is_finished: bool,
    /// Bytes sent are lost.
    pub(super) is_swallowing: bool,
}

impl Pipe {
    /// Adds bytes that are sent, and drops those that were read.
    pub(super) fn take_up(&mut self, bytes: &[u8]) {
        if self.read == self.bytes.len() {
            self.bytes.clear();
            (self.read, self.arrived) = (0, 0);
        }
        self.bytes.extend_from_slice(bytes);
    }

    /// Drops all bytes but those that have arrived and those in flight.
    pub(super) fn forget_lost(&mut self) {
        let flying = self.flying.iter().map(|piece| match piece {
            Piece::Bytes(size) => *size,
            Piece::End => 0,
        });
        let left = self.arrived + flying.sum::<usize>();
        self.bytes.truncate(left);
    }
}
