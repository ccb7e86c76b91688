//! The checks of a client before it opens a request, as in `src/net/socket_loop.rs`.

use super::{Client, Link};
use crate::network::Side;
use crate::sabotage::Sabotage;
use crate::stage::Stage;
use redlatch::internal::engine::{Node, Request};

impl Client {
    /// Reads connections that have ended; other bytes can wait.
    pub(super) fn look(&mut self, stage: &mut Stage) {
        for index in 0..self.links.len() {
            if let Link::Connected(connection) = self.links[index] {
                if stage.network.is_finished(connection, Side::Client) {
                    self.read(stage, index);
                }
            }
        }
    }

    /// Reads bytes that could be mistaken for the reply to this request.
    pub(super) fn read_before(&mut self, stage: &mut Stage, request: &Request) {
        if stage.options.has(Sabotage::LooksAtEndsOnly) {
            return;
        }
        for index in 0..self.links.len() {
            if self.rounds.must_be_read_before(Node::new(index), request) {
                self.read(stage, index);
            }
        }
    }

    /// If too many commands are unanswered, reads the replies that have arrived.
    pub(super) fn make_room(&mut self, stage: &mut Stage, request: &Request) {
        if self.rounds.is_crowded(request) {
            self.flush(stage);
            self.take_in(stage);
            if !stage.options.has(Sabotage::TimeoutIgnored) {
                self.rounds.tick(self.now(stage));
            }
        }
    }
}
