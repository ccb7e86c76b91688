//! Notifications: how a node tells this connection about its waiters. And nodes without a queue, or
//! with less than a full one: what this connection asks of them instead.
//!
//! A connection on which somebody waits subscribes to a channel of its own (RESP3, where commands
//! and subscriptions share a connection). A waiter's entry on the node names that channel. When the
//! node reserves the lock for the waiter, the script publishes a message there, and learns at once
//! if nobody hears it: then that connection is gone, and the next waiter is first. In a cluster the
//! channel is one of the shard (since Redis 7): other messages go to all nodes of the cluster.
//!
//! The first waiter also hears of changes of the lock's key (`CLIENT TRACKING`, since Redis 6): a
//! program that knows no queue deletes the key and notifies nobody. A waiter's own requests change
//! the key as well. That is nothing to ask about, so they end what it hears until it waits again.
//!
//! A notification is a hint. It may be lost with the connection, come twice or for nothing: what it
//! leads to is a request. Without RESP3, or without the rights to `SUBSCRIBE` and `PUBLISH`, there
//! is none, and the waiters in front ask now and then.

use super::{Session, State};
use crate::engine::{
    Before, Channel, Claim, Command, CustomCommand, Listen, ListenStep, QueueEntry, QueueView,
    QueueWait, Request, Token, Vote,
};
use crate::node::command::{NoReply, NodeReply, Notification, read_notification};
use crate::node::pending_releases::removal_if_unanswered;
use crate::node::script::is_subscribed;
use crate::node::{NodeError, QueueSupport, ServerError, ServerErrorKind, SharedRequest, Ticket};
use crate::resp::{Elements, Reply};
use crate::time::Time;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

/// What a node has told about a waiter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hint {
    /// It reserves the lock for the waiter; of a set, one of the resources.
    Reserved,
    /// It has answered to the waiter, about a lock of this many keys, whether it reserves all.
    Answered {
        keys: usize,
        reserves: bool,
    },
    /// The waiter may be the first in this time.
    AskIn(Duration),
    Changed,
    /// Its connection was lost: from now on it tells nothing.
    Lost,
}

impl Hint {
    /// Does the node reserve the lock for the waiter?
    pub fn is_reservation(self) -> bool {
        matches!(self, Self::Reserved | Self::Answered { reserves: true, .. })
    }
}

/// What is known about the queue and the notifications on one connection.
#[derive(Debug, Default)]
pub(super) struct Notifications {
    channel: PushSupport,
    /// Has the server refused a channel of its shard?
    is_unsharded: bool,
    tracking: PushSupport,
    /// The waiters whose entry on the node names the channel of this connection, and whether a
    /// reservation for them counts in a quarantine.
    heard: BTreeMap<Token, bool>,
    /// The waiters that are told when a key changes, and whether the server has answered that it
    /// remembers the key: what it tells before is about a change before.
    pub(super) watched: BTreeMap<Token, (Arc<[u8]>, bool)>,
    /// What [`Session::poll`] returns next of what the node has told.
    pub(super) hints: VecDeque<(Token, Hint)>,
    /// Why the node has no queue, and until when it is not asked again.
    pub(super) refusal: Option<(ServerError, Time)>,
    /// Has a waiter been in the queue of this node on this connection?
    pub(super) is_used: bool,
    /// What [`Session::take_queue_change`] returned last.
    pub(super) reported: Option<QueueSupport>,
}

/// Does the server send messages of one kind on this connection?
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum PushSupport {
    #[default]
    NotAsked,
    On,
    Off,
}

impl Notifications {
    /// For a new connection. What was reported stays reported.
    pub(super) fn after(self) -> Self {
        Self {
            reported: self.reported,
            hints: self.hints,
            ..Self::default()
        }
    }

    /// The server tells this connection nothing any more.
    pub(super) fn lose(&mut self) {
        self.watched.clear();
        let lost = std::mem::take(&mut self.heard);
        self.hints
            .extend(lost.into_keys().map(|waiter| (waiter, Hint::Lost)));
    }

