//! One direction of a connection: bytes in their order, some of them still on their way.

use std::collections::VecDeque;

/// What arrives at one time: so many bytes, or the end.
#[derive(Clone, Copy, Debug)]
pub(super) enum Piece {
    Bytes(usize),
    End,
}

/// One direction, towards one side.
#[derive(Debug, Default)]
pub(super) struct Pipe {
    /// What was sent. The first `read` bytes have been read, the first `arrived` could be.
    pub(super) bytes: Vec<u8>,
    pub(super) read: usize,
    pub(super) arrived: usize,
    pub(super) flying: VecDeque<Piece>,
    pub(super) last_arrival: u64,
    pub(super) is_finished: bool,
    /// Whatever goes in never comes out.
    pub(super) is_swallowing: bool,
}

impl Pipe {
    /// Takes up bytes that are sent, in the place of those that have been read.
    pub(super) fn take_up(&mut self, bytes: &[u8]) {
        if self.read == self.bytes.len() {
            self.bytes.clear();
            (self.read, self.arrived) = (0, 0);
        }
        self.bytes.extend_from_slice(bytes);
    }

    /// Of what was sent, no more is left than what has arrived and what is still flying.
    pub(super) fn forget_lost(&mut self) {
        let flying = self.flying.iter().map(|piece| match piece {
            Piece::Bytes(size) => *size,
            Piece::End => 0,
        });
        let left = self.arrived + flying.sum::<usize>();
        self.bytes.truncate(left);
    }
}
