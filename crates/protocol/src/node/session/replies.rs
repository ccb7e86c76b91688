//! Replies, processed in order: each belongs to the oldest unanswered command. What it is worth,
//! `trust` says.

use super::{Answer, Session, State};
use crate::engine::{Command, Vote};
use crate::node::command::{Form, NoReply, NodeReply, describe, read};
use crate::node::flight::InFlight;
use crate::node::{NodeError, ServerError, ServerErrorKind};
use crate::resp::Reply;
use crate::time::Time;
use std::time::Duration;

impl Session {
    /// Decodes the input. Returns how many bytes at its end are an incomplete reply.
    pub(super) fn decode(&mut self, now: Time, input: &[u8]) -> usize {
        let mut rest = input;
        while !rest.is_empty() {
            let problem = match self.connection.decoder.decode(rest) {
                Ok(None) => break,
                Ok(Some((reply, used))) => {
                    rest = &rest[used..];
                    self.reply(now, &reply).err()
                }
                // There are too few bytes to recognise the protocol: the next ones decide.
                Err(_) if self.may_be_foreign(rest) => break,
                Err(error) => Some(self.decode_error(rest, error)),
            };
            if let Some(problem) = problem {
                self.distrust(now, problem);
            }
            if self.is_down() {
                return 0;
            }
        }
        rest.len()
    }

    /// Processes a reply. An error means that the connection must be closed.
    fn reply(&mut self, now: Time, reply: &Reply<'_>) -> Result<(), NodeError> {
        if let Reply::Push(message) = reply {
            if !self.is_subscribed(message) {
                // A push message answers no other command.
                let counts = self.quarantine_left(now).is_none();
                self.notifications
                    .pushed(message, self.flight.tag(), counts);
                return Ok(());
            }
        }
        let secret = self.options.credentials.password.as_deref();
        if let State::Greeting { handshake, since } = &mut self.state {
            let was_ending = handshake.stale.is_ending();
            let result = handshake.reply(reply, secret, self.flight.output_mut());
            if matches!(&result, Err(problem) if handshake.is_invalid_end_answer(problem)) {
                self.server.stale.note_invalid_answer();
            }
            let greeted = result?;
            let is_step = handshake.stale.is_ending() && !was_ending;
            if is_step {
                *since = now;
                self.step_done(now);
            }
            let is_error = matches!(reply, Reply::Error(_));
            self.trust.order.credit(None, is_error, true);
            if let Some((identity, stale)) = greeted {
                self.server.stale = stale;
                self.expect_named_kind(&identity)?;
                self.greeted(now, identity);
            }
            return Ok(());
        }
        let next = if self.flight.is_next_written() {
            self.flight.pop()
        } else {
            None
        };
        let Some(command) = next else {
            return Err(match reply {
                // A server that refuses a client sends the reason.
                Reply::Error(text) => NodeError::Server(ServerError::parse(text, secret)),
                _ => unasked(&describe(reply, secret)),
            });
        };
        self.answered_at = now;
        self.arrival.answered(now, command.sent_at);
        let result = self.answered(now, command, reply);
        self.connection.is_proven = result.is_ok();
        if self.connection.is_proven {
            self.backoff.reset();
        }
        result
    }

    /// The error for an incomplete reply on an idle connection, unless it is a push message or an
    /// attribute. Once complete, it would be matched to the next command.
    pub(super) fn unsolicited_beginning(&self, input: &[u8]) -> Option<NodeError> {
        let first = self.connection.decoder.begun(input)?;
        let is_idle = self.is_ready() && self.flight.is_empty();
        let is_stray = is_idle && !matches!(first, b'>' | b'|') && !self.may_be_foreign(input);
        is_stray.then(|| unasked("the beginning of a reply"))
    }

