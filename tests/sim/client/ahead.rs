//! What a client looks at before it opens a request, as `src/net/driver.rs` does.

use super::{Client, Link};
use crate::network::Side;
use crate::sabotage::Sabotage;
use crate::stage::Stage;
use redlatch::internal::engine::{Node, Request};

impl Client {
    /// Late answers can wait, but not that a connection has ended.
    pub(super) fn look(&mut self, stage: &mut Stage) {
        for index in 0..self.links.len() {
            if let Link::Connected(connection) = self.links[index] {
                if stage.network.is_finished(connection, Side::Client) {
                    self.read(stage, index);
                }
            }
        }
    }

    /// Nor can what might be taken for the answer to this request.
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

    /// Where too much is unanswered, looks whether the answers are there, or the node is silent.
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
