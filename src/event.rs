//! Events that a client reports while it works: see [`Builder::on_event`].
//!
//! Events are for counters, histograms and logs. A program that has to act on a result finds it in
//! the return values of its calls; an event repeats it for metrics and logs.
//!
//! ```
//! use redlatch::{Event, LockClient};
//!
//! let client = LockClient::builder().nodes(["redis://10.0.0.1"]).on_event(|event| match event {
//!     Event::Acquired { waited, .. } => eprintln!("waited for {waited:?}"),
//!     Event::NodeDown { .. } => eprintln!("{event}"),
//!     _ => {}
//! });
//! # drop(client);
//! ```
//!
//! [`Builder::on_event`]: crate::Builder::on_event

mod listener;
mod value;

pub(crate) use listener::{EventCallback, Listener};
pub(crate) use value::FieldValue;

use self::Level::{Debug, Info, Trace, Warn};
use crate::error::{Error, LossReason};
use crate::inspect::NotALock;
use crate::name::Name;
use crate::node::{NodeError, NodeKind, NodeReport, QueueSupport};
use std::fmt;
use std::time::Duration;

/// What an event is called, and how a log shows it.
pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) level: Level,
    pub(crate) message: &'static str,
}

/// How loud an event is in a log: see [`Event::level`].
#[derive(Clone, Copy, fmt::Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Level {
    /// Steps in between, and what goes on by itself all the time.
    Trace,
    /// What each call did.
    Debug,
    /// The end of a state that was a warning.
    Info,
    /// What someone should look at even if no call failed, and calls that failed.
    Warn,
}

