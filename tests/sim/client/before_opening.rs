//! The checks of a client before it opens a request, as in `src/net/socket_loop.rs`.

use super::{Client, Link};
use crate::context::Context;
use crate::mistake::Mistake;
use crate::network::Side;
use redlatch::internal::engine::{Node, Request};

impl Client {
    /// Reads connections that have ended; other bytes can wait.
    pub(super) fn look(&mut self, context: &mut Context) {
        for index in 0..self.links.len() {
            if let Link::Connected(connection) = self.links[index] {
                if context.network.is_finished(connection, Side::Client) {
                    self.read(context, index);
                }
            }
        }
    }

    /// Reads bytes that could be mistaken for the reply to this request.
    pub(super) fn read_before(&mut self, context: &mut Context, request: &Request) {
        if context.options.has(Mistake::LooksAtEndsOnly) {
            return;
        }
        for index in 0..self.links.len() {
            if self.rounds.must_be_read_before(Node::new(index), request) {
                self.read(context, index);
            }
        }
    }

    /// If too many commands are unanswered, reads the replies that have arrived.
    pub(super) fn make_room(&mut self, context: &mut Context, request: &Request) {
        if self.rounds.is_crowded(request) {
            self.flush(context);
            self.take_in(context);
            if !context.options.has(Mistake::TimeoutIgnored) {
                self.rounds.tick(self.now(context));
            }
        }
    }
}