    fn answered(
        &mut self,
        now: Time,
        command: InFlight,
        reply: &Reply<'_>,
    ) -> Result<(), NodeError> {
        let secret = self.options.credentials.password.as_deref();
        let mut read = read(&command.request, command.number, reply, secret);
        if let Reply::Error(text) = reply {
            let sent = (&command.request, command.form);
            read = self.connection.scripts.read_error(sent, text, read);
        }
        let read = self.weigh(now, &command, reply, read);
        if command.request.is_claim() {
            self.connection.has_granted = matches!(&read, Ok(it) if it.vote == Vote::Granted);
        }
        match &command.request.command {
            Command::Listen(listen) => return self.listened(listen.step, read, reply),
            #[cfg(feature = "groups")]
            Command::Reign(question) => {
                let step = question.step.clone();
                return self.reigned(now, &command, &step, read);
            }
            #[cfg(feature = "diagnostics")]
            Command::Ask(question) => {
                return self.examined(*question, read, (command.sent_at, now));
            }
            Command::Custom(custom) => {
                let is_read =
                    matches!(&read, Ok(it) if it.said.is_some() && it.vote == Vote::Granted);
                if let Some(watcher) = custom.watcher().filter(|_| !is_read) {
                    // The key was not read for it, so the server remembers nothing of it.
                    self.notifications.watched.remove(&watcher);
                }
            }
            _ => {}
        }
        match read {
            Ok(read) => {
                self.connection
                    .scripts
                    .learn(&command.request, command.form, command.sent_at);
                self.count(now, command, read);
                Ok(())
            }
            Err(why) => self.not_answered(now, command, reply, why),
        }
    }

    fn count(&mut self, now: Time, command: InFlight, mut reply: NodeReply) {
        let InFlight {
            ticket,
            request,
            sent_at,
            ..
        } = command;
        let took = Some(now.since(sent_at));
        if let Some(view) = reply.view.take() {
            let counts = reply.problem.is_none();
            reply.view = Some(Box::new(self.queued(&request, *view, counts)));
        }
        let is_refused = reply.vote == Vote::Refused;
        if let Some(ticket) = ticket {
            self.deliver(
                Answer {
                    ticket,
                    reply,
                    was_sent: true,
                    took,
                },
                &request,
            );
        }
        // If another lock holds one of several keys, the predecessor may hold the rest.
        if is_refused && request.has_more_keys() {
            self.remove_predecessor_later(now, request);
        }
    }

    /// Handles a reply that answers nothing. An error means that the connection must be closed.
    fn not_answered(
        &mut self,
        now: Time,
        command: InFlight,
        reply: &Reply<'_>,
        why: NoReply,
    ) -> Result<(), NodeError> {
        self.note_hidden_look(now, &command.request, &why);
        let why = match self.options.group {
            Some(_) => self.of_group(why),
            None => why,
        };
        match why {
            NoReply::UnknownScript => {
                self.unknown_script(now, command, reply);
                Ok(())
            }
            NoReply::Failed(NodeError::Server(error))
                if self.refuses_queue(now, &command.request, &error) =>
            {
                self.fail_answered(now, &command, NodeError::NoQueue(error));
                self.leave_later(now, &command.request);
                Ok(())
            }
            NoReply::Failed(problem) => {
                self.fail_answered(now, &command, problem.clone());
                self.refused(now, command, problem)
            }
            NoReply::Nonsense(problem) => {
                self.fail_answered(now, &command, problem.clone());
                self.remove_again_later(now, command);
                Err(problem)
            }
        }
    }

    /// Fails a request that was answered, but not with a vote.
    fn fail_answered(&mut self, now: Time, command: &InFlight, problem: NodeError) {
        self.answers.extend(command.ticket.map(|ticket| Answer {
            ticket,
            reply: NodeReply::failed(problem),
            was_sent: true,
            took: Some(now.since(command.sent_at)),
        }));
    }

    /// The other form of a request whose script the server does not know, or whose form it refuses.
    /// What needs no script is sent once more.
    pub(super) fn other_form(&mut self, now: Time, command: &InFlight) -> Option<Form> {
        let form = match command.request.script() {
            Some(_) => self.connection.scripts.form(now, &command.request, false),
            None => Form::Source,
        };
        Some(form).filter(|form| *form != command.form)
    }

