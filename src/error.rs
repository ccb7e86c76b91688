//! Errors: what went wrong, on which node, and how it can be fixed.
//!
//! | error | of | fixed by |
//! |---|---|---|
//! | [`Error`] | everything about locks, and building a client | its variants say |
//! | [`RegisterError`] | reading or changing a register | its variants say |
//! | [`OncePerError`] | running a job once in each period | its variants say |
//! | [`TransactionError`] | beginning or aborting a transaction | its variants say |
//! | [`JoinError`], [`RecoverError`] | taking part in a transaction | its variants say |
//!
//! Those of registers, of jobs and of transactions convert into [`Error`]. An error of an
//! application that an [`Error`] converts into, and that of `anyhow` or a `Box<dyn Error>`, is all
//! that a function needs for `?` behind every method of a lock: see
//! [`guide::errors`](crate::guide::errors#in-an-application).
//!
//! A lock that another client holds is not an error. Where nodes are at fault, the error has a
//! report from each of them ([`NoQuorum`]). No text contains a password.
//!
//! The text of an error includes the text of the error inside it. So `source()` returns the cause
//! of that inner error and not the inner error itself, and a chain of errors, printed from end to
//! end, repeats nothing. Match on the error to get at the one inside it.
//!
//! `Debug` of the errors in the table is the same text with its causes below it, because that is
//! what is printed if `main` returns an error.

mod cause;
#[cfg(feature = "registers")]
mod registers;

#[doc(inline)]
pub use super::engine::NoVote;
pub use super::fencing::FencingTokenError;
pub(crate) use super::node::OTHER_PROCESS;
#[doc(inline)]
pub use super::node::{
    NodeAnswer, NodeError, NodeReport, OtherProtocol, Phase, ServerError, ServerErrorKind,
    TlsError, TlsErrorKind, WrongServer,
};
pub use super::node_url::{NodeUrlError, NodeUrlErrorKind};
#[doc(inline)]
pub use super::resp::ProtocolError;
use crate::inspect::NotALock;
use crate::name::Name;
use crate::texts::{debug, errors, from};
pub use cause::{
    ConfigError, LockLost, LockTokenError, LossReason, NoQuorum, NodeListError, NotResumable,
    ResourceError, SpawnError, TlsSettingsError, TtlError,
};
#[cfg(feature = "registers")]
#[doc(inline)]
pub use registers::{
    ClocksError, InvalidTransactionId, JoinError, NamesError, OncePerError, RecoverError,
    RegisterError, TransactionError, UnknownName,
};
use std::sync::Arc;
use std::time::Duration;