    /// Takes a push message. Reservations of a node whose grants do not count are of no use.
    pub(super) fn pushed(&mut self, message: &Elements<'_>, tag: &[u8], counts: bool) {
        let mut elements = message.iter();
        match (elements.next(), elements.next(), elements.next()) {
            (Some(Reply::Bulk(b"message" | b"smessage")), Some(_), Some(Reply::Bulk(text))) => {
                let hint = match read_notification(text) {
                    Some((waiter, Notification::Reserved))
                        if counts || self.heard.get(&waiter) == Some(&true) =>
                    {
                        (waiter, Hint::Reserved)
                    }
                    Some((waiter, Notification::AskIn(time))) => (waiter, Hint::AskIn(time)),
                    _ => return,
                };
                self.hints.push_back(hint);
            }
            (Some(Reply::Bulk(b"invalidate")), Some(Reply::Array(keys)), _) => {
                self.changed(|key| {
                    keys.iter().any(|name| match name {
                        Reply::Bulk(name) => name.strip_prefix(tag) == Some(key),
                        _ => false,
                    })
                });
            }
            // The database was emptied, and the server remembers no key any more.
            (Some(Reply::Bulk(b"invalidate")), Some(Reply::Null), _) => self.changed(|_| true),
            _ => {}
        }
    }

    /// Keys have changed, which the server remembers no more.
    fn changed(&mut self, is_key: impl Fn(&[u8]) -> bool) {
        let hints = &mut self.hints;
        self.watched.retain(|waiter, (key, is_remembered)| {
            let is_changed = *is_remembered && is_key(key);
            hints.extend(is_changed.then_some((*waiter, Hint::Changed)));
            !is_changed
        });
    }

    /// Does the node notify about everything that a waiter needs to know?
    fn is_full(&self) -> bool {
        self.channel == PushSupport::On && self.tracking != PushSupport::Off
    }
}

impl Session {
    /// The waiter is gone. The server may remember its key for longer.
    pub(in crate::node) fn forget_waiter(&mut self, waiter: &Token) {
        self.notifications.heard.remove(waiter);
        self.notifications.watched.remove(waiter);
    }

    /// How many waiters the node notifies, as far as is known.
    pub(in crate::node) fn waiters_heard(&self) -> usize {
        self.notifications.heard.len()
    }

    /// Subscribes to the channel of this connection before the first waiter enters the queue.
    pub(super) fn listen(&mut self, now: Time, entry: &QueueEntry, counts_in_quarantine: bool) {
        let QueueEntry {
            lock,
            waiter,
            channel: Some(channel),
            ..
        } = entry
        else {
            return;
        };
        if self.notifications.channel == PushSupport::NotAsked {
            self.notifications.channel = PushSupport::On;
            self.write_listen(now, &lock.key, ListenStep::Subscribe(*channel));
        }
        self.notifications
            .heard
            .insert(*waiter, counts_in_quarantine);
        self.notifications.watched.remove(waiter);
    }

    /// Has the server tell when the key that this waiter waits for changes, if it does not already.
    pub(in crate::node) fn watch_key(&mut self, now: Time, wait: &QueueWait) {
        let QueueWait {
            key,
            waiter,
            watches,
            ..
        } = wait;
        let Notifications {
            heard,
            watched,
            tracking,
            ..
        } = &mut self.notifications;
        let is_needed = *watches && heard.contains_key(waiter) && !watched.contains_key(waiter);
        let is_possible = *tracking != PushSupport::Off && self.flight.has_room_for(false);
        if !is_needed || !is_possible || !matches!(self.state, State::Ready) {
            return;
        }
        watched.insert(*waiter, (Arc::clone(key), false));
        if *tracking == PushSupport::NotAsked {
            *tracking = PushSupport::On;
            self.write_listen(now, key, ListenStep::Enable);
        }
        self.write_listen(now, key, ListenStep::OptIn);
        self.write_listen(now, key, ListenStep::Read(*waiter));
    }

