//! What comes back: replies, taken in order, each belonging to the oldest command unanswered.

use super::least_uptime::LeastUptime;
use super::{Answer, Session, State};
use crate::clock::Time;
use crate::engine::{Verb, Vote};
use crate::node::command::{Form, KnownScripts, Meaning, describe, meaning};
use crate::node::flight::InFlight;
use crate::node::identity::Identity;
use crate::node::node_error::{NodeError, OtherProtocol};
use crate::node::server_error::{ServerError, ServerErrorKind};
use crate::resp::{ProtocolError, Reply};

impl Session {
    /// Decodes what is there, and answers how many bytes at the end are no whole reply.
    pub(super) fn decode(&mut self, now: Time, input: &[u8]) -> usize {
        let mut rest = input;
        loop {
            if self.may_be_foreign(rest) {
                // Too little to say which; what comes next will tell.
                return rest.len();
            }
            match self.decoder.decode(rest) {
                Ok(None) => return rest.len(),
                Ok(Some((reply, used))) => {
                    if let Err(problem) = self.reply(now, &reply) {
                        self.distrust(now, problem);
                        return 0;
                    }
                    rest = &rest[used..];
                }
                Err(error) => {
                    self.distrust(now, self.mistrust(rest, error));
                    return 0;
                }
            }
            if self.is_down() {
                return 0;
            }
        }
    }

    /// Could these be the first bytes of another protocol, of which a few more are needed?
    fn may_be_foreign(&self, bytes: &[u8]) -> bool {
        match self.state {
            State::Ready => OtherProtocol::may_begin_tls(bytes),
            _ => OtherProtocol::may_begin(bytes),
        }
    }

    fn mistrust(&self, bytes: &[u8], error: ProtocolError) -> NodeError {
        match OtherProtocol::recognise(bytes) {
            // A proxy that ends TLS may send an alert at any time.
            Some(OtherProtocol::Tls) => NodeError::NotRedis(OtherProtocol::Tls),
            // What spoke RESP before has not become a web server.
            Some(other) if !matches!(self.state, State::Ready) => NodeError::NotRedis(other),
            _ => NodeError::Protocol(error),
        }
    }

    /// Takes a reply. An error means that the connection is of no more use.
    fn reply(&mut self, now: Time, reply: &Reply<'_>) -> Result<(), NodeError> {
        if let Reply::Push(_) = reply {
            // A message that nobody asked for is the answer to nothing.
            return Ok(());
        }
        let secret = self.options.credentials.password.as_deref();
        if let State::Greeting { handshake, since } = &mut self.state {
            let was_ending = handshake.is_ending();
            let result = handshake.reply(reply, secret, self.flight.output_mut());
            if matches!(&result, Err(problem) if handshake.is_misunderstood(problem)) {
                self.former.misunderstand();
            }
            let greeted = result?;
            if handshake.is_ending() && !was_ending {
                // Asked only now: what was answered before that may have lain unread for long.
                *since = now;
            }
            self.reply_order.credit(None, reply, true);
            if let Some((identity, former)) = greeted {
                self.former = former;
                self.greeted(now, identity);
            }
            return Ok(());
        }
        let next = if self.flight.is_next_written() { self.flight.pop() } else { None };
        let Some(command) = next else {
            return Err(match reply {
                // A server that is about to turn a client away says why.
                Reply::Error(text) => NodeError::Server(ServerError::parse(text, secret)),
                _ => unasked(&describe(reply, secret)),
            });
        };
        self.answered_at = now;
        let result = self.answered(now, command, reply);
        self.is_proven = result.is_ok();
        if self.is_proven {
            self.backoff.reset();
        }
        result
    }

    /// What has begun to arrive on a connection on which nothing is asked, unless it is a message
    /// that answers nothing. If it were left to be completed, it would be taken for the answer to
    /// the next command.
    pub(super) fn stray(&self, input: &[u8]) -> Option<NodeError> {
        let is_idle = matches!(self.state, State::Ready) && self.flight.is_empty();
        match self.decoder.begun(input) {
            Some(first) if is_idle && !matches!(first, b'>' | b'|') => {
                let is_foreign = self.may_be_foreign(input);
                (!is_foreign).then(|| unasked("the beginning of a reply"))
            }
            _ => None,
        }
    }

