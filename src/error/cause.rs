//! What errors of locks are made of: errors that several operations share, the loss of a lock, why
//! another process cannot resume one, and why a client could not be built.

use super::{NodeUrlError, NodeUrlErrorKind};
use crate::engine::{quorum, until_quorum};
use crate::name::Name;
use crate::node::{NodeAnswer, NodeKind, NodeReport};
use crate::texts::errors;
use std::error::Error;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use std::{fmt, io};

/// Too few nodes gave an answer that counts. Has a report from each node: its answer, or why there
/// is none.
///
/// On ZooKeeper: no server could be asked, or none of them has a majority. There is a report from
/// each server: what became of the last connection to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoQuorum {
    pub(super) reports: Vec<NodeReport>,
    /// Is a majority not enough?
    pub(super) needs_all: bool,
}

impl NoQuorum {
    pub(crate) fn new(reports: Vec<NodeReport>) -> Self {
        Self {
            reports,
            needs_all: false,
        }
    }

    /// One report for each node, in the order of the configuration.
    #[must_use]
    pub fn reports(&self) -> &[NodeReport] {
        &self.reports
    }

    /// How many nodes must give an answer that counts: a majority, or all if they are to become a
    /// group that keeps registers. 1 on ZooKeeper, where the ensemble agrees before it answers.
    #[must_use]
    pub fn needed(&self) -> usize {
        match self.reports.len() {
            _ if self.is_of_ensemble() => 1,
            all if self.needs_all => all,
            all => quorum(all),
        }
    }

    fn is_of_ensemble(&self) -> bool {
        self.reports
            .first()
            .is_some_and(|report| report.kind == NodeKind::Ensemble)
    }

    /// For how long no majority can grant a lock because too many nodes were started less than
    /// [`max_ttl`](crate::Builder::max_ttl) ago, if that is so: see
    /// [`restart_guard`](crate::Builder::restart_guard). Of
    /// [groups](crate::guide::groups): until a new lock counts; of an extension that failed, until
    /// an extension does. Never on ZooKeeper.
    #[must_use]
    pub fn quarantine(&self) -> Option<Duration> {
        let left = self
            .reports
            .iter()
            .filter_map(|report| match &report.answer {
                NodeAnswer::Failed(error) => error.quarantine(),
                _ => None,
            });
        until_quorum(self.reports.len(), left)
    }

    /// How many nodes gave an answer that counts. A refusal counts.
    #[must_use]
    pub fn answered(&self) -> usize {
        use NodeAnswer::{Accepted, Answered, Granted, Refused};
        let counts =
            |report: &&NodeReport| matches!(report.answer, Granted | Answered | Accepted | Refused);
        self.reports.iter().filter(counts).count()
    }
}

impl fmt::Display for NoQuorum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_of_ensemble() {
            f.write_str("no quorum: no server could be asked, or none has a majority")?;
        } else {
            let answered = self.answered();
            let nodes = self.reports.len();
            let needed = self.needed();
            write!(
                f,
                "no quorum: {answered} of {nodes} nodes gave an answer that counts, "
            )?;
            write!(f, "{needed} must agree")?;
        }
        for (index, report) in self.reports.iter().enumerate() {
            write!(f, "{} {report}", if index == 0 { ":" } else { ";" })?;
        }
        Ok(())
    }
}

impl Error for NoQuorum {}

errors! {
    /// Why a resource's name, a set of names or an owner's label cannot be used.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    #[expect(missing_docs, reason = "the text of a variant says what its fields are")]
    pub enum ResourceError {
        #[text("the resource's name is empty")]
        Empty,
        /// The key prefix counts too.
        #[text("the resource's name has {length} bytes, more than {most}")]
        TooLong { length: usize, most: usize },
        #[text("the resource's key contains \":redlatch:\", as keys of queues and counters do")]
        Reserved,
        #[text("the set of resources is empty")]
        None,
        /// `count`: as far as they were counted.
        #[text("{count} resources in one set are more than {most}")]
        TooMany { count: usize, most: usize },
        #[text("the owner's label has {length} bytes, more than {most}")]
        OwnerTooLong { length: usize, most: usize },
        /// There are no readers and no permits of a set.
        #[text("a set of resources cannot be shared: lock each of them by itself")]
        SharedSet,
        #[text("{count} permits are not between 1 and {most}")]
        Permits { count: u32, most: u32 },
    }
}