    /// Has the server tell when the key changes that this custom command reads, for whoever waits
    /// for that, if it does not already.
    pub(super) fn track(&mut self, now: Time, command: &Arc<dyn CustomCommand>) -> bool {
        let Some(watcher) = command.watcher() else {
            return false;
        };
        let Notifications {
            heard,
            watched,
            tracking,
            ..
        } = &mut self.notifications;
        heard.insert(watcher, false);
        let is_resp3 = self
            .server
            .identity
            .as_ref()
            .is_some_and(|identity| identity.is_resp3);
        if !is_resp3 || *tracking == PushSupport::Off || watched.contains_key(&watcher) {
            return false;
        }
        let key = Arc::clone(command.key());
        watched.insert(watcher, (Arc::clone(&key), true));
        if *tracking == PushSupport::NotAsked {
            *tracking = PushSupport::On;
            self.write_listen(now, &key, ListenStep::Enable);
        }
        self.write_listen(now, &key, ListenStep::OptIn);
        true
    }

    /// Does the server tell this waiter when a key changes, as far as is known?
    pub(in crate::node) fn watches(&self, waiter: &Token) -> bool {
        self.notifications.watched.contains_key(waiter)
    }

    fn write_listen(&mut self, now: Time, key: &Arc<[u8]>, step: ListenStep) {
        let listen = Command::Listen(Listen {
            key: Arc::clone(key),
            step,
        });
        let request = Request::in_no_round(now, listen).into();
        let form = self.connection.scripts.form(now, &request, true);
        self.flight.push(now, None, request, form);
    }

    /// Takes the answer about a waiter. A reservation of a node whose grants do not count is not
    /// waited for.
    pub(super) fn queued(&mut self, request: &Request, view: QueueView, counts: bool) -> QueueView {
        let is_reserved = view.is_reserved && counts;
        let waiter = request.waiter();
        let is_heard = self.notifications.is_full()
            && waiter.is_some_and(|waiter| self.notifications.heard.contains_key(&waiter));
        self.notifications.is_used = true;
        if let Some(entry) = request.queue_entry() {
            let answered = Hint::Answered {
                keys: entry.lock.keys().count(),
                reserves: is_reserved,
            };
            self.notifications.hints.push_back((entry.waiter, answered));
        }
        QueueView {
            is_reserved,
            is_heard,
            ..view
        }
    }

    /// Is this push message the answer to the oldest command in flight, to `SUBSCRIBE`?
    pub(super) fn is_subscribed(&self, message: &Elements<'_>) -> bool {
        let is_asked = self.flight.next().is_some_and(|request| {
            let Command::Listen(listen) = &request.command else {
                return false;
            };
            matches!(listen.step, ListenStep::Subscribe(_))
        });
        is_asked && is_subscribed(message)
    }

    /// Processes the reply to a step of [`listen`](Self::listen) or
    /// [`watch_key`](Self::watch_key). An `+OK` in doubt, behind half a push message for instance,
    /// is not a refusal.
    pub(super) fn listened(
        &mut self,
        step: ListenStep,
        read: Result<NodeReply, NoReply>,
        reply: &Reply<'_>,
    ) -> Result<(), NodeError> {
        match (read, reply, step) {
            (Err(NoReply::Nonsense(problem)), ..) => return Err(problem),
            (Err(_), Reply::Error(_), ListenStep::Subscribe(channel)) => {
                // A server before Redis 7, or a user without that right: then a common channel.
                self.notifications.channel = if channel.is_sharded {
                    PushSupport::NotAsked
                } else {
                    PushSupport::Off
                };
                self.notifications.is_unsharded = true;
                self.notifications.lose();
            }
            (Err(_), Reply::Error(_), _) => {
                self.notifications.tracking = PushSupport::Off;
                let watched = std::mem::take(&mut self.notifications.watched);
                let changed = watched.into_keys().map(|waiter| (waiter, Hint::Changed));
                self.notifications.hints.extend(changed);
            }
            (Ok(read), _, ListenStep::Read(waiter)) if read.vote == Vote::Granted => {
                let watched = self.notifications.watched.get_mut(&waiter);
                watched
                    .into_iter()
                    .for_each(|(_, is_remembered)| *is_remembered = true);
            }
            // The key was gone before the server could remember it.
            (Ok(_), _, ListenStep::Read(waiter)) => {
                let watched = self.notifications.watched.remove(&waiter);
                let changed = watched.map(|_| (waiter, Hint::Changed));
                self.notifications.hints.extend(changed);
            }
            _ => {}
        }
        Ok(())
    }
}

