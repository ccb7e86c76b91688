//! How far the order of replies is proven. Only that order matches replies to commands.
//!
//! A script's reply proves which command it answers, and so the order of all replies before it. An
//! error proves nothing: a server or a proxy may send one unsolicited, and then each later reply
//! answers the command before the one that it is matched to. So after an error the reply to a plain
//! `SET`, which carries no proof, is not a vote until a script has replied. If no command in flight
//! will prove the order, a script that does nothing is sent first.

use crate::engine::{Command, CustomCommand, NoVote, Request, RunScript, Said, Script, Vote};
use crate::node::command::{NoReply, NodeReply, describe};
use crate::node::script::PROOF;
use crate::node::session::Session;
use crate::node::{NodeError, SharedRequest};
use crate::resp::Reply;
use crate::time::Time;
use std::sync::Arc;

/// What the replies on one connection prove so far.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::node::session) struct ReplyOrder {
    /// The last reply did not prove that it answers the command it was matched to.
    is_unproven: bool,
    /// There was an error since the last reply with a proof.
    is_doubtful: bool,
}

impl ReplyOrder {
    /// Notes that a reply was matched to `request`, or to a part of the greeting (`None`).
    /// `is_error`: it may have come unsolicited. `is_answer`: it is valid for this request.
    pub(in crate::node::session) fn credit(
        &mut self,
        request: Option<&SharedRequest>,
        is_error: bool,
        is_answer: bool,
    ) {
        let is_proof = is_answer && !is_error && request.is_some_and(SharedRequest::has_proof);
        self.is_unproven = !is_proof && (request.is_some() || self.is_unproven);
        self.is_doubtful = !is_proof && (is_error || self.is_doubtful);
    }

    /// Is it proven that the server has executed every command that counts as answered?
    pub(in crate::node::session) fn is_settled(self) -> bool {
        !self.is_unproven
    }

    /// Could the reply to this request be the reply to another one?
    fn is_unproven_for(self, request: &SharedRequest) -> bool {
        self.is_doubtful && !request.is_about_server() && !request.has_proof()
    }
}

/// Its reply proves the order. It needs no right that a lock does not need.
#[derive(Debug)]
struct Proof(Arc<[u8]>);

impl CustomCommand for Proof {
    fn key(&self) -> &Arc<[u8]> {
        &self.0
    }

    fn script(&self) -> Script {
        PROOF
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
    /// If the order of replies is in doubt and no command in flight will prove it, sends a
    /// [`Proof`] first.
    pub(in crate::node::session) fn prove(&mut self, now: Time, request: &SharedRequest) {
        if matches!(
            self.connection.decoder.begun(&self.connection.input),
            Some(b'>' | b'|')
        ) {
            // Part of a message has arrived. A reply could be parsed as the rest of the message,
            // and the next reply would then be matched to the wrong command.
            self.trust.order.is_doubtful = true;
        }
        if self.trust.order.is_unproven_for(request) && !self.flight.has(SharedRequest::has_proof) {
            let command = Command::Custom(Arc::new(Proof(Arc::from(request.key()))));
            let proof = Request {
                command,
                ..**request
            }
            .into();
            let form = self.connection.scripts.form(now, &proof, false);
            self.flight.push(now, None, proof, form);
        }
    }

    /// Rule 1: turns a vote into a failure if the order of replies is unproven, and notes what this
    /// reply proves about the order.
    pub(super) fn weigh_order(
        &mut self,
        request: &SharedRequest,
        reply: &Reply<'_>,
        read: Result<NodeReply, NoReply>,
    ) -> Result<NodeReply, NoReply> {
        let is_doubted = read.is_ok() && self.trust.order.is_unproven_for(request);
        // No server says unasked that it does not know a script.
        let is_unknown = matches!(read, Err(NoReply::UnknownScript)) && request.has_proof();
        let is_error = matches!(reply, Reply::Error(_)) && !is_unknown;
        let is_answer = !is_unknown && !matches!(read, Err(NoReply::Nonsense(_)));
        self.trust.order.credit(Some(request), is_error, is_answer);
        if !is_doubted {
            return read;
        }
        let problem = self.problem.clone().unwrap_or_else(|| {
            let secret = self.options.credentials.password.as_deref();
            let reply = describe(reply, secret);
            NodeError::UnexpectedReply(format!("{reply} behind an error"))
        });
        Err(NoReply::Failed(problem))
    }
}
