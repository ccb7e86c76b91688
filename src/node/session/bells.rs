//! The bells of waiters: how a node tells this connection that it reserves a lock for a waiter.
//!
//! A waiter's bell is a key of its own, which does not exist. The connection reads it in a script
//! under `CLIENT TRACKING ON OPTIN` (RESP3, since Redis 6), so the server remembers the key for
//! this connection. When a node reserves the lock for the waiter, it sets that key, and the server
//! pushes an invalidation to this connection alone, and forgets the key.
//!
//! A ring is a hint. It may be lost with the connection, come twice or for nothing: the client asks
//! before it believes anything. Without RESP3, or without the right to `CLIENT TRACKING`, there is
//! none, and the waiters in front ask now and then.

use super::Session;
use crate::clock::Time;
use crate::engine::{Action, Listen, QueueEntry, QueueView, Removal, Request, Token, Verb, Vote};
use crate::node::Ticket;
use crate::node::command::{Form, Meaning, waiter_of_bell};
use crate::node::node_error::NodeError;
use crate::node::pending_releases::removal_if_unanswered;
use crate::node::report::QueueSupport;
use crate::node::server_error::{ServerError, ServerErrorKind};
use crate::node::session::Answer;
use crate::resp::{Elements, Reply};
use std::borrow::Cow;
use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

/// For how long a node that refused a waiter counts as one without a queue. Its rights may be
/// changed, and the refusal may have been a stray error.
const REFUSED: Duration = Duration::from_secs(30);

/// What is known about the queue and the bells on one connection.
#[derive(Debug, Default)]
pub(super) struct Bells {
    pushes: Pushes,
    /// The waiters whose bell the server remembers for this connection: none unless pushes are on.
    heard: BTreeSet<Token>,
    /// The waiters whose bell rang.
    rings: VecDeque<Token>,
    /// The waiters whose bell the server does not remember any more, although it did not ring.
    lost: Vec<Token>,
    /// Why the node has no queue, and until when it is not asked again.
    refusal: Option<(ServerError, Time)>,
    /// Has a waiter been in the queue of this node on this connection?
    is_used: bool,
    /// What [`Session::take_queue_change`] returned last.
    reported: Option<QueueSupport>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Pushes {
    #[default]
    NotAsked,
    On,
    Off,
}

impl Bells {
    /// For a new connection. What was reported stays reported.
    pub(super) fn after(self) -> Self {
        Self { reported: self.reported, lost: self.lost, ..Self::default() }
    }

    /// The server remembers no bell of this connection any more.
    pub(super) fn lose(&mut self) {
        self.lost.extend(std::mem::take(&mut self.heard));
    }

    /// Takes a push message. Reservations of a node whose grants do not count are of no use.
    pub(super) fn pushed(&mut self, message: &Elements<'_>, counts: bool) {
        let mut elements = message.iter();
        if !matches!(elements.next(), Some(Reply::Bulk(b"invalidate"))) {
            return;
        }
        match elements.next() {
            Some(Reply::Array(keys)) => {
                let bells = keys.iter().filter_map(|key| match key {
                    Reply::Bulk(key) => waiter_of_bell(key),
                    _ => None,
                });
                for waiter in bells {
                    if self.heard.remove(&waiter) && counts {
                        self.rings.push_back(waiter);
                    }
                }
            }
            // The database was emptied, and the server remembers no key any more.
            Some(Reply::Null) => self.lose(),
            _ => {}
        }
    }
}

impl Session {
    /// The next waiter for which the node reserves the lock, if it told so.
    pub(in crate::node) fn poll_ring(&mut self) -> Option<Token> {
        self.bells.rings.pop_front()
    }

    /// The waiter is gone: its bell is not waited for. The server may remember it for longer.
    pub(in crate::node) fn forget_bell(&mut self, waiter: &Token) {
        self.bells.heard.remove(waiter);
    }

    /// How many bells the server remembers for the connection, as far as is known.
    pub(in crate::node) fn bells(&self) -> usize {
        if self.is_down() { 0 } else { self.bells.heard.len() }
    }

    /// The waiters about whom the node tells nothing any more.
    pub(in crate::node) fn take_lost_bells(&mut self) -> Vec<Token> {
        std::mem::take(&mut self.bells.lost)
    }

    /// Does the node tell about reservations for this waiter?
    pub(in crate::node) fn is_heard(&self, waiter: &Token) -> bool {
        self.bells.heard.contains(waiter)
    }

    /// Whether clients can wait in a queue on this node, once that is known.
    pub(in crate::node) fn queue_support(&self) -> Option<QueueSupport> {
        if self.bells.refusal.is_some() {
            return Some(QueueSupport::Unsupported);
        }
        match self.bells.pushes {
            _ if !self.bells.is_used => None,
            Pushes::On => Some(QueueSupport::Full),
            Pushes::NotAsked | Pushes::Off => Some(QueueSupport::WithoutPushes),
        }
    }

