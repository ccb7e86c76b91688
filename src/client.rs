//! The client, and the loop that every operation runs through.

mod acquire;
mod event_recorder;
mod events;
mod inspect;
mod keep_alive;
mod names;
mod process;
mod request;

pub use request::LockRequest;

use crate::clock::{self, Time};
use crate::config::{Builder, Config};
use crate::engine::{Entropy, Input, Operation, Request, Rules, Step, Ttl};
use crate::error::{ConfigError, LockError};
use crate::event::Listener;
use crate::guard::LockGuard;
use crate::net::Net;
use crate::node::{Credentials, NodeReport, Session, SessionOptions};
use crate::owner_process::OwnerProcess;
use crate::wait_queue::WaitQueues;
use crate::watchdog::Watchdog;
use std::fmt;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

/// Takes locks. Cheap to clone; all clones share one connection to each node, however many threads
/// use them.
///
/// | method | waits for others | if others hold the lock |
/// |---|---|---|
/// | [`try_lock`](Self::try_lock) | not at all | `Ok(None)` |
/// | [`try_lock_for`](Self::try_lock_for) | for a while | `Ok(None)` when that is over |
/// | [`try_lock_until`](Self::try_lock_until) | until some time | `Ok(None)` when that has come |
/// | [`lock`](Self::lock) | as long as it takes | waits |
/// | [`with_lock`](Self::with_lock) | as long as it takes | waits |
///
/// `Ok(None)` means that a majority of the nodes *answered*, and that others hold the lock, or that
/// another thread of this client holds it. If too few answered to know, that is
/// [`LockError::NoQuorum`], with a report from each node.
///
/// A resource is any non-empty string of bytes that does not end in `:redlatch:fence`, and the
/// lock's key on the nodes is its name with the [prefix](Builder::key_prefix) before it: 64 KiB at
/// most. A ttl counts in whole milliseconds, and what is below is cut off; it must leave some
/// validity after [drift](Builder::drift_factor) and 2 ms, and is at most
/// [`max_ttl`](Builder::max_ttl).
///
/// A lock is not re-entrant: it belongs to a guard and not to a thread. A thread that has a guard
/// and waits for the same lock waits for itself, until the lock's validity has ended; if it is
/// [kept alive](LockRequest::keep_alive), that is for up to 24 hours. Guards may go from thread to
/// thread, so it is not known who will give one up, and waiting may be right. Only what runs
/// [under a lock](Self::with_lock) is known to be in its own way, and told so:
/// [`LockError::HeldByThisThread`].
///
/// Dropping the last clone waits until the nodes have answered that they have released what was
/// dropped before: not for a node that has not answered for
/// [`node_timeout`](Builder::node_timeout), and for ten times that at most, which takes thousands
/// of locks or a slow node.
///
/// In a forked child of the process that built it, everything it is asked for is refused
/// ([`LockError::OtherProcess`]), and dropping it does nothing.
#[derive(Clone)]
pub struct LockClient {
    shared: Arc<Shared>,
}

struct Shared {
    origin: Arc<OwnerProcess>,
    /// Dropped before the connections: its thread ends then, and gives up its share in them.
    watchdog: Watchdog,
    net: Arc<Net>,
    lines: Arc<WaitQueues>,
    /// Those for several resources at once.
    set_lines: Arc<WaitQueues>,
    fencing_expiry: Ttl,
    rules: Arc<Rules>,
    max_ttl: Duration,
    key_prefix: Vec<u8>,
    listener: Option<Listener>,
}

impl LockClient {
    /// A client of these nodes with the default settings. Connects to nothing yet.
    ///
    /// # Errors
    ///
    /// As [`Builder::build`].
    pub fn new<I: IntoIterator<Item: Into<String>>>(urls: I) -> Result<Self, ConfigError> {
        Self::builder().nodes(urls).build()
    }

    /// A client with other than the default settings.
    pub fn builder() -> Builder {
        Builder::new()
    }

