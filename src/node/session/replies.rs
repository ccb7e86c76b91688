//! What comes back: replies, taken in order, each belonging to the oldest command unanswered.

use super::memory::Memory;
use super::{Answer, Session, State};
use crate::clock::Time;
use crate::engine::{Request, Verb, Vote};
use crate::node::command::{Form, KnownScripts, Meaning, describe, meaning};
use crate::node::flight::{InFlight, owed_of};
use crate::node::handshake::Identity;
use crate::node::problem::{OtherProtocol, Problem};
use crate::node::server_error::ServerErrorKind;
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
                        self.closed(now, problem);
                        return 0;
                    }
                    rest = &rest[used..];
                }
                Err(error) => {
                    self.closed(now, self.mistrust(rest, error));
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

    fn mistrust(&self, bytes: &[u8], error: ProtocolError) -> Problem {
        match OtherProtocol::recognise(bytes) {
            // A proxy that ends TLS may send an alert at any time.
            Some(OtherProtocol::Tls) => Problem::NotRedis(OtherProtocol::Tls),
            // What spoke RESP before has not become a web server.
            Some(other) if !matches!(self.state, State::Ready) => Problem::NotRedis(other),
            _ => Problem::Protocol(error),
        }
    }

    /// Takes a reply. An error means that the connection is of no more use.
    fn reply(&mut self, now: Time, reply: &Reply<'_>) -> Result<(), Problem> {
        if let Reply::Push(_) = reply {
            // A message that nobody asked for is the answer to nothing.
            return Ok(());
        }
        let secret = self.options.credentials.password.as_deref();
        if let State::Greeting { handshake, .. } = &mut self.state {
            if let Some(identity) = handshake.reply(reply, secret)? {
                self.greeted(now, identity);
            }
            return Ok(());
        }
        let Some(command) = self.flight.pop() else {
            let text = describe(reply, secret);
            return Err(Problem::UnexpectedReply(format!("{text}, and nothing was asked")));
        };
        self.is_proven = true;
        self.answered_at = now;
        self.backoff.reset();
        self.answered(now, command, reply)
    }

    /// Takes the reply to a command.
    fn answered(&mut self, now: Time, command: InFlight, reply: &Reply<'_>) -> Result<(), Problem> {
        let secret = self.options.credentials.password.as_deref();
        let answer = |vote, problem| {
            let took = Some(now.since(command.sent_at));
            let answer = command.ticket.map(|ticket| Answer::new(ticket, vote, problem));
            answer.map(|answer| Answer { was_sent: true, took, ..answer })
        };
        let meaning = meaning(&command.request, reply, secret);
        match &meaning {
            Meaning::Vote(_) | Meaning::Planted | Meaning::Claimed { .. } | Meaning::Seen(_) => {
                self.scripts.learn(&command.request);
            }
            // It has not forgotten just this one.
            Meaning::UnknownScript => self.scripts = KnownScripts::default(),
            Meaning::Failed(_) | Meaning::Nonsense(_) => {}
        }
        match meaning {
            Meaning::Planted => {
                let (vote, problem) = self.grant(now, true);
                self.answers.extend(answer(vote, problem));
            }
            Meaning::Claimed { is_planted, counter } => {
                let (vote, problem) = self.grant(now, is_planted);
                // What a node counts is worth knowing, whether its vote counts or not.
                let counter = Some(counter);
                let answer = answer(vote, problem);
                self.answers.extend(answer.map(|answer| Answer { counter, ..answer }));
            }
            Meaning::Seen(sighting) => {
                let answer = answer(Vote::Granted, None);
                let sighting = Some(sighting);
                self.answers.extend(answer.map(|answer| Answer { sighting, ..answer }));
            }
            Meaning::Vote(vote) => {
                self.answers.extend(answer(vote, None));
                // If one of several keys is another's, the rest may still be the lock before's.
                if vote == Vote::Refused && command.request.keys().nth(1).is_some() {
                    self.owe_predecessor(now, command.request);
                }
            }
            Meaning::UnknownScript
                if command.form == Form::Digest && !self.is_overtaken(&command) =>
            {
                self.flight.push(now, command.ticket, command.request, Form::Source);
            }
            Meaning::UnknownScript => {
                let text = describe(reply, secret);
                self.answers.extend(answer(Vote::Failed, Some(Problem::UnexpectedReply(text))));
                self.owe_predecessor(now, command.request);
            }
            Meaning::Failed(problem) => {
                self.answers.extend(answer(Vote::Failed, Some(problem.clone())));
                return self.refused(now, command.request, problem);
            }
            Meaning::Nonsense(problem) => {
                self.answers.extend(answer(Vote::Failed, Some(problem.clone())));
                self.owe_predecessor(now, command.request);
                return Err(problem);
            }
        }
        Ok(())
    }

    /// The vote of a node that has granted a lock. Where nobody held it, that is worth as much as
    /// the node's memory of who did.
    fn grant(&self, now: Time, is_planted: bool) -> (Vote, Option<Problem>) {
        match self.quarantine(now).filter(|_| is_planted) {
            None => (Vote::Granted, None),
            problem => (Vote::Failed, problem),
        }
    }

    /// The server has answered with an error. That it gives means that the connection is to end.
    fn refused(&mut self, now: Time, request: Request, problem: Problem) -> Result<(), Problem> {
        self.problem = Some(problem.clone());
        let kind = match &problem {
            Problem::Server(error) => Some(error.kind),
            _ => None,
        };
        // Whoever may not remove a key will not be able to later. With a lock's counter it is just
        // the lock after this one that cannot be had.
        let is_pointless = problem.is_permanent() && kind != Some(ServerErrorKind::Counter);
        if let Some(removal) = owed_of(request).filter(|_| !is_pointless) {
            // It is still owed: the node is busy, or reading its data, and holds the key.
            self.pay_at = now.after(self.options.reconnect.1);
            self.owe(now, None, removal);
        }
        // Behind this name there was a master; by now there may be another one.
        if kind == Some(ServerErrorKind::ReadOnly) { Err(problem) } else { Ok(()) }
    }

    /// Has a later command made this one harmful? Behind its own undo, what takes a lock would
    /// plant a key that nobody removes; behind a longer extension, a shorter one would take time
    /// away.
    fn is_overtaken(&self, command: &InFlight) -> bool {
        let token = &command.request.token;
        match command.request.verb {
            Verb::Plant | Verb::HandOver | Verb::Replant => {
                self.flight.has(token, Verb::is_removal)
            }
            Verb::Extend => self.flight.has(token, |verb| verb == Verb::Extend),
            _ => false,
        }
    }

    /// A lock was not handed over here: the one before is to be removed.
    fn owe_predecessor(&mut self, now: Time, request: Request) {
        if request.predecessor.is_some() {
            owed_of(request).into_iter().for_each(|removal| self.owe(now, None, removal));
        }
    }

    fn greeted(&mut self, now: Time, identity: Identity) {
        let heard_at = self.answered_at.max(self.memory.greeted_at);
        self.memory = Memory::of(now, &identity, self.identity.as_ref(), heard_at);
        self.identity = Some(identity);
        self.has_greeted = true;
        self.problem = None;
        self.state = State::Ready;
        // What is owed comes first: nothing may find a key that should be gone.
        self.pay_debts(now);
        for (ticket, request) in self.waiting.take() {
            self.send(now, Some(ticket), &request);
        }
    }
}