    /// What the queue lacks, if that was not reported before.
    pub(in crate::node) fn take_queue_change(&mut self) -> Option<QueueSupport> {
        let support = self.queue_support().filter(|it| *it != QueueSupport::Full)?;
        let before = self.bells.reported.replace(support);
        (before != Some(support)).then_some(support)
    }

    /// Has the server tell this connection about the bell of the waiter that this request is about.
    pub(super) fn listen(&mut self, now: Time, request: &Request) {
        let is_resp3 = self.identity.as_ref().is_some_and(|identity| identity.is_resp3);
        let Action::Queue(QueueEntry { waiter, listens: true, .. }) = request.action else {
            return;
        };
        if !is_resp3 || self.bells.pushes == Pushes::Off {
            return;
        }
        if self.bells.pushes == Pushes::NotAsked {
            self.bells.pushes = Pushes::On;
            self.write_listen(now, request, Listen::Enable);
        }
        if self.bells.heard.insert(waiter) {
            self.write_listen(now, request, Listen::OptIn);
            self.write_listen(now, request, Listen::Read(waiter));
        }
    }

    fn write_listen(&mut self, now: Time, request: &Request, step: Listen) {
        let action = Action::Listen { key: request.key().into(), step };
        // By its source: the server would forget `CLIENT CACHING` with a script that it does not
        // know.
        self.flight.push(now, None, Request { action, ..request.clone() }, Form::Source);
    }

    /// Takes the answer about a waiter. A reservation of a node whose grants do not count is not
    /// waited for.
    pub(super) fn queued(&mut self, request: &Request, view: QueueView, counts: bool) -> QueueView {
        let is_reserved = view.is_reserved && counts;
        let waiter = request.waiter();
        let is_heard = waiter.is_some_and(|waiter| self.is_heard(&waiter));
        self.bells.is_used = true;
        self.bells.rings.extend(waiter.filter(|_| is_reserved));
        QueueView { is_reserved, is_heard, ..view }
    }

    /// Processes the reply to a step of [`listen`](Self::listen). An `+OK` in doubt, behind half a
    /// push message for instance, is no refusal.
    pub(super) fn listened(
        &mut self,
        meaning: Meaning,
        reply: &Reply<'_>,
    ) -> Result<(), NodeError> {
        match (meaning, reply) {
            (Meaning::Nonsense(problem), _) => Err(problem),
            (Meaning::Failed(_) | Meaning::UnknownScript, Reply::Error(_)) => {
                self.bells.pushes = Pushes::Off;
                self.bells.heard.clear();
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// The request as this node can carry it out: without the queue if it has none.
    pub(super) fn adapted<'a>(
        &mut self,
        now: Time,
        ticket: Option<Ticket>,
        request: &'a Request,
    ) -> (Option<Ticket>, Cow<'a, Request>) {
        let Some((refusal, until)) = &self.bells.refusal else {
            return (ticket, Cow::Borrowed(request));
        };
        if now >= *until {
            self.bells.refusal = None;
            return (ticket, Cow::Borrowed(request));
        }
        let action = match &request.action {
            Action::Queue(_) => {
                let problem = NodeError::NoQueue(refusal.clone());
                let failed = |ticket| Answer::new(ticket, Vote::Failed, Some(problem));
                self.answers.extend(ticket.map(failed));
                let removal = removal_if_unanswered(request.clone());
                return (None, Cow::Owned(removal.unwrap_or_else(|| request.clone())));
            }
            Action::Turn { new, .. } => Action::Acquire(new.clone()),
            Action::Release(removal) => {
                Action::Release(Removal { waiter: None, ..removal.clone() })
            }
            Action::Undo(removal) => Action::Undo(Removal { waiter: None, ..removal.clone() }),
            _ => return (ticket, Cow::Borrowed(request)),
        };
        (ticket, Cow::Owned(Request { action, ..request.clone() }))
    }

    /// Is this error the answer of a node that has no queue? Then it is noted.
    pub(super) fn refuses_queue(
        &mut self,
        now: Time,
        request: &Request,
        error: &ServerError,
    ) -> bool {
        let is_lasting = matches!(
            error.kind,
            ServerErrorKind::NoPermission
                | ServerErrorKind::UnknownCommand
                | ServerErrorKind::Other
        );
        let is_refusal = is_lasting && request.verb() == Verb::Queue;
        if is_refusal {
            self.bells.refusal = Some((error.clone(), now.after(REFUSED)));
        }
        is_refusal
    }

    /// Ends the wait for this answer. Returns whether the request is unsent: then it is sent only
    /// if it is a removal, or would have withdrawn an attempt.
    pub fn cancel(&mut self, ticket: Ticket) -> bool {
        if let Some(request) = self.waiting.cancel(ticket) {
            if request.verb() == Verb::Queue {
                let now = request.started;
                let removal = removal_if_unanswered(request);
                removal.into_iter().for_each(|removal| self.remove_later(now, None, removal));
            }
            return true;
        }
        self.pending_releases.unwait(ticket)
    }
}