    /// Takes the lock of `resource` for `ttl` if it is free, in one attempt.
    ///
    /// Of several clients that ask at the same moment each may be granted some nodes, and none
    /// enough. An attempt that is split in this way is undone and made again after a random pause
    /// of about a round, up to four attempts in all and within one
    /// [`node_timeout`](Builder::node_timeout), so that one of them gets the lock. It is still
    /// possible, though rare, that all are told `None`: each had its four attempts cross with
    /// another's, or no time for more than one because the nodes take about half of `node_timeout`
    /// to answer, or lost before an answer that granted it a node had come. So `None` says that
    /// others asked for the lock or hold it, not that work is being done under it. Who must know
    /// asks again, or [waits](Self::try_lock_for).
    ///
    /// # Errors
    ///
    /// The resource's name or the ttl cannot be used, too few nodes gave an answer that counts,
    /// they took too long, two of them are one server, or there are no random numbers.
    pub fn try_lock(
        &self,
        resource: impl AsRef<[u8]>,
        ttl: Duration,
    ) -> Result<Option<LockGuard>, LockError> {
        self.request(resource).ttl(ttl).no_wait().acquire()
    }

    /// Takes the lock of `resource` for `ttl`, waiting for it for up to `wait`. With a `wait` of
    /// zero this is [`try_lock`](Self::try_lock); one that is too long to be counted means for
    /// ever. A thread that holds the lock itself waits in vain: it is [not re-entrant](LockClient).
    ///
    /// # Errors
    ///
    /// As [`try_lock`](Self::try_lock), if the last attempt failed so, or at once if waiting is of
    /// no use: see [`NodeError::is_permanent`](crate::NodeError::is_permanent).
    pub fn try_lock_for(
        &self,
        resource: impl AsRef<[u8]>,
        ttl: Duration,
        wait: Duration,
    ) -> Result<Option<LockGuard>, LockError> {
        self.request(resource).ttl(ttl).wait_for(wait).acquire()
    }

    /// Takes the lock of `resource` for `ttl`, waiting for it until `deadline`. With a `deadline`
    /// that has passed this is [`try_lock`](Self::try_lock).
    ///
    /// # Errors
    ///
    /// As [`try_lock_for`](Self::try_lock_for).
    pub fn try_lock_until(
        &self,
        resource: impl AsRef<[u8]>,
        ttl: Duration,
        deadline: Instant,
    ) -> Result<Option<LockGuard>, LockError> {
        self.request(resource).ttl(ttl).wait_until(deadline).acquire()
    }

    /// Takes the lock of `resource` for `ttl`, waiting for it as long as it takes: for others to
    /// release it, for enough nodes to be reachable, and, where a majority was started less than
    /// [`max_ttl`](Builder::max_ttl) ago, for their grants to count (see
    /// [`restart_guard`](Builder::restart_guard)). The last is a minute on servers that have just
    /// been started; [`Event::Quarantined`](crate::Event::Quarantined) says so.
    ///
    /// The lock is [not re-entrant](LockClient): a thread that has a guard of it, and waits for it
    /// again before it drops that, waits for the end of its own lock's validity.
    ///
    /// # Errors
    ///
    /// As [`try_lock`](Self::try_lock), but only what waiting does not mend: too few nodes answered
    /// because most of them, say, want a password, or are no Redis servers.
    pub fn lock(&self, resource: impl AsRef<[u8]>, ttl: Duration) -> Result<LockGuard, LockError> {
        let guard = self.request(resource).ttl(ttl).wait_forever().acquire()?;
        Ok(guard.expect("an operation that waits for ever does not end with a lock held by others"))
    }