errors! {
    /// Why a ttl, or the least time for which a lock is to be held, cannot be used.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    #[expect(missing_docs, reason = "the text of a variant says what its fields are")]
    pub enum TtlError {
        /// Clock drift and the least validity leave nothing of it.
        #[text("a ttl of {ttl:?} leaves no validity: at least {shortest:?} is needed")]
        TooShort { ttl: Duration, shortest: Duration },
        /// The setting is [`Builder::max_ttl`](crate::Builder::max_ttl).
        #[text("a ttl of {ttl:?} is longer than the setting max_ttl of {max_ttl:?}")]
        TooLong { ttl: Duration, max_ttl: Duration },
        /// Three rounds of `node_timeout` must fit into its validity.
        #[text("a ttl of {ttl:?} is too short to be kept alive: at least {shortest:?} is needed")]
        TooShortToKeep { ttl: Duration, shortest: Duration },
        /// What [`max_hold`](crate::LockRequest::max_hold) allows, or for a lock that is kept alive
        /// a day.
        #[text(
            "a ttl of {ttl:?} is longer than max_hold of {max_hold:?}: it must be at most as long"
        )]
        BeyondHold { ttl: Duration, max_hold: Duration },
        /// `longest`: what [`max_hold`](crate::LockRequest::max_hold) allows, and on ZooKeeper at
        /// most half of the session timeout.
        #[text(
            "hold_at_least of {hold_at_least:?} is longer than the lock may be held: {longest:?}"
        )]
        HoldTooLong { hold_at_least: Duration, longest: Duration },
        /// On ZooKeeper, where 3/7 of the session timeout are left at any time.
        #[text(
            "a least validity of {min_validity:?} is more than a session always has left: {most:?}"
        )]
        BeyondSession { min_validity: Duration, most: Duration },
    }
}

/// A thread of the client could not be started: the one that keeps locks alive, the one that calls
/// callbacks, or the one that goes on with calls that take no thread.
#[derive(Clone, PartialEq, Eq)]
pub struct SpawnError {
    kind: io::ErrorKind,
    why: String,
}

impl SpawnError {
    pub(crate) fn new(error: &io::Error) -> Self {
        Self {
            kind: error.kind(),
            why: error.to_string(),
        }
    }

    /// What kind of failure it was.
    #[must_use]
    pub fn kind(&self) -> io::ErrorKind {
        self.kind
    }
}

impl fmt::Display for SpawnError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "no thread for locks that are kept alive or watched, or for started calls: {}",
            self.why
        )
    }
}

impl Error for SpawnError {}

/// The lock is not held any more.
///
/// Its text names the lock: `the lock "orders:42" is lost: its validity has passed`.
#[derive(Clone, PartialEq, Eq)]
pub struct LockLost {
    resource: Arc<[u8]>,
    reason: LossReason,
}

impl LockLost {
    pub(crate) fn new(resource: impl Into<Arc<[u8]>>, reason: LossReason) -> Self {
        Self {
            resource: resource.into(),
            reason,
        }
    }

    /// The name of the resource whose lock was lost; the first of them, if there are
    /// [several](crate::LockGuard::resources).
    #[must_use]
    pub fn resource(&self) -> Name<'_> {
        Name::new(&self.resource)
    }

    /// How it was lost.
    #[must_use]
    pub fn reason(&self) -> LossReason {
        self.reason
    }
}

impl fmt::Display for LockLost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let resource = self.resource();
        let reason = self.reason;
        let is = if reason == LossReason::OtherProcess {
            "not held here"
        } else {
            "lost"
        };
        write!(f, "the lock {resource:?} is {is}: {reason}")
    }
}

impl Error for LockLost {}

/// How a lock was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LossReason {
    /// Its validity has passed: its ttl, or on ZooKeeper the time for which its session may be
    /// relied on.
    Expired,
    /// A majority of the nodes no longer has its key: they lost it, or granted the lock to another
    /// client. On ZooKeeper, its session has ended, or its znode was removed.
    Gone,
    /// This is a forked child of the process that acquired the lock. That one may still hold it.
    OtherProcess,
}

impl LossReason {
    /// For logs and metrics.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Expired => "expired",
            Self::Gone => "gone",
            Self::OtherProcess => "other_process",
        }
    }
}

impl fmt::Display for LossReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Expired => "its validity has passed",
            Self::Gone => "no majority of nodes holds its key any more",
            Self::OtherProcess => "the process that forked this one acquired it",
        })
    }
}

/// A text is no [`LockToken`](crate::LockToken). It is not shown: it may be a part of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(
    clippy::exhaustive_structs,
    reason = "there is nothing to say about it"
)]
pub struct LockTokenError;

impl fmt::Display for LockTokenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("it is not a token of a lock: that is one word, which begins with redlatch1")
    }
}

impl Error for LockTokenError {}

errors! {
    /// Why another process cannot resume a lock.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum NotResumable {
        #[text(
            "no other process can resume a lock on ZooKeeper: it ends with the session of its \
             client"
        )]
        Session,
        /// Readers of one client take a [share](crate::LockRequest::shared) together. The
        /// [owner](crate::LockRequest::owner) of a request makes it one of its own.
        #[text(
            "other threads of this client have the same share: a reader with an owner of its own \
             has one that can be given away"
        )]
        SharedByThreads,
        /// The lock is as it was.
        #[text(
            "the token is not that of this lock: it was given for other names, or for more or \
             fewer, or it is damaged"
        )]
        OtherNames,
    }
}