/// Makes the type of events of the table below. A row is: what the event means; its variant, with
/// the name that it has as a label; its level and message in logs; and its fields, of which the
/// first one is what it is about. Texts, logs and metrics have these names and fields.
macro_rules! events {
    ($(
        $(#[doc = $doc:literal])*
        $(#[cfg($cfg:meta)])?
        $variant:ident: $name:literal, $level:expr, $message:expr,
            { $about:ident: $about_type:ty $(, $field:ident: $type:ty)* $(,)? }
    )+) => {
        /// Something that happened to a lock, to a register or to a node.
        ///
        /// It borrows its contents, so that reporting it allocates nothing. Resources are named
        /// without the [prefix](crate::Builder::key_prefix) of their keys, nodes by their URLs
        /// without the password. No event contains a password or a token, nor does its text.
        ///
        /// The `Display` text is one line for a log.
        ///
        /// Where its variant does not say more, a field is: `resource` or `register`, the name that
        /// the event is about; `url`, the URL of the node; `attempts`, how many were made;
        /// `waited`, from the call to now; `took`, how long it took; `validity`, how much of the
        /// lock's is left; `held`, from the request for the lock to now; `outcome`, the result;
        /// `error`, what the call returns, or would return.
        #[derive(Clone)]
        #[non_exhaustive]
        #[expect(missing_docs, reason = "the enum and its variants say what each field is")]
        pub enum Event<'a> {$(
            $(#[doc = $doc])*
            $(#[cfg($cfg)] #[cfg_attr(docsrs, doc(cfg($cfg)))])?
            #[non_exhaustive]
            $variant { $about: $about_type $(, $field: $type)* },
        )+}

        impl Event<'_> {
            /// The names of all kinds of events.
            #[cfg(all(test, any(feature = "metrics", feature = "tracing")))]
            pub(crate) const NAMES: &'static [&'static str] = &[$($(#[cfg($cfg)])? $name),+];

            pub(crate) fn row(&self) -> Row {
                match self {$(
                    $(#[cfg($cfg)])?
                    #[allow(unused_variables, reason = "few levels depend on fields")]
                    Self::$variant { $($field,)* .. } => {
                        Row { name: $name, level: $level, message: $message }
                    }
                )+}
            }

            /// The first field: a lock, a register or a node.
            pub(crate) fn about(&self) -> FieldValue<'_> {
                match self {$(
                    $(#[cfg($cfg)])?
                    Self::$variant { $about, .. } => $about.into(),
                )+}
            }

            /// Calls `visit` with each of the other fields, and its name.
            pub(crate) fn visit<'b>(&'b self, mut visit: impl FnMut(&'static str, FieldValue<'b>)) {
                match self {$(
                    $(#[cfg($cfg)])?
                    Self::$variant { $($field,)* .. } => {
                        $(visit(stringify!($field), $field.into());)*
                        let _ = &mut visit;
                    }
                )+}
            }
        }
    };
}

events! {
    /// The nodes were asked once for a lock, and have answered or timed out. `number`: of the
    /// attempt in this call, from 1.
    Attempt: "attempt", Trace, "attempt",
        { resource: Name<'a>, number: u64, outcome: AttemptOutcome, took: Duration }

    /// A call that waits for the lock now sleeps until enough nodes have been up for
    /// [`max_ttl`](crate::Builder::max_ttl), or have had their master for that and
    /// [`failover_bound`](crate::Builder::failover_bound), because no lock can be granted before:
    /// see [`restart_guard`](crate::Builder::restart_guard) and, for replicated groups,
    /// [groups](crate::guide::groups#the-first-use). Reported once for each such wait, by the
    /// thread that asks the nodes; other threads of this client wait in the queue behind it.
    /// `left`: for how long no majority can grant it; `reports`: the report of each node. Those
    /// whose grants do not count yet have [`NodeError::Quarantined`] with the time that is left.
    Quarantined: "quarantined", Warn,
        if reports.iter().any(|report| report.former_reign.is_some()) {
            "waiting for groups that have a new master, or one that was started again"
        } else if reports.iter().any(|report| report.kind == NodeKind::Group) {
            "waiting for groups that have a new master, or are new (adopt_groups)"
        } else {
            "waiting for nodes that were started less than max_ttl ago (restart_guard)"
        },
        { resource: Name<'a>, left: Duration, reports: &'a [NodeReport] }

    /// A call waits for a lock that its own thread has taken by this client, and whose guard still
    /// exists; or for the exclusive lock while the thread has a share of it, or the other way
    /// round; or for one of so many permits as the thread has. If the guard is not with another
    /// thread, the thread waits for itself: until the wait or the lock ends. Reported once in a
    /// call, before it waits. Where guards leave the threads that take them,
    /// [`for_thread`](crate::LockRequest::for_thread) says so, and this is not reported.
    /// `resource`: the lock that the thread has.
    HeldByThisThread: "held_by_this_thread", Warn, "is waited for by the thread that took it",
        { resource: Name<'a> }

    /// A call has a place in the [nodes' queue](crate::guide::waiting#the-nodes-queue) for the
    /// lock: others hold it or wait for it. Reported once in a call, before it sleeps. `ahead`: how
    /// many waiters are before it. A client has one waiter for the exclusive lock, and one for each
    /// call that wants to be a [reader](crate::LockRequest::shared) or a
    /// [permit](crate::LockRequest::one_of); such calls may be served together with others that are
    /// before them.
    Queued: "queued", Debug, "queued", { resource: Name<'a>, ahead: u64 }

    /// It is the turn of a call that has queued, which now acquires the lock: a majority of the
    /// nodes reserves it for this call, or has it shared and has a share for this call too.
    /// Reported once in a call.
    Woken: "woken", Debug, "woken", { resource: Name<'a>, waited: Duration }

    /// A call was refused the lock, and the nodes have data under its key that is not a lock: a
    /// list, a string without a ttl. Nobody can have the lock as long as it is there; a call whose
    /// wait would never end [fails](crate::Error::NotALock). Reported once for each name, and again
    /// after the name has been that of a lock. `reason`: why it is not one.
    NotALock: "not_a_lock", Warn, "is not a lock", { resource: Name<'a>, reason: NotALock }

    /// A call has acquired the lock, from the nodes or from another thread of this client, or a
    /// share of it; or has [resumed](crate::LockRequest::resume) it. `attempts`: how many attempts
    /// it took: none if it was resumed, or if another thread of this client made them for a
    /// [share](crate::LockRequest::shared) that both have.
    Acquired: "acquired", Debug, "acquired",
        { resource: Name<'a>, attempts: u64, waited: Duration, validity: Duration }

    /// A call has returned without the lock, because another client or thread holds it. `attempts`:
    /// how many attempts were made: none if another thread of this client held it all along.
    Contended: "contended", Debug, "contended",
        { resource: Name<'a>, attempts: u64, waited: Duration }

    /// A call has failed because of the nodes or the system, or was
    /// [cancelled](crate::CancelToken) while it waited. Calls that are refused at once, because
    /// the ttl is too long for instance, are not reported.
    Failed: "failed",
        if **error == Error::Cancelled { Debug } else { Warn },
        "failed",
        { resource: Name<'a>, attempts: u64, waited: Duration, error: &'a Error }

    /// A majority confirmed an extension of a lock. `automatic`: whether it was extended
    /// automatically, because it is [kept alive](crate::LockRequest::keep_alive), and not by a
    /// call.
    Extended: "extended", if *automatic { Trace } else { Debug }, "extended",
        { resource: Name<'a>, took: Duration, validity: Duration, automatic: bool }

    /// A lock was not extended, and is held as before. If it was lost, that is [`Lost`](Self::Lost)
    /// instead. `automatic`: whether this was an automatic extension, because the lock is [kept
    /// alive](crate::LockRequest::keep_alive), and not a call. Then it is tried again. Of automatic
    /// extensions that fail one after another, the first is reported, and then one every tenth of
    /// the ttl at most, until the lock is [`Extended`](Self::Extended) or [`Lost`](Self::Lost).
    NotExtended: "not_extended", Warn, "not extended", {
        resource: Name<'a>,
        took: Duration,
        validity: Duration,
        automatic: bool,
        error: &'a Error,
    }

    /// A lock was lost while its guard still existed. Reported once for each guard: when it happens
    /// if the lock is [kept alive](crate::LockRequest::keep_alive), otherwise when the client
    /// notices, because the lock is extended or released. `held`: from the request for it to now,
    /// so more than it was really held; `reason`: how it was lost.
    Lost: "lost", Warn, "lost", { resource: Name<'a>, held: Duration, reason: LossReason }

    /// A lock was released, by a call or because its guard was dropped: on the nodes, or by a
    /// handoff to another thread of this client that waited for it. `outcome`: whether it was held
    /// to the end. `None` if that is not known: too few nodes answered, or no call waited for their
    /// answers. `remaining`: for how much longer the nodes keep it, because the request set
    /// [`hold_at_least`](crate::LockRequest::hold_at_least): zero without that setting, if that
    /// time has passed, or if the lock was lost.
    Released: "released", Debug, "released",
        { resource: Name<'a>, held: Duration, outcome: Option<Released>, remaining: Duration }

    /// A lock was [left](crate::LockGuard::let_expire) to its ttl, or [given
    /// away](crate::LockGuard::into_token). `remaining`: for how much longer no other client can
    /// have it: zero if it was lost before.
    LetExpire: "let_expire", Debug, "left to its ttl",
        { resource: Name<'a>, held: Duration, remaining: Duration }

    /// A node is connected and has answered the handshake. On ZooKeeper, where a client is
    /// connected to one server at a time: it is this one now.
    NodeUp: "node_up", Info, "up", { url: &'a str }

    /// The connection to a node was lost, or the first one could not be made, or it is the same
    /// server as another node, so that its answers do not count. Reported once until the node is up
    /// again, and not for each attempt to connect that fails. `error`: why it is down.
    NodeDown: "node_down", Warn, "down", { url: &'a str, error: &'a NodeError }

    /// A node has been silent for longer than [`node_timeout`](crate::Builder::node_timeout), with
    /// something to answer. Reported once until it has answered something in time. `silent`: for
    /// how long it has been silent.
    NodeSlow: "node_slow", Warn, "slow", { url: &'a str, silent: Duration }

    /// Waiting for a lock in a queue does not work on a node, or not fully. Reported once for each
    /// node, when a call first waits there. `support`: what works.
    NodeQueue: "node_queue", Warn, "queue is limited", { url: &'a str, support: QueueSupport }

    /// A node that is a [replicated group](crate::guide::groups) has another master than before, or
    /// its master was started again. Reported once for each reign that this client finds, except
    /// for the first one; so a client that looks at its nodes now and then reports each failover.
    /// `age`: for how long the reign is known, zero if a person has adopted it; `left`: for how
    /// long no new lock counts there, unless the servers prove before that nothing is missing.
    NewReign: "new_reign", Warn, "has a new master", { url: &'a str, age: Duration, left: Duration }

    /// The client's session on a ZooKeeper ensemble has ended: the ensemble had not heard of the
    /// client for the session timeout. All locks that were held in it are [`Lost`](Self::Lost), and
    /// calls that wait go on in a new session, at the end of the queue. Never reported of Redis
    /// nodes. `url`: the URL of the server that has told.
    SessionLost: "session_lost", Warn, "session and all its locks lost", { url: &'a str }

    /// A node has a vote on [registers](crate::guide::registers): as this client looked at the
    /// group for the first time, or again after it had none.
    #[cfg(feature = "registers")]
    NodeVotes: "node_votes", Info, "has a vote on registers", { url: &'a str }

    /// A node has answered and has no vote on [registers](crate::guide::registers). Reported once
    /// until it has one. One more such node may be one too many:
    /// [`registers().repair`](crate::register::Registers::repair) gives it its vote. `reason`: why
    /// it has none.
    #[cfg(feature = "registers")]
    NodeWithoutVote: "node_without_vote", Warn, "has no vote on registers",
        { url: &'a str, reason: crate::engine::NoVote }

    /// A call has read a register. `rounds`: how often the nodes were asked: once, unless they
    /// disagreed or some had no vote.
    #[cfg(feature = "registers")]
    RegisterRead: "register_read", Trace, "register read",
        { register: Name<'a>, rounds: u32, took: Duration }

    /// A call that changes a register is over, and a majority agrees: it has changed the value, or
    /// has found that it must not, as
    /// [`compare_and_set`](crate::register::Register::compare_and_set) does. `rounds`: how often
    /// the nodes were asked, together with the changes of other threads of this client that were
    /// sent with this one. More than three: other clients came first.
    #[cfg(feature = "registers")]
    RegisterChanged: "register_changed", Debug, "register changed",
        { register: Name<'a>, rounds: u32, took: Duration }

    /// A call that reads or changes a register has failed because of the nodes. Calls that are
    /// refused at once, because the value is too long for instance, are not reported.
    #[cfg(feature = "registers")]
    RegisterFailed: "register_failed", Warn, "register failed",
        { register: Name<'a>, took: Duration, error: &'a crate::error::RegisterError }
}

impl Event<'_> {
    /// The kind of event, in a word that can be a label of a metric: `acquired`, `node_down`.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.row().name
    }

    /// The level that the event has in a log.
    #[must_use]
    pub fn level(&self) -> Level {
        self.row().level
    }

    /// The name of the resource or of the register, if the event is about a lock or a register.
    #[must_use]
    pub fn resource(&self) -> Option<Name<'_>> {
        if let FieldValue::Name(name) = self.about() {
            Some(name)
        } else {
            None
        }
    }

    /// The node's URL, if the event is about a node, or the session with an ensemble.
    #[must_use]
    pub fn url(&self) -> Option<&str> {
        if let FieldValue::Url(url) = self.about() {
            Some(url)
        } else {
            None
        }
    }
}

/// How a lock was released, as [events](Event::Released) say it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "it was in time or it was not")]
pub enum Released {
    /// The lock was held to the end: a majority of nodes still had its key, or, if it passed to
    /// another thread of this client, its validity had not passed.
    InTime,
    /// The lock's validity had passed, or no majority of nodes still had its key: another client
    /// may have held the lock while this one still worked.
    TooLate,
}

impl Released {
    /// For logs and metrics.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::InTime => "in_time",
            Self::TooLate => "too_late",
        }
    }
}

/// The outcome of one attempt to acquire a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum AttemptOutcome {
    /// A majority granted the lock, in time.
    Granted,
    /// A majority answered, and other clients hold the lock or wait for it.
    Contended,
    /// Too few nodes answered to know whether the lock is free, or too many are in quarantine.
    NoQuorum,
    /// A majority granted the lock, but with too little validity left.
    TooSlow,
    /// Two of the nodes are one server.
    SameServer,
}

impl AttemptOutcome {
    /// The outcome in a word that can be a label of a metric: `granted`, `no_quorum`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Granted => "granted",
            Self::Contended => "contended",
            Self::NoQuorum => "no_quorum",
            Self::TooSlow => "too_slow",
            Self::SameServer => "same_server",
        }
    }
}

/// What it is about, its message, and its fields: `'orders:42' acquired: attempts 1, waited 1.2ms,
/// validity 9.9s`. A time of zero and what is not so are left out, and a reason needs no name.
impl fmt::Display for Event<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let message = self.row().message;
        match self.about() {
            FieldValue::Name(name) => write!(f, "'{name}' {message}")?,
            node => write!(f, "{node} {message}")?,
        }
        let mut mark = ":";
        let mut written = Ok(());
        self.visit(|name, value| {
            let next = match value {
                FieldValue::Time(Duration::ZERO) | FieldValue::Flag(false) => return,
                FieldValue::Flag(true) => write!(f, "{mark} {name}"),
                FieldValue::Reason(..) | FieldValue::Text(_) | FieldValue::Reports(_) => {
                    write!(f, "{mark} {value}")
                }
                _ => write!(f, "{mark} {name} {value}"),
            };
            written = written.and(next);
            mark = ",";
        });
        written
    }
}

/// As its text: resources are bytes, and a list of numbers is hard to read.
impl fmt::Debug for Event<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Event({self})")
    }
}