// Nodes without a queue, or with less than a full one.

/// For how long a node that refused a waiter counts as one without a queue. Its rights may be
/// changed, and the refusal may have been a stray error.
const NO_QUEUE_FOR: Duration = Duration::from_secs(30);

impl Session {
    /// Whether clients can wait in a queue on this node, once that is known.
    #[cfg(feature = "diagnostics")]
    pub(in crate::node) fn queue_support(&self, now: Time) -> Option<QueueSupport> {
        let refusal = self.notifications.refusal.as_ref();
        self.support(refusal.is_some_and(|(_, until)| now < *until))
    }

    fn support(&self, is_refused: bool) -> Option<QueueSupport> {
        if is_refused {
            return Some(QueueSupport::Unsupported);
        }
        let is_full = self.notifications.is_full();
        let support = if is_full {
            QueueSupport::Full
        } else {
            QueueSupport::WithoutPushes
        };
        self.notifications.is_used.then_some(support)
    }

    /// What the queue lacks, if that was not reported before.
    pub(super) fn take_queue_change(&mut self) -> Option<QueueSupport> {
        let support = self
            .support(self.notifications.refusal.is_some())
            .filter(|it| *it != QueueSupport::Full)?;
        let before = self.notifications.reported.replace(support);
        (before != Some(support)).then_some(support)
    }

    /// Makes a request about a waiter one that this node can carry out: with the connection's
    /// channel, and without the queue if it has none. A removal takes the waiter out also there: it
    /// may have entered before the node refused the rest.
    pub(super) fn adapt(
        &mut self,
        now: Time,
        ticket: &mut Option<Ticket>,
        request: &mut SharedRequest,
    ) {
        if self
            .notifications
            .refusal
            .as_ref()
            .is_some_and(|(_, until)| now >= *until)
        {
            self.notifications.refusal = None;
        }
        match (&request.command, &self.notifications.refusal) {
            (Command::Queue(_), None) => {
                let is_resp3 = self.server.identity.as_ref().is_some_and(|it| it.is_resp3);
                let may_push = is_resp3 && self.notifications.channel != PushSupport::Off;
                let is_sharded = self.options.is_slot() && !self.notifications.is_unsharded;
                let channel = Channel {
                    number: self.options.seed,
                    is_sharded,
                };
                request.change(|request| {
                    if let Command::Queue(entry) = &mut request.command {
                        entry.channel = may_push.then_some(channel);
                    }
                });
            }
            (Command::Queue(_), Some((refusal, _))) => {
                let problem = NodeError::NoQueue(refusal.clone());
                self.fail(ticket.take(), &problem, false);
                if let Some(removal) = removal_if_unanswered(request.clone()) {
                    *request = removal;
                }
            }
            (
                Command::Claim(Claim {
                    before: Before::Turn(_),
                    ..
                }),
                Some(_),
            ) => {
                request.change(|request| {
                    if let Command::Claim(claim) = &mut request.command {
                        claim.before = Before::Nothing;
                    }
                });
            }
            _ => {}
        }
    }

    /// Is this error the answer of a node that has no queue? Then it is noted.
    pub(super) fn refuses_queue(
        &mut self,
        now: Time,
        request: &Request,
        error: &ServerError,
    ) -> bool {
        let is_lasting = error.kind.is_refusal() || error.kind == ServerErrorKind::Other;
        let is_refusal = is_lasting && request.queue_entry().is_some();
        if is_refusal {
            self.notifications.refusal = Some((error.clone(), now.after(NO_QUEUE_FOR)));
        }
        is_refusal
    }

    /// Removes what a waiter has left on a node that refused it. The script may have failed at its
    /// first step, with the attempt still to be withdrawn, or after the waiter had entered.
    pub(super) fn leave_later(&mut self, now: Time, request: &Request) {
        if let Some(entry) = request.queue_entry() {
            let command = Command::Remove(entry.clone().leave());
            self.remove_later(
                now,
                None,
                Request::into(Request {
                    command,
                    ..*request
                }),
            );
        }
    }
}
