//! What a server sends, and what follows from it.

use super::beats::Beats;
use super::flight::{Owner, PendingDelete, Sent};
use super::{
    EnsembleAnswer, EnsembleSession, Failure, Problem, SessionEvent, SessionIdentity, State,
};
use crate::message::{
    AUTH_XID, ConnectReply, EnsembleError, EnsembleReply, EnsembleRequest, Incoming, Remedy,
    ReplyHeader,
};
use crate::validity::{SessionTimeout, Validity};
use redlatch_protocol::time::Time;
use std::time::Duration;

impl<T: Copy> EnsembleSession<T> {
    pub(super) fn take_frame(&mut self, now: Time, body: &[u8]) {
        if let State::Greeting { sent_at, .. } = self.state {
            return match ConnectReply::decode(body) {
                Ok(reply) => self.greeted(now, sent_at, &reply),
                Err(error) => self.closed(now, Problem::Protocol(error)),
            };
        }
        match Incoming::decode(body) {
            Ok(Incoming::Event { path }) => {
                self.outcomes
                    .push_back(SessionEvent::Changed { path: path.into() });
            }
            Ok(Incoming::Reply { header, body }) => self.replied(now, header, body),
            Err(error) => self.closed(now, Problem::Protocol(error)),
        }
    }

    fn greeted(&mut self, now: Time, sent_at: Time, reply: &ConnectReply) {
        let known = self.identity.as_ref();
        let is_gone = known.is_some_and(|known| known.id != reply.session);
        if reply.timeout_ms <= 0 || is_gone {
            // A session that was to begin and did not is not a session that was lost.
            return match known {
                Some(_) => self.lose_session(now, Problem::SessionGone),
                None => self.closed(now, Problem::SessionGone),
            };
        }
        let granted = Duration::from_millis(u64::from(reply.timeout_ms.unsigned_abs()));
        let timeout = SessionTimeout::new(granted, self.options.drift_parts_per_billion);
        let identity = self.identity.get_or_insert_with(|| SessionIdentity {
            id: reply.session,
            password: reply.password,
            validity: Validity::new(timeout),
        });
        identity.password = reply.password;
        identity.validity.connected(sent_at, now, timeout);
        self.state = State::Ready { since: now };
        self.beats.connected(now);
        self.outcomes.push_back(SessionEvent::Connected);
        if let Some(credentials) = &self.options.credentials {
            let request = EnsembleRequest::Auth(credentials.clone());
            self.write(now, Owner::Auth, &request);
        }
        self.write_pending(now);
        for (owner, request) in std::mem::take(&mut self.waiting) {
            self.write(now, owner, &request);
        }
    }

    fn replied(&mut self, now: Time, header: ReplyHeader, body: &[u8]) {
        let oldest = self
            .flight
            .requests
            .front()
            .filter(|oldest| oldest.xid == header.xid);
        let Some(&Sent { kind, probe, .. }) = oldest else {
            return self.closed(now, Problem::WrongXid(header.xid));
        };
        self.last_zxid = self.last_zxid.max(header.zxid);
        // A reply with an error has no body.
        let decoded = match header.error {
            None => EnsembleReply::decode(kind, body).map(Some),
            Some(_) => Ok(None),
        };
        let reply = match decoded {
            Ok(reply) => reply,
            Err(error) => return self.closed(now, Problem::Protocol(error)),
        };
        // A transaction has no error in its header. What its results say of the session counts as
        // if it had.
        let of_results = match reply {
            Some(EnsembleReply::Results(results)) => results.error(),
            _ => None,
        };
        let error = header.error.or(of_results);
        // What a server refuses by itself was neither seen by its leader nor logged by anybody. Of
        // an error about znodes, the majority logs that it was one.
        let is_logged = error.is_none_or(|error| {
            matches!(
                error,
                EnsembleError::NoNode | EnsembleError::NodeExists | EnsembleError::NotEmpty
            )
        });
        let identity = self.identity.as_mut().filter(|_| is_logged);
        if let Some((identity, probe)) = identity.zip(probe) {
            identity.validity.answered(now, probe);
        }
        match error.map(|error| (error, error.remedy())) {
            Some((error, Remedy::NewSession)) => self.lose_session(now, Problem::Refused(error)),
            Some((error, Remedy::Reconnect)) => self.closed(now, Problem::Moved(error)),
            Some((error, _)) if header.xid == AUTH_XID => self.closed(now, Problem::Refused(error)),
            _ => {
                let sent = self.flight.requests.pop_front();
                self.conclude(sent.expect("it is the oldest"), now, header, body, reply);
            }
        }
    }

