//! How far the order of replies is proven: which command a reply answers is known by order alone.
//!
//! The answer of a script [proves](crate::node::script) that it is its own, and with that all that
//! came before it. An error proves nothing: a server or a proxy may say one unasked, and then each
//! reply behind it answers the command before the one that it is credited to. So behind an error
//! the answer to a plain `SET`, which carries no proof, is no vote until a script has been answered.
//! Where nothing is under way that would prove it, a look at the key is sent ahead.

use super::Session;
use crate::clock::Time;
use crate::engine::{Request, Verb};
use crate::node::command::has_proof;
use crate::resp::Reply;

/// What the replies of one connection have shown so far.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Trust {
    /// The last reply did not prove that it answers the command it was credited to.
    is_unproven: bool,
    /// There was an error since the last that did.
    is_doubtful: bool,
}

impl Trust {
    /// A reply was taken for the answer to `request`, or to a part of the greeting. `is_answer`: it
    /// is one that the request can have.
    pub(super) fn credit(&mut self, request: Option<&Request>, reply: &Reply<'_>, is_answer: bool) {
        let is_error = matches!(reply, Reply::Error(_));
        let is_proof = is_answer && !is_error && request.is_some_and(has_proof);
        self.is_unproven = !is_proof && (request.is_some() || self.is_unproven);
        self.is_doubtful = !is_proof && (is_error || self.is_doubtful);
    }

    /// Is it proven that all commands which count as answered have been carried out?
    pub(super) fn is_settled(self) -> bool {
        !self.is_unproven
    }

    /// May the reply to this request be another's?
    pub(super) fn doubts(self, request: &Request) -> bool {
        self.is_doubtful && request.verb != Verb::Ping && !has_proof(request)
    }
}

impl Session {
    /// Sends something ahead of this request whose answer shows whether the order is right, if that
    /// is in doubt and nothing under way will show it.
    pub(super) fn prove(&mut self, now: Time, request: &Request) {
        if self.trust.doubts(request) && !self.flight.has_proof() {
            let look = Request { verb: Verb::Inspect, extras: None, ..request.clone() };
            let form = self.scripts.form(&look);
            self.flight.push(now, None, look, form);
        }
    }
}
