//! How far the order of replies is proven. Only that order matches replies to commands.
//!
//! A script's reply [proves](crate::node::script) which command it answers, and so the order of all
//! replies before it. An error proves nothing: a server or a proxy may send one unsolicited, and
//! then each later reply answers the command before the one that it is matched to. So after an
//! error the reply to a plain `SET`, which carries no proof, is no vote until a script has replied.
//! If no command in flight will prove the order, a script that does nothing is sent first.

use super::{Session, State};
use crate::engine::{Action, CustomCommand, NoVote, Request, RunScript, Said, Script, Verb, Vote};
use crate::node::command::{Meaning, describe, has_proof};
use crate::node::node_error::NodeError;
use crate::node::script::PROOF;
use crate::resp::Reply;
use crate::time::Time;
use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

/// What the replies on one connection prove so far.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ReplyOrder {
    /// The last reply did not prove that it answers the command it was matched to.
    is_unproven: bool,
    /// There was an error since the last reply with a proof.
    is_doubtful: bool,
}

impl ReplyOrder {
    /// Notes that a reply was matched to `request`, or to a part of the greeting (`None`).
    /// `is_answer`: the reply is valid for this request.
    pub(super) fn credit(&mut self, request: Option<&Request>, reply: &Reply<'_>, is_answer: bool) {
        let is_error = matches!(reply, Reply::Error(_));
        let is_proof = is_answer && !is_error && request.is_some_and(has_proof);
        self.is_unproven = !is_proof && (request.is_some() || self.is_unproven);
        self.is_doubtful = !is_proof && (is_error || self.is_doubtful);
    }

    /// Is it proven that the server has executed every command that counts as answered?
    pub(super) fn is_settled(self) -> bool {
        !self.is_unproven
    }

    /// Could the reply to this request be the reply to another one?
    pub(super) fn is_unproven_for(self, request: &Request) -> bool {
        self.is_doubtful && request.verb() != Verb::Ping && !has_proof(request)
    }
}

/// How many distrusted connections within [`DISTRUST`] are made again without a pause. So one stray
/// reply costs no round, and a peer that sends invalid replies does not cause a new connection for
/// each round.
const DISTRUSTED_MAX: u32 = 4;

/// The time within which distrusted connections are counted.
const DISTRUST: Duration = Duration::from_secs(1);

/// Its reply proves the order. It needs no right that a lock does not need.
#[derive(Debug)]
struct Proof(Arc<[u8]>);

impl CustomCommand for Proof {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn key(&self) -> &Arc<[u8]> {
        &self.0
    }

    fn script(&self) -> (Script, u32) {
        (PROOF, 15)
    }

    fn call(&self, run: &mut RunScript<'_>) {
        run(&[&self.0], &[]);
    }

    fn read(&self, number: i64, reply: &Reply<'_>) -> Option<Result<(Vote, Said), NoVote>> {
        let is_it = *reply == Reply::Integer(number);
        is_it.then(|| Ok((Vote::Granted, Said::new(()))))
    }
}

impl Session {
    /// Closes a connection whose replies cannot be trusted.
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

    /// If the order of replies is in doubt and no command in flight will prove it, sends a
    /// [`Proof`] first.
    pub(super) fn prove(&mut self, now: Time, request: &Request) {
        if matches!(self.connection.decoder.begun(&self.connection.input), Some(b'>' | b'|')) {
            // Part of a message has arrived. A reply could be parsed as the rest of the message,
            // and the next reply would then be matched to the wrong command.
            self.connection.reply_order.is_doubtful = true;
        }
        if self.connection.reply_order.is_unproven_for(request) && !self.flight.has_proof() {
            let action = Action::Custom(Arc::new(Proof(Arc::from(request.key()))));
            let proof = Request { action, ..request.clone() };
            let form = self.connection.scripts.form(&proof);
            self.flight.push(now, None, proof, form);
        }
    }

    /// Turns a vote into a failure if the order of replies is unproven, and notes what this reply
    /// proves about the order.
    pub(super) fn fail_if_unproven(
        &mut self,
        request: &Request,
        reply: &Reply<'_>,
        meaning: Meaning,
    ) -> Meaning {
        let is_vote = matches!(meaning, Meaning::Vote(_) | Meaning::GrantedNew);
        let is_doubted = is_vote && self.connection.reply_order.is_unproven_for(request);
        let is_answer = !matches!(meaning, Meaning::Nonsense(_));
        self.connection.reply_order.credit(Some(request), reply, is_answer);
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