    fn conclude(
        &mut self,
        sent: Sent<T>,
        now: Time,
        header: ReplyHeader,
        body: &[u8],
        reply: Option<EnsembleReply<'_>>,
    ) {
        let ReplyHeader { zxid, error, .. } = header;
        match (sent.owner, error) {
            (Owner::End, _) => {
                self.forget_session(now);
                self.outcomes.push_back(SessionEvent::Ended);
            }
            (Owner::Beat(checks), _) => {
                if let Some(EnsembleReply::Results(results)) = reply {
                    // Unless the session has deleted it since the beat was sent.
                    let missing = Beats::missing(&checks, &results);
                    if let Some(path) = missing.filter(|path| self.beats.remove(path)) {
                        self.beats.found_missing(&path);
                        self.outcomes.push_back(SessionEvent::Removed { path });
                    }
                }
            }
            (Owner::Delete(delete), Some(error)) if error.remedy() == Remedy::Wait => {
                // The next beat takes it along.
                self.pending.push_back(delete);
            }
            (Owner::Delete(delete), Some(EnsembleError::NoNode)) if delete.may_be_done => {
                let result = Ok((sent.kind, Box::default()));
                self.answer(delete.ticket, EnsembleAnswer { zxid, result });
            }
            (owner, error) => {
                let result = match error {
                    None => Ok((sent.kind, body.into())),
                    Some(error) => Err(Failure::Server(error)),
                };
                self.answer(owner.ticket(), EnsembleAnswer { zxid, result });
            }
        }
    }

    fn answer(&mut self, ticket: Option<T>, answer: EnsembleAnswer) {
        self.outcomes
            .extend(ticket.map(|ticket| SessionEvent::Answer(ticket, answer)));
    }

    pub(super) fn fail(&mut self, ticket: Option<T>, failure: Failure) {
        self.answer(
            ticket,
            EnsembleAnswer {
                zxid: 0,
                result: Err(failure),
            },
        );
    }

    /// The ensemble does not know the session any more.
    fn lose_session(&mut self, now: Time, problem: Problem) {
        self.outcomes.push_back(SessionEvent::SessionLost);
        // At once, unless the session had hardly begun: a server may end each as soon as it begins.
        let has_lasted = match self.state {
            State::Ready { since } => now.since(since) >= self.beat(),
            _ => true,
        };
        let retry_at = if has_lasted {
            now
        } else {
            self.servers.failed(now, false)
        };
        self.forget_session(retry_at);
        self.problem = Some(problem);
    }

    /// There is no session any more, and none of its znodes. The next one may begin then.
    fn forget_session(&mut self, retry_at: Time) {
        self.identity = None;
        self.beats.clear();
        self.go_down(retry_at, &Failure::SessionLost);
        for delete in std::mem::take(&mut self.pending) {
            self.fail(delete.ticket, Failure::SessionLost);
        }
    }

    /// The connection has ended: nothing on it will be answered.
    pub(super) fn go_down(&mut self, retry_at: Time, failure: &Failure) {
        self.state = State::Down { retry_at };
        self.input.clear();
        for sent in self.flight.clear().into_iter().rev() {
            match sent.owner {
                Owner::Delete(delete) => {
                    self.pending.push_front(PendingDelete {
                        may_be_done: true,
                        ..delete
                    });
                }
                owner => self.fail(owner.ticket(), failure.clone()),
            }
        }
        for (owner, _) in std::mem::take(&mut self.waiting) {
            self.fail(owner.ticket(), failure.clone());
        }
    }
}