    /// Takes the reply to a command.
    fn answered(
        &mut self,
        now: Time,
        command: InFlight,
        reply: &Reply<'_>,
    ) -> Result<(), NodeError> {
        let took = Some(now.since(command.sent_at));
        let answer = |vote, problem| {
            let answer = command.ticket.map(|ticket| Answer::new(ticket, vote, problem));
            answer.map(|answer| Answer { was_sent: true, took, ..answer })
        };
        let secret = self.options.credentials.password.as_deref();
        let meaning = meaning(&command.request, command.number, reply, secret);
        let meaning = self.doubt(&command.request, reply, meaning);
        match &meaning {
            Meaning::Vote(_) | Meaning::GrantedNew | Meaning::Claimed { .. } | Meaning::Seen(_) => {
                self.scripts.learn(&command.request);
            }
            // It has not forgotten just this one.
            Meaning::UnknownScript => self.scripts = KnownScripts::default(),
            Meaning::Failed(_) | Meaning::Nonsense(_) => {}
        }
        match meaning {
            Meaning::GrantedNew => {
                let (vote, problem) = self.grant(now, true);
                self.answers.extend(answer(vote, problem));
            }
            Meaning::Claimed { is_new, counter } => {
                let (vote, problem) = self.grant(now, is_new);
                // What a node counts is worth knowing, whether its vote counts or not.
                let counter = Some(counter);
                self.answers.extend(answer(vote, problem).map(|it| Answer { counter, ..it }));
            }
            Meaning::Seen(seen) => {
                let answer = answer(Vote::Granted, None);
                self.answers.extend(answer.map(|it| Answer { snapshot: Some(seen), ..it }));
            }
            Meaning::Vote(vote) => {
                self.answers.extend(answer(vote, None));
                // If one of several keys is another's, the rest may still be the lock before's.
                if vote == Vote::Refused && command.request.has_more_keys() {
                    self.remove_predecessor_later(now, command.request);
                }
            }
            Meaning::UnknownScript
                if command.form == Form::Digest && !self.is_overtaken(&command) =>
            {
                self.flight.push(now, command.ticket, command.request, Form::Source);
            }
            Meaning::UnknownScript => {
                let text = describe(reply, self.options.credentials.password.as_deref());
                self.answers.extend(answer(Vote::Failed, Some(NodeError::UnexpectedReply(text))));
                match command.form {
                    Form::Digest => self.remove_predecessor_later(now, command.request),
                    // It does not know what it was just told.
                    Form::Source => self.remove_again_later(now, command),
                }
            }
            Meaning::Failed(problem) => {
                self.answers.extend(answer(Vote::Failed, Some(problem.clone())));
                return self.refused(now, command, problem);
            }
            Meaning::Nonsense(problem) => {
                self.answers.extend(answer(Vote::Failed, Some(problem.clone())));
                self.remove_again_later(now, command);
                return Err(problem);
            }
        }
        Ok(())
    }

    /// The vote of a node that has granted a lock. Where nobody held it, that is worth as much as
    /// the node's memory of who did.
    fn grant(&self, now: Time, is_new: bool) -> (Vote, Option<NodeError>) {
        match self.quarantine(now).filter(|_| is_new) {
            None => (Vote::Granted, None),
            problem => (Vote::Failed, problem),
        }
    }

    /// The server has answered with an error. That it gives means that the connection is to end.
    fn refused(
        &mut self,
        now: Time,
        command: InFlight,
        problem: NodeError,
    ) -> Result<(), NodeError> {
        self.problem = Some(problem.clone());
        let kind = match &problem {
            NodeError::Server(error) => Some(error.kind),
            _ => None,
        };
        // Whoever may not remove a key will not be able to later. With a lock's counter it is just
        // the lock after this one that cannot be had.
        let is_pointless = problem.is_permanent() && kind != Some(ServerErrorKind::Counter);
        if !is_pointless {
            // The node is busy, or reading its data, and holds the key.
            self.remove_again_later(now, command);
        }
        // Behind this name there was a master; by now there may be another one.
        if kind == Some(ServerErrorKind::ReadOnly) { Err(problem) } else { Ok(()) }
    }

    /// Has a later command made this one harmful? Behind its own undo, what takes a lock would
    /// plant a key that nobody removes.
    fn is_overtaken(&self, command: &InFlight) -> bool {
        let takes = matches!(command.request.verb(), Verb::Acquire | Verb::Handoff | Verb::Restore);
        let lock = command.request.lock().filter(|_| takes);
        lock.is_some_and(|lock| self.flight.has(&lock.token, Verb::is_removal))
    }

    fn greeted(&mut self, now: Time, identity: Identity) {
        let heard_at = self.answered_at.max(self.least_uptime.greeted_at);
        self.least_uptime = LeastUptime::of(now, &identity, self.identity.as_ref(), heard_at);
        // A server that does not say who it is is the one that was there, as far as is known.
        let before = self.identity.take().and_then(|identity| identity.run_id);
        self.identity = Some(Identity { run_id: identity.run_id.clone().or(before), ..identity });
        self.has_greeted = true;
        self.problem = None;
        self.state = State::Ready;
    }
}

/// Something came that answers no command.
fn unasked(what: &str) -> NodeError {
    NodeError::UnexpectedReply(format!("{what}, and nothing was asked"))
}