    pub(crate) fn from_config(config: Config) -> Result<Self, ConfigError> {
        let quarantine = config.restart_guard.then_some(config.max_ttl);
        let sessions = config.urls.iter().map(|url| {
            // If there are no random numbers now, reconnecting is less spread out; locking, later,
            // is what needs them.
            let seed = draw().map_or(0, |draw| draw.seed);
            let mut options = SessionOptions::new(&url.to_string(), seed);
            options.credentials = Credentials::new(
                url.user(),
                url.password(),
                url.database(),
                config.client_name.as_deref(),
            );
            options.quarantine = quarantine;
            options.patience = config.rules.node_timeout;
            options.silence_max = config.rules.node_timeout * 10;
            (url.address().clone(), Session::new(options))
        });
        let (nodes, patience) = (sessions.collect(), config.rules.node_timeout);
        let origin = Arc::new(OwnerProcess::here());
        let listener = config.listener.as_ref().map(|listener| listener.of_client(&origin));
        let mailbox = listener.as_ref().map(Listener::mailbox);
        let net = Net::new(nodes, config.wait_for_all, patience, mailbox, config.io_thread);
        let net = Arc::new(net.map_err(ConfigError::System)?);
        let prefix = config.key_prefix.len();
        let tell = listener.clone().map(|listener| events::tell_news(listener, prefix));
        let lines = || Arc::new(WaitQueues::new(config.handoff_limit, Arc::clone(&origin)));
        let shared = Shared {
            watchdog: Watchdog::new(&net, &config.rules, &origin, tell),
            net,
            lines: lines(),
            set_lines: lines(),
            fencing_expiry: config.fencing_expiry,
            rules: config.rules,
            max_ttl: config.max_ttl,
            key_prefix: config.key_prefix,
            listener,
            origin,
        };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// Runs an operation to its end.
    pub(crate) fn run<O: Operation>(&self, operation: O) -> (O::Outcome, LastRound) {
        self.run_telling(operation, |_, _| None)
    }

    /// The main loop: every operation, of every thread, runs through here. The operation says what
    /// is to be done next, and is told what came of it; when and with which random numbers is added
    /// here. Before it rests, `tell` may say why, and may end it.
    fn run_telling<O: Operation>(
        &self,
        mut operation: O,
        tell: impl Fn(&mut O, &LastRound) -> Option<O::Outcome>,
    ) -> (O::Outcome, LastRound) {
        let mut last = LastRound::default();
        loop {
            match operation.poll() {
                Step::Send(request) if request.verb().is_answered() => {
                    let returns = self.shared.net.submit(request).returns;
                    last = LastRound { reports: returns.reports, twins: returns.twins };
                    // After the answer that decided it: a grant must not look younger than it is.
                    operation.handle(clock::now(), Input::Ballot(returns.ballot));
                }
                Step::Send(request) => self.shared.net.post(request),
                Step::Wait(until) => {
                    if let Some(outcome) = tell(&mut operation, &last) {
                        return (outcome, last);
                    }
                    sleep_until(until);
                    let draw = draw().map(|draw| draw.at(clock::wall_micros()));
                    let input = draw.map_or(Input::NoEntropy, Input::Attempt);
                    // Before the first byte is written: a lock must not look longer than it is.
                    operation.handle(clock::now(), input);
                }
                Step::Done(outcome) => return (outcome, last),
            }
        }
    }

    /// Sends a request that nobody waits for.
    pub(crate) fn post(&self, request: Request) {
        self.shared.net.post(request);
    }

    pub(crate) fn rules(&self) -> &Arc<Rules> {
        &self.shared.rules
    }
}

/// What is remembered of an operation's last round, for the error it may end with.
#[derive(Default)]
pub(crate) struct LastRound {
    pub(crate) reports: Vec<NodeReport>,
    twins: Option<(Arc<str>, Arc<str>)>,
}

/// Fresh random numbers from the operating system, in one call.
fn draw() -> Option<Entropy> {
    let mut bytes = [0; Entropy::LEN];
    getrandom::fill(&mut bytes).ok()?;
    Some(Entropy::from_bytes(bytes))
}

fn sleep_until(time: Time) {
    let pause = time.since(clock::now());
    if !pause.is_zero() {
        thread::sleep(pause);
    }
}

impl fmt::Debug for LockClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LockClient")
            .field("nodes", &self.shared.rules.nodes)
            .finish_non_exhaustive()
    }
}