// Errors of settings.

/// The name of a variable. A URL in its place may have a password in it.
fn name_of(variable: &str) -> String {
    match variable.contains("://") {
        true => "(a URL in place of its name)".to_owned(),
        false => variable.escape_debug().to_string(),
    }
}

errors! {
    /// Why a client could not be built. Two of them are equal if they say the same.
    #[derive(Clone)]
    #[expect(missing_docs, reason = "the text of a variant says what its fields are")]
    pub enum ConfigError {
        #[text("no nodes: at least one URL is needed")]
        NoNodes,
        /// Or servers of an ensemble.
        #[text("{count} nodes: at most 64 are possible")]
        TooManyNodes(count: usize),
        /// A node's URL cannot be used.
        Url(error: NodeUrlError),
        /// The list of nodes in an environment variable cannot be used.
        #[text("environment variable {variable}: {error}", variable = name_of(variable))]
        #[cause(error)]
        NodeList { variable: String, error: NodeListError },
        /// Two URLs, or two hosts of an ensemble, in the order of the configuration and without
        /// passwords.
        #[text("{first} and {second} are the same server: name it once")]
        Duplicate { first: String, second: String },
        /// `name`: the method of `Builder` that sets it.
        #[text("setting {name}: {reason}")]
        Setting { name: &'static str, reason: String },
        /// The [settings for TLS](crate::Builder#method.tls) cannot be used.
        #[text("setting tls: {error}")]
        #[cause(error)]
        Tls(error: TlsSettingsError),
        /// The operating system refused what the client needs: a poll for its sockets, or the
        /// thread that [`io_thread`](crate::Builder::io_thread) asks for.
        #[text("the sockets' poll or I/O thread could not be created: {error}")]
        #[cause(error)]
        System(error: Arc<io::Error>),
    }
}

impl PartialEq for ConfigError {
    fn eq(&self, other: &Self) -> bool {
        format!("{self:?}") == format!("{other:?}")
    }
}

impl Eq for ConfigError {}

errors! {
    /// Why the settings for TLS cannot be used. No text has any part of a file's content.
    #[derive(Clone, Debug)]
    #[expect(missing_docs, reason = "the text of a variant says what its fields are")]
    pub enum TlsSettingsError {
        #[text("{path} cannot be read: {error}", path = path.display())]
        #[cause(error)]
        File { path: PathBuf, error: Arc<io::Error> },
        #[text("{path} has no certificate in PEM format", path = path.display())]
        NoCertificate { path: PathBuf },
        #[text("{path} has no private key in PEM format", path = path.display())]
        NoKey { path: PathBuf },
        /// Only keys without a passphrase can be used.
        #[text("{path} has an encrypted private key: decrypt it", path = path.display())]
        EncryptedKey { path: PathBuf },
        /// A certificate or a private key in a file cannot be used.
        #[text("{path} cannot be used: {reason}", path = path.display())]
        Unusable { path: PathBuf, reason: String },
        /// The files of the client certificate and of the private key.
        #[text(
            "{certificate} and {key} do not belong together",
            certificate = certificate.display(),
            key = key.display()
        )]
        KeyMismatch { certificate: PathBuf, key: PathBuf },
        /// Or they cannot be read. `reason`: the operating system's words, if it has any.
        #[text(
            "the system has no root certificates: install them (ca-certificates), or use \
             TlsSettings::ca_file or TlsSettings::bundled_roots{reason}",
            reason = if reason.is_empty() { String::new() } else { format!(" ({reason})") }
        )]
        NoSystemRoots { reason: String },
        /// It is the host of a URL, or its `server_name`.
        #[text("no certificate can be valid for the name '{name}'")]
        ServerName { name: String },
        /// Other settings were made beside it.
        #[text("a ready configuration has its own roots and client certificate")]
        ConfigAndSettings,
    }
}

errors! {
    /// Why a comma-separated list of node URLs in an environment variable cannot be used.
    #[derive(Clone, Debug, PartialEq, Eq)]
    #[expect(missing_docs, reason = "the text of a variant says what its fields are")]
    pub enum NodeListError {
        #[text("not set")]
        NotSet,
        #[text("not UTF-8")]
        NotUnicode,
        #[text("no URL in it")]
        Empty,
        /// Counted from 1.
        #[text("entry {number} is empty")]
        EmptyEntry { number: usize },
        /// The first entry has no scheme, or an unknown one. No part of a password is in front of
        /// that.
        #[text("entry 1: {kind}")]
        FirstScheme(kind: NodeUrlErrorKind),
        /// Nor does it follow a `zk://` URL as one more host. It is not shown: it may be the part
        /// of a password that follows a comma.
        #[text(
            "entry {number} does not begin with redis:// or another scheme of a node (a comma in \
             a password is written as %2C)"
        )]
        NoScheme { number: usize },
        /// An entry is a URL that cannot be used.
        Url(error: NodeUrlError),
    }
}
