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
#[cfg(feature = "registers")]
mod register;

pub(crate) use listener::{Callback, Listener};
#[cfg(feature = "registers")]
pub use register::RegisterEvent;

use crate::error::{Error, LossReason};
use crate::name::Name;
use crate::node::{NodeAnswer, NodeError, NodeReport, QueueSupport};
use std::fmt;
use std::time::Duration;

/// Something that happened to a lock, to a register or to a node.
///
/// It borrows its contents, so that reporting it allocates nothing. Resources are named without the
/// [prefix](crate::Builder::key_prefix) of their keys, nodes by their URLs without the password. No
/// event contains a password or a token, nor does its text.
///
/// The `Display` text is one line for a log.
///
/// Where its variant does not say more, a field is: `resource` or `register`, the name that the
/// event is about; `url`, the URL of the node; `attempts`, how many were made; `waited`, from the
/// call to now; `took`, how long it took; `validity`, how much of the lock's is left; `held`, from
/// the request for the lock to now; `outcome`, the result; `error`, what the call returns, or would
/// return.
#[derive(Clone)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the enum and its variants say what each field is")]
pub enum Event<'a> {
    /// The nodes were asked once for a lock, and have answered or timed out. `number`: of the
    /// attempt in this call, from 1.
    #[non_exhaustive]
    Attempt { resource: Name<'a>, number: u64, outcome: AttemptOutcome, took: Duration },
    /// A call that waits for the lock now sleeps until enough nodes have been up for
    /// [`max_ttl`](crate::Builder::max_ttl), because no lock can be granted before: see
    /// [`restart_guard`](crate::Builder::restart_guard). Reported once for each such wait, by the
    /// thread that asks the nodes; other threads of this client wait in the queue behind it.
    /// `left`: for how long no majority can grant it; `reports`: the report of each node. Those
    /// whose grants do not count yet have [`NodeError::Quarantined`] with the time that is left.
    #[non_exhaustive]
    Quarantined { resource: Name<'a>, left: Duration, reports: &'a [NodeReport] },
    /// A call has a place in the [nodes' queue](crate::guide::guarantees#the-nodes-queue) for the
    /// lock: others hold it or wait for it. Reported once in a call, before it sleeps.
    #[non_exhaustive]
    Queued {
        resource: Name<'a>,
        /// How many waiters are before it. A client has one waiter for the exclusive lock, and one
        /// for each call that wants to be a [reader](crate::LockRequest::shared) or a
        /// [permit](crate::LockRequest::one_of); such calls may be served together with others that
        /// are before them.
        place: u64,
    },
    /// It is the turn of a call that has queued, which now acquires the lock: a majority of the
    /// nodes reserves it for this call, or has it shared and has a share for this call too.
    /// Reported once in a call.
    #[non_exhaustive]
    Woken { resource: Name<'a>, waited: Duration },
    /// A call has acquired the lock, from the nodes or from another thread of this client, or a
    /// share of it; or has [resumed](crate::LockRequest::resume) it. `attempts`: how many attempts
    /// it took: none if it was resumed, or if another thread of this client made them for a
    /// [share](crate::LockRequest::shared) that both have.
    #[non_exhaustive]
    Acquired { resource: Name<'a>, attempts: u64, waited: Duration, validity: Duration },
    /// A call has returned without the lock, because another client or thread holds it. `attempts`:
    /// how many attempts were made: none if another thread of this client held it all along.
    #[non_exhaustive]
    Contended { resource: Name<'a>, attempts: u64, waited: Duration },
    /// A call has failed because of the nodes or the system, or was
    /// [cancelled](crate::CancelToken) while it waited. Calls that are refused at once, because
    /// the ttl is too long for instance, are not reported.
    #[non_exhaustive]
    Failed { resource: Name<'a>, attempts: u64, waited: Duration, error: &'a Error },
    /// A majority confirmed an extension of a lock. `is_automatic`: whether it was extended
    /// automatically, because it is [kept alive](crate::LockRequest::keep_alive), and not by a
    /// call.
    #[non_exhaustive]
    Extended { resource: Name<'a>, took: Duration, validity: Duration, is_automatic: bool },
    /// A lock was not extended, and is held as before. If it was lost, that is [`Lost`](Self::Lost)
    /// instead.
    #[non_exhaustive]
    NotExtended {
        resource: Name<'a>,
        took: Duration,
        validity: Duration,
        error: &'a Error,
        /// Whether this was an automatic extension, because the lock is
        /// [kept alive](crate::LockRequest::keep_alive), and not a call. Then it is tried again. Of
        /// automatic extensions that fail one after another, the first is reported, and then one
        /// every tenth of the ttl at most, until the lock is [`Extended`](Self::Extended) or
        /// [`Lost`](Self::Lost).
        is_automatic: bool,
    },
    /// A lock was lost while its guard still existed. Reported once for each guard: when it happens
    /// if the lock is [kept alive](crate::LockRequest::keep_alive), otherwise when the client
    /// notices, because the lock is extended or released. `held`: from the request for it to now,
    /// so more than it was really held; `reason`: how it was lost.
    #[non_exhaustive]
    Lost { resource: Name<'a>, held: Duration, reason: LossReason },
    /// A lock was released, by a call or because its guard was dropped: on the nodes, or by a
    /// handoff to another thread of this client that waited for it. `outcome`: whether it was held
    /// to the end. `None` if that is not known: too few nodes answered, or no call waited for their
    /// answers.
    #[non_exhaustive]
    Released {
        resource: Name<'a>,
        held: Duration,
        outcome: Option<Released>,
        /// For how much longer the nodes keep it, because the request set
        /// [`hold_at_least`](crate::LockRequest::hold_at_least): zero without that setting, if that
        /// time has passed, or if the lock was lost.
        remaining: Duration,
    },
    /// A lock was [left](crate::LockGuard::let_expire) to its ttl, or [given
    /// away](crate::LockGuard::into_token). `remaining`: for how much longer no other client can
    /// have it: zero if it was lost before.
    #[non_exhaustive]
    LetExpire { resource: Name<'a>, held: Duration, remaining: Duration },
    /// A node is connected and has answered the handshake. On ZooKeeper, where a client is
    /// connected to one server at a time: it is this one now.
    #[non_exhaustive]
    NodeUp { url: &'a str },
    /// The connection to a node was lost, or the first one could not be made, or it is the same
    /// server as another node, so that its answers do not count. Reported once until the node is up
    /// again, and not for each attempt to connect that fails. `error`: why it is down.
    #[non_exhaustive]
    NodeDown { url: &'a str, error: &'a NodeError },
    /// A node has been silent for longer than [`node_timeout`](crate::Builder::node_timeout), with
    /// something to answer. Reported once until it has answered something in time. `silent`: for
    /// how long it has been silent.
    #[non_exhaustive]
    NodeSlow { url: &'a str, silent: Duration },
    /// Waiting for a lock in a queue does not work on a node, or not fully. Reported once for each
    /// node, when a call first waits there. `support`: what works.
    #[non_exhaustive]
    NodeQueue { url: &'a str, support: QueueSupport },
    /// The client's session on a ZooKeeper ensemble has ended: the ensemble had not heard of the
    /// client for the session timeout. All locks that were held in it are [`Lost`](Self::Lost), and
    /// calls that wait go on in a new session, at the end of the queue. Never reported of Redis
    /// nodes. `url`: the URL of the server that has told.
    #[non_exhaustive]
    SessionLost { url: &'a str },
    /// Something happened to a register, or to the vote of a node on registers.
    #[cfg(feature = "registers")]
    #[cfg_attr(docsrs, doc(cfg(feature = "registers")))]
    Register(RegisterEvent<'a>),
}

impl<'a> Event<'a> {
    /// The kind of event, in a word that can be a label of a metric: `acquired`, `node_down`.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.kind().0
    }

    /// The name of the resource or of the register, if the event is about a lock or a register.
    #[must_use]
    pub fn resource(&self) -> Option<Name<'a>> {
        match self.kind() {
            (_, Subject::Resource(name)) => Some(name),
            (_, Subject::Node(_)) => None,
        }
    }

    /// The node's URL, if the event is about a node, or the session with an ensemble.
    #[must_use]
    pub fn url(&self) -> Option<&'a str> {
        match self.kind() {
            (_, Subject::Node(url)) => Some(url),
            (_, Subject::Resource(_)) => None,
        }
    }

    fn kind(&self) -> (&'static str, Subject<'a>) {
        use Subject::{Node, Resource};
        match *self {
            Self::Attempt { resource, .. } => ("attempt", Resource(resource)),
            Self::Quarantined { resource, .. } => ("quarantined", Resource(resource)),
            Self::Queued { resource, .. } => ("queued", Resource(resource)),
            Self::Woken { resource, .. } => ("woken", Resource(resource)),
            Self::Acquired { resource, .. } => ("acquired", Resource(resource)),
            Self::Contended { resource, .. } => ("contended", Resource(resource)),
            Self::Failed { resource, .. } => ("failed", Resource(resource)),
            Self::Extended { resource, .. } => ("extended", Resource(resource)),
            Self::NotExtended { resource, .. } => ("not_extended", Resource(resource)),
            Self::Lost { resource, .. } => ("lost", Resource(resource)),
            Self::Released { resource, .. } => ("released", Resource(resource)),
            Self::LetExpire { resource, .. } => ("let_expire", Resource(resource)),
            Self::NodeUp { url } => ("node_up", Node(url)),
            Self::NodeDown { url, .. } => ("node_down", Node(url)),
            Self::NodeSlow { url, .. } => ("node_slow", Node(url)),
            Self::NodeQueue { url, .. } => ("node_queue", Node(url)),
            Self::SessionLost { url } => ("session_lost", Node(url)),
            #[cfg(feature = "registers")]
            Self::Register(ref event) => event.kind(),
        }
    }
}

enum Subject<'a> {
    /// A lock or a register, by its name.
    Resource(Name<'a>),
    /// A node, or a server of an ensemble, by its URL.
    Node(&'a str),
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

impl fmt::Display for Event<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind() {
            (_, Subject::Resource(name)) => write!(f, "'{name}' ")?,
            (_, Subject::Node(url)) => write!(f, "{url} ")?,
        }
        match self {
            Self::Attempt { number, outcome, took, .. } => {
                write!(f, "attempt {number}: {}, took {took:.1?}", outcome.name())
            }
            Self::Quarantined { left, reports, .. } => {
                write!(f, "waits for {left:.1?}: quarantined, as started less than max_ttl ago")?;
                write!(f, " (setting restart_guard):")?;
                for (index, report) in quarantined(reports).enumerate() {
                    write!(f, "{} {}", if index == 0 { "" } else { "," }, report.url)?;
                }
                Ok(())
            }
            Self::Queued { place, .. } => write!(f, "queued: {place} before it"),
            Self::Woken { waited, .. } => write!(f, "woken: waited {waited:.1?}"),
            Self::Acquired { attempts, waited, validity, .. } => write!(
                f,
                "acquired: attempts {attempts}, waited {waited:.1?}, valid for {validity:.1?}"
            ),
            Self::Contended { attempts, waited, .. } => {
                write!(f, "contended: attempts {attempts}, waited {waited:.1?}")
            }
            Self::Failed { attempts, waited, error, .. } => {
                write!(f, "failed: attempts {attempts}, waited {waited:.1?}, {error}")
            }
            Self::Extended { took, validity, is_automatic, .. } => {
                let how = automatically(*is_automatic);
                write!(f, "extended{how}: took {took:.1?}, valid for {validity:.1?}")
            }
            Self::NotExtended { took, validity, error, is_automatic, .. } => {
                let how = automatically(*is_automatic);
                write!(f, "not extended{how}: took {took:.1?}, valid for {validity:.1?}, {error}")
            }
            Self::Lost { held, reason, .. } => write!(f, "lost: held {held:.1?}, {reason}"),
            Self::Released { held, outcome, remaining, .. } => {
                let how = match outcome {
                    Some(Released::InTime) => ", in time",
                    Some(Released::TooLate) => ", too late",
                    None => "",
                };
                write!(f, "released: held {held:.1?}{how}")?;
                if !remaining.is_zero() {
                    write!(f, ", stays taken for {remaining:.1?}")?;
                }
                Ok(())
            }
            Self::LetExpire { held, remaining, .. } => {
                write!(f, "left to its ttl: held {held:.1?}, valid for {remaining:.1?}")
            }
            Self::NodeUp { .. } => f.write_str("is up"),
            Self::NodeDown { error, .. } => write!(f, "is down: {error}"),
            Self::NodeSlow { silent, .. } => write!(f, "is slow: silent for {silent:.1?}"),
            Self::NodeQueue { support: QueueSupport::Unsupported, .. } => {
                f.write_str("has no queue for waiters")
            }
            Self::NodeQueue { .. } => f.write_str("does not tell waiters when it is their turn"),
            Self::SessionLost { .. } => f.write_str("has ended the session, and all its locks"),
            #[cfg(feature = "registers")]
            Self::Register(event) => event.write(f),
        }
    }
}

/// The nodes whose grants do not count yet.
fn quarantined(reports: &[NodeReport]) -> impl Iterator<Item = &NodeReport> {
    let is_it = |report: &&NodeReport| {
        matches!(report.answer, NodeAnswer::Failed(NodeError::Quarantined { .. }))
    };
    reports.iter().filter(is_it)
}

fn automatically(is_automatic: bool) -> &'static str {
    if is_automatic { " automatically" } else { "" }
}

/// As its text: resources are bytes, and a list of numbers is hard to read.
impl fmt::Debug for Event<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Event({self})")
    }
}