errors! {
    /// Why something about a lock did not succeed: the one error of all methods of a client, a
    /// request and a guard, so that `?` is enough, also in a function whose own error is made from
    /// this one.
    ///
    /// That another client holds a lock is not an error. Each method says which variants it
    /// returns.
    #[derive(Clone, PartialEq, Eq)]
    #[expect(missing_docs, reason = "the text of a variant says what its fields are")]
    pub enum Error {
        /// A client could not be built.
        Config(error: ConfigError),
        /// The resource's name cannot be used.
        Resource(error: ResourceError),
        /// The ttl cannot be used.
        Ttl(error: TtlError),
        /// Too few nodes gave an answer that counts; or no server of a ZooKeeper ensemble that has
        /// a majority could be asked.
        ///
        /// * Acquiring: it is not known whether the lock is free, or too many nodes are in
        ///   [quarantine](NoQuorum::quarantine) to grant it.
        /// * Extending: the lock is held until its validity ends, and extending it may be tried
        ///   again.
        /// * Releasing: the release is sent to the other nodes as soon as they can be reached
        ///   again, and in any case their key expires with its ttl, or on ZooKeeper with the
        ///   session.
        /// * Releasing by force: the nodes that did answer have removed the value that was seen. On
        ///   ZooKeeper, some of the znodes that were seen may be deleted, or all.
        NoQuorum(error: NoQuorum),
        /// The lock was lost: its validity had passed, or no majority of the nodes still had its
        /// key. Another client may have held it while this one still worked.
        Lost(error: LockLost),
        /// It was released again. The nodes are slow, or the ttl is too short for them.
        #[text("granted with too little validity left: after {took:.1?} of a ttl of {ttl:?}")]
        TooSlow { took: Duration, ttl: Duration },
        /// Two nodes have equal `run_id`: they count as two in the majority that is needed. From
        /// when both are connected, no lock is granted until the configuration is fixed. The nodes
        /// are named by their URLs.
        #[text("{first} and {second} are the same server: it must not vote twice")]
        SameServer { first: Arc<str>, second: Arc<str> },
        /// A body that runs [under the lock](crate::LockClient::with_lock), or under a share of it
        /// or a set with it, waits for the same lock, or for a share of another kind, which is
        /// released only when that body ends. A lock is not re-entrant.
        ///
        /// Only this case is an error, and only within one client; see
        /// [`LockClient`](crate::LockClient) and [the
        /// limits](crate::guide::limits#locks-are-not-re-entrant). It is reported until the keys
        /// have expired on the nodes, which is up to the drift allowance later than the lock counts
        /// as lost.
        #[text("this thread holds the lock itself and would wait for its own work to end")]
        HeldByThisThread,
        /// The lock would be held for longer in all than
        /// [`max_hold`](crate::LockRequest::max_hold) allows. It is held as before.
        #[text("held for {held:.1?}: longer than max_hold of {max_hold:?}")]
        HeldTooLong { held: Duration, max_hold: Duration },
        /// Without them a lock is not safe.
        #[text("the operating system has no random numbers")]
        NoEntropy,
        /// The thread that keeps locks alive, the one that calls callbacks, or the one that goes on
        /// with calls that take no thread could not be started.
        Spawn(error: SpawnError),
        /// With this lock one more, the client could not extend all of them in time. The nodes were
        /// not asked. Use a longer ttl, nearer nodes, or another client, which has connections of
        /// its own. `kept`: how many locks it keeps alive; `most`: how many locks like this one it
        /// could keep alive if there were no others; `round`: how long a round takes at present.
        #[text(
            "too many locks are kept alive: {kept}; with a ttl of {ttl:?} and rounds of \
             {round:.1?} at most {most} can be extended in time"
        )]
        TooManyKeptAlive { kept: usize, most: usize, ttl: Duration, round: Duration },
        /// With the locks that it holds or waits for and this one more, the end of the client's
        /// session could stop the ensemble. Use another client, which has a session of its own, or
        /// shorter names.
        #[text("too many locks: the znodes of one ZooKeeper session have paths of 512 KiB at most")]
        TooManyHeld,
        /// By a [`CancelToken`](crate::CancelToken) of the call, or of the client.
        #[text("the call was cancelled")]
        Cancelled,
        /// Another process cannot resume the lock.
        NotResumable(error: NotResumable),
        /// A text is not a token of a lock.
        LockToken(error: LockTokenError),
        /// On Redis: other data has the lock's name, so nobody can have the lock.
        ///
        /// * Acquiring: on so many nodes that no majority can grant it, and it never ends: it has
        ///   no ttl, and no form that the locks of a known program have. Waiting does not help. If
        ///   a lock was there before, a call notices it [within
        ///   seconds](crate::guide::errors#other-data-with-the-name-of-a-lock).
        ///   What ends by itself is waited for, and [`Event::NotALock`](crate::Event::NotALock)
        ///   reports it.
        /// * Releasing by force: it was not removed.
        ///
        /// `key`: with the [prefix](crate::Builder::key_prefix); `reason`: of the first of the
        /// nodes that have it, which are `urls`.
        #[text(
            "the key '{key}' has data that is not a lock: {reason}, on {urls}; use another name or \
             a key_prefix, or delete it",
            key = Name::new(key),
            urls = urls.join(", ")
        )]
        NotALock { key: Arc<[u8]>, reason: NotALock, urls: Vec<Arc<str>> },
        /// This is a forked child of the process that built the client, which works only there. A
        /// lock that was acquired there stays as it is.
        #[text("{OTHER_PROCESS}")]
        OtherProcess,
        /// A register could not be read or changed.
        #[cfg(feature = "registers")]
        Register(error: RegisterError),
        /// A job that runs once in each period: it cannot have this period, the nodes' clocks are
        /// in doubt, or its success was not noted.
        #[cfg(feature = "registers")]
        OncePer(error: OncePerError),
        /// A transaction could not be begun, looked at or changed.
        #[cfg(feature = "registers")]
        Transaction(error: TransactionError),
        /// The answer of one node does not count.
        Node(error: NodeError),
        /// A number is not a fencing token.
        FencingToken(error: FencingTokenError),
    }
}

from! { Error:
    ConfigError => Config,
    LockLost => Lost,
    NoQuorum => NoQuorum,
    SpawnError => Spawn,
    NodeError => Node,
    FencingTokenError => FencingToken,
    LockTokenError => LockToken,
}

debug!(Error, ConfigError, LockLost, SpawnError);

#[cfg(test)]
mod tests;
