//! Faults of a connection: it breaks, stalls, is held back, or delivers nothing any more.

use super::pipe::{Piece, Pipe};
use super::{Network, Setup, Side};
use crate::queue::Queue;
use crate::random::Random;

impl Network {
    /// The connection breaks: both sides notice, at different times, and only a part of the bytes
    /// in flight arrives.
    pub(crate) fn cut(&mut self, queue: &mut Queue, random: &mut Random, connection: usize) {
        for side in [Side::Client, Side::Node] {
            let pipe = &mut self.connections[connection].pipes[side as usize];
            let kept = random.below(pipe.flying.len() as u64 + 1) as usize;
            pipe.flying.truncate(kept);
            if let Some(Piece::Bytes(size)) = pipe.flying.back_mut() {
                *size = random.between(1, *size as u64) as usize;
            }
            pipe.forget_lost();
            self.finish(queue, random, connection, side);
        }
    }

    /// Bytes sent from now on arrive no earlier than `until`. Other connections are not affected.
    pub(crate) fn stall(&mut self, connection: usize, until: u64) {
        self.connections[connection].stalled_until = until;
    }

    /// Bytes that the client writes from now on arrive no earlier than `until`, even if the client
    /// has closed the connection long before. Replies and other connections are not affected.
    pub(crate) fn hold(&mut self, connection: usize, until: u64) {
        self.connections[connection].held_until = until;
    }

    /// The node ends the connection. The bytes that the client has written, or writes, are lost.
    pub(crate) fn end(&mut self, queue: &mut Queue, random: &mut Random, connection: usize) {
        self.connections[connection].pipes[Side::Node as usize].is_swallowing = true;
        if !self.connections[connection].pipes[Side::Client as usize].is_swallowing {
            self.finish(queue, random, connection, Side::Client);
        }
    }

    /// The connection delivers nothing any more, and neither side notices.
    pub(crate) fn swallow(&mut self, connection: usize) {
        for pipe in &mut self.connections[connection].pipes {
            pipe.flying.clear();
            pipe.forget_lost();
            pipe.is_swallowing = true;
        }
    }

    /// The node crashed: its kernel may reset the connection at once, or when the client writes.
    pub(crate) fn forget(
        &mut self,
        queue: &mut Queue,
        random: &mut Random,
        connection: usize,
        is_reset: bool,
    ) {
        let entry = &mut self.connections[connection];
        entry.is_forgotten = true;
        entry.pipes[Side::Node as usize] = Pipe {
            is_swallowing: true,
            ..Pipe::default()
        };
        if is_reset {
            self.finish(queue, random, connection, Side::Client);
        }
    }

    /// The client and the node of a connection.
    pub(crate) fn ends(&self, connection: usize) -> (usize, usize) {
        (
            self.connections[connection].client,
            self.connections[connection].node,
        )
    }

    /// Have all bytes that were sent to the client arrived, and can more arrive? If the client's
    /// bytes are lost, it is unknown which reply it waits for.
    pub(crate) fn is_between_replies(&self, connection: usize) -> bool {
        let entry = &self.connections[connection];
        let works = entry
            .pipes
            .iter()
            .all(|pipe| !pipe.is_swallowing && !pipe.is_finished);
        let is_open = entry.setup == Setup::Made && !entry.is_abandoned;
        is_open && works && entry.pipes[Side::Client as usize].flying.is_empty()
    }

    /// The bytes that the client has written and the node has not read.
    pub(crate) fn unread(&self, connection: usize) -> &[u8] {
        let pipe = &self.connections[connection].pipes[Side::Node as usize];
        &pipe.bytes[pipe.read..]
    }

    /// A reply reaches the client at once.
    pub(crate) fn deliver(&mut self, connection: usize, reply: &[u8]) {
        let pipe = &mut self.connections[connection].pipes[Side::Client as usize];
        pipe.take_up(reply);
        pipe.arrived += reply.len();
    }
}