    /// Sends a request again whose script the server does not know, or whose form it refuses.
    fn unknown_script(&mut self, now: Time, command: InFlight, reply: &Reply<'_>) {
        if let Some(form) = self.other_form(now, &command) {
            if command.request.is_removal() {
                // This may be long after it was sent.
                return self.remove_later(now, command.ticket, command.request);
            }
            if !self.is_overtaken(&command) {
                if self.options.group.is_some() {
                    self.note_again(&command);
                }
                return self.flight.push(now, command.ticket, command.request, form);
            }
        }
        let text = describe(reply, self.options.credentials.password.as_deref());
        self.fail(command.ticket, &NodeError::UnexpectedReply(text), true);
        match command.form {
            // The failed attempt that it would have withdrawn, unless that removal is in flight.
            Form::Digest if command.request.queue_entry().is_some() => {
                let token = command.request.token();
                let is_in_flight = self
                    .flight
                    .has(|request| request.is_removal() && request.token() == token);
                if token.is_none() || !is_in_flight {
                    self.undo_later(now, command.request);
                }
            }
            Form::Digest => self.remove_predecessor_later(now, command.request),
            // The server does not know the script whose source it was just sent.
            Form::Source => self.remove_again_later(now, command),
        }
    }

    /// Processes an error of the server. Returns an error if the connection must be closed.
    fn refused(
        &mut self,
        now: Time,
        command: InFlight,
        problem: NodeError,
    ) -> Result<(), NodeError> {
        if command.request.is_look() {
            return Ok(());
        }
        self.problem = Some(problem.clone());
        let kind = if let NodeError::Server(error) = &problem {
            Some(error.kind)
        } else {
            None
        };
        // Without the right to remove a key, sending the removal again is pointless. An invalid
        // counter prevents only the next lock, not a removal.
        let is_pointless = problem.is_permanent() && kind != Some(ServerErrorKind::Counter);
        if !is_pointless {
            // The node is busy or loading its data, and may hold the key.
            self.remove_again_later(now, command);
        }
        // The name was resolved to a former master. It may lead to the new one by now.
        // A slot on its way to another server still has the keys that have not moved.
        let is_elsewhere = matches!(&problem, NodeError::NoMaster(_) | NodeError::ClusterDown(_));
        if kind == Some(ServerErrorKind::Replica) || is_elsewhere {
            Err(problem)
        } else {
            Ok(())
        }
    }

    /// Is the removal of this command's key already in flight? If a command that sets a key is
    /// sent again behind its own undo, nothing removes that key.
    fn is_overtaken(&self, command: &InFlight) -> bool {
        let request = &command.request;
        let sets = matches!(&request.command, Command::Keep(keep) if keep.sets());
        let takes = request.is_claim() || request.queue_entry().is_some() || sets;
        let token = request.token().filter(|_| takes);
        // A waiter leaves with the token of its last attempt, and joined with that of its first.
        let waiter = request.waiter().filter(|_| takes);
        self.flight.has(|it| {
            let is_same = token.is_some() && it.token() == token;
            it.is_removal() && (is_same || waiter.is_some() && it.waiter() == waiter)
        })
    }
}

fn unasked(what: &str) -> NodeError {
    NodeError::UnexpectedReply(format!("{what}, and nothing was asked"))
}

/// How many distrusted connections within [`DISTRUST`] are made again without a pause. So one stray
/// reply costs no round, and a peer that sends invalid replies does not cause a new connection for
/// each round.
const DISTRUSTED_MAX: u32 = 4;

/// The time within which distrusted connections are counted.
const DISTRUST: Duration = Duration::from_secs(1);

impl Session {
    /// Closes a connection whose replies cannot be trusted.
    pub(super) fn distrust(&mut self, now: Time, problem: NodeError) {
        if self.is_down() {
            return;
        }
        self.closed(now, problem);
        let (since, count) = self.distrusted;
        let is_again = count > 0 && now.since(since) < DISTRUST;
        self.distrusted = if is_again {
            (since, count.saturating_add(1))
        } else {
            (now, 1)
        };
        if self.distrusted.1 > DISTRUSTED_MAX {
            self.state = State::Down {
                retry_at: now.after(self.options.reconnect.1),
            };
        }
    }
}
