//! How far the order of replies is proven: which command a reply answers is known by order alone.
//!
//! The answer of a script [proves](crate::node::script) that it is its own, and with that all that
//! came before it. An error proves nothing: a server or a proxy may say one unasked, and then each
//! reply behind it answers the command before the one that it is credited to. So behind an error
//! the answer to a plain `SET`, which carries no proof, is no vote until a script has been
//! answered. Where nothing is under way that would prove it, a look at the key is sent ahead.

use super::{Session, State};
use crate::clock::Time;
use crate::engine::{Action, Request, Verb};
use crate::node::command::{Meaning, describe, has_proof};
use crate::node::node_error::NodeError;
use crate::resp::Reply;
use std::sync::Arc;
use std::time::Duration;

/// What the replies of one connection have shown so far.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ReplyOrder {
    /// The last reply did not prove that it answers the command it was credited to.
    is_unproven: bool,
    /// There was an error since the last that did.
    is_doubtful: bool,
}

impl ReplyOrder {
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
        self.is_doubtful && request.verb() != Verb::Ping && !has_proof(request)
    }
}

/// How many connections may be given up within [`DISTRUST`] because they could not be trusted, and
/// be made again at once. A stray reply costs no round; a peer that talks nonsense must not cost a
/// connection for each round.
const DISTRUSTED_MAX: u32 = 4;

/// The time in which those are counted.
const DISTRUST: Duration = Duration::from_secs(1);

impl Session {
    /// Gives up a connection that cannot be trusted any more.
    pub(super) fn distrust(&mut self, now: Time, problem: NodeError) {
        if self.is_down() {
            return;
        }
        self.closed(now, problem);
        let (since, count) = self.distrusted;
        let is_again = count > 0 && now.since(since) < DISTRUST;
        self.distrusted = if is_again { (since, count.saturating_add(1)) } else { (now, 1) };
        if self.distrusted.1 > DISTRUSTED_MAX {
            self.state = State::Down { retry_at: now.after(self.options.reconnect.1) };
        }
    }

    /// Sends something ahead of this request whose answer shows whether the order is right, if that
    /// is in doubt and nothing under way will show it.
    pub(super) fn prove(&mut self, now: Time, request: &Request) {
        if matches!(self.decoder.begun(&self.input), Some(b'>' | b'|')) {
            // Half a message has come. An answer might be taken for the rest of it, and the next
            // one for that answer.
            self.reply_order.is_doubtful = true;
        }
        if self.reply_order.doubts(request) && !self.flight.has_proof() {
            let action = Action::Inspect { key: Arc::from(request.key()) };
            let look = Request { action, ..request.clone() };
            let form = self.scripts.form(&look);
            self.flight.push(now, None, look, form);
        }
    }

    /// What a reply means if the order may be wrong. Takes note of what it shows of that.
    pub(super) fn doubt(
        &mut self,
        request: &Request,
        reply: &Reply<'_>,
        meaning: Meaning,
    ) -> Meaning {
        let is_vote = matches!(meaning, Meaning::Vote(_) | Meaning::GrantedNew);
        let is_doubted = is_vote && self.reply_order.doubts(request);
        let is_answer = !matches!(meaning, Meaning::Nonsense(_));
        self.reply_order.credit(Some(request), reply, is_answer);
        if !is_doubted {
            return meaning;
        }
        let secret = self.options.credentials.password.as_deref();
        let unproven = || {
            let text = format!("{} behind an error", describe(reply, secret));
            NodeError::UnexpectedReply(text)
        };
        Meaning::Failed(self.problem.clone().unwrap_or_else(unproven))
    }
}
