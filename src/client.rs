//! The client: how it is built, and its methods that request and take locks, by the names of
//! resources. What it shares with the guards is in `core`.

mod acquire;
mod election;
#[cfg(feature = "groups")]
mod groups;
#[cfg(feature = "diagnostics")]
mod operator;
mod request;
mod task;
mod verbs;

use super::config::{Builder, NodeUrls, is_reserved};
use super::core::{Core, Handle};
use super::error::{Error, ResourceError};
use super::guard::LockGuard;
use super::inspect::Inspection;
use super::node::command::KEY_MAX;
pub use election::{Election, Leadership};
#[cfg(feature = "diagnostics")]
pub use operator::{FoundLock, Locks};
use request::LockKeys;
pub use request::LockRequest;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Acquires locks. Cheap to clone: all clones share one connection to each node, however many
/// threads use them.
///
/// Its methods that take a name and a ttl are short for a [`request`](Self::request), which has all
/// settings, and whose [`lock`](LockRequest::lock) and [`try_lock`](LockRequest::try_lock) say what
/// is promised.
///
/// | method | waits for the lock | if others hold it or wait for it |
/// |---|---|---|
/// | [`try_lock`](Self::try_lock) | no | `Ok(None)` |
/// | [`lock`](Self::lock) | as long as it takes | waits |
/// | [`with_lock`](Self::with_lock) | as long as it takes | waits |
///
/// A resource's name is any non-empty string of bytes. The lock's key on the nodes is the name with
/// the [prefix](Builder::key_prefix) before it: 63 KiB at most, without `:redlatch:` in it, since
/// such keys are fencing counters and queues of other locks.
///
/// Calls that wait are served in the order in which their clients came, and a release wakes the
/// next one: they stand in a queue that the nodes keep. `try_lock` overtakes no call that waits.
/// [The guarantees](crate::guide::waiting#the-nodes-queue) say what this assumes.
///
/// A lock is not re-entrant: it belongs to a guard and not to a thread. A thread that has a guard
/// and waits for the same lock waits until the lock's validity has passed; if the lock is [kept
/// alive](LockRequest::keep_alive), that is up to 24 hours. As a guard may be sent to another
/// thread, which then releases it, such a wait may be right and is not an error: it is [reported
/// as a warning](crate::Event::HeldByThisThread), and [`own_holder`](LockRequest::own_holder)
/// explains one that has ended. Only a body that runs [under a lock](LockRequest::with_lock) and
/// waits for the same lock gets an error: [`Error::HeldByThisThread`].
///
/// With a `zk://` URL, a [ZooKeeper ensemble](crate::guide::zookeeper) keeps the locks instead of
/// Redis nodes, and all methods are the same. What is said of a majority of the nodes holds for the
/// answer of the ensemble, which has no quarantine. A client that died frees its locks when its
/// session ends, and not by their ttl.
///
/// Dropping the last clone waits until the calls have ended whose [`Pending`](crate::Pending) was
/// dropped, and then until the nodes have confirmed the releases that were sent before. It does not
/// wait for a node that has been silent for [`node_timeout`](Builder::node_timeout), and waits for
/// either at most ten times as long, which takes thousands of locks or a slow node. On ZooKeeper
/// it ends the session, which frees all locks at once, and waits for `node_timeout` at most.
///
/// In a forked child of the process that built it, every method fails ([`Error::OtherProcess`]),
/// and dropping it does nothing.
#[derive(Clone)]
pub struct LockClient {
    pub(crate) core: Arc<Core>,
    /// `None` in a call that was started.
    _handle: Option<Handle>,
}

impl LockClient {
    /// Acquires the lock of `resource` for `ttl` if it is free, without waiting: see
    /// [`LockRequest::try_lock`].
    ///
    /// ```no_run
    /// # use std::time::Duration;
    /// # fn send_newsletter() {}
    /// # let client = redlatch::LockClient::new("redis://localhost")?;
    /// if let Some(lock) = client.try_lock("newsletter", Duration::from_secs(10))? {
    ///     send_newsletter();
    ///     drop(lock); // releases it
    /// }
    /// # Ok::<(), redlatch::Error>(())
    /// ```
    pub fn try_lock(
        &self,
        resource: impl AsRef<[u8]>,
        ttl: Duration,
    ) -> Result<Option<LockGuard>, Error> {
        self.request(resource).ttl(ttl).try_lock()
    }

    /// Acquires the lock of `resource` for `ttl`, and waits for it as long as it takes: see
    /// [`LockRequest::lock`].
    ///
    /// ```no_run
    /// # use std::time::Duration;
    /// # fn charge_the_card() {}
    /// # let client = redlatch::LockClient::new("redis://localhost")?;
    /// let lock = client.lock("orders:42", Duration::from_secs(10))?;
    /// charge_the_card();
    /// lock.release()?; // fails if the lock was lost before
    /// # Ok::<(), redlatch::Error>(())
    /// ```
    pub fn lock(&self, resource: impl AsRef<[u8]>, ttl: Duration) -> Result<LockGuard, Error> {
        self.request(resource).ttl(ttl).lock()
    }

    /// Waits for the lock of `resource`, runs `body` under it, and releases it. Meanwhile the lock
    /// is extended automatically by `ttl`.
    ///
    /// ```no_run
    /// # use std::time::Duration;
    /// # fn orders() -> Vec<u32> { Vec::new() }
    /// # fn send(order: u32) {}
    /// # let client = redlatch::LockClient::new("redis://localhost")?;
    /// client.with_lock("outbox", Duration::from_secs(10), |lock| {
    ///     for order in orders() {
    ///         lock.ensure_held()?;
    ///         send(order);
    ///     }
    ///     Ok(())
    /// })?;
    /// # Ok::<(), redlatch::Error>(())
    /// ```
    ///
    /// This `body` fails in no other way than a lock does. One with errors of its own, of whatever
    /// type, is run by [`LockRequest::with_lock`], which is the same otherwise.
    pub fn with_lock<T>(
        &self,
        resource: impl AsRef<[u8]>,
        ttl: Duration,
        body: impl FnOnce(&LockGuard) -> Result<T, Error>,
    ) -> Result<T, Error> {
        self.request(resource).ttl(ttl).with_lock(body)
    }
}

impl fmt::Debug for LockClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LockClient")
            .field("nodes", &self.core.rules.nodes)
            .finish_non_exhaustive()
    }
}

impl LockClient {
    /// A client of these nodes with the default settings, as `builder().nodes(urls).build()` makes
    /// it: of several, or of one. [`Builder::nodes`] has the forms of a URL. Connects to nothing
    /// yet.
    ///
    /// ```
    /// # use redlatch::{Error, LockClient};
    /// let urls = ["redis://10.0.0.1", "redis://10.0.0.2", "redis://10.0.0.3"];
    /// let client = LockClient::new(urls)?;
    /// let client_of_one_node = LockClient::new("redis://localhost")?;
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// Errors are those of [`Builder::build`].
    pub fn new<Form: ?Sized>(urls: impl NodeUrls<Form>) -> Result<Self, Error> {
        Self::builder().nodes(urls).build()
    }

    /// Starts a client with settings other than the defaults, or with the nodes in an
    /// [environment variable](Builder::nodes_from_env).
    pub fn builder() -> Builder {
        Builder::new()
    }
}

impl Builder {
    /// Checks the settings and builds the client. Connects to nothing: that happens with the first
    /// lock, and no node needs to be up.
    ///
    /// # Errors
    ///
    /// [`Error::Config`]: a setting is out of range, there is no node or too many, a URL cannot be
    /// used, two URLs are the same server, or the operating system provides no poll, or no thread
    /// for [`io_thread`](Self::io_thread).
    pub fn build(self) -> Result<LockClient, Error> {
        let core = Arc::new(Core::new(self.check()?)?);
        let handle = Some(Handle::new(&core));
        Ok(LockClient {
            core,
            _handle: handle,
        })
    }
}

/// The most resources in one set. Every node looks at all their keys in one step, and does nothing
/// else meanwhile.
const RESOURCES_MAX: usize = 64;

impl LockClient {
    /// Requests the lock of `resource`, with more settings than a ttl. The methods that acquire a
    /// lock directly are short for this.
    pub fn request(&self, resource: impl AsRef<[u8]>) -> LockRequest<'_> {
        match self.key(resource.as_ref()) {
            Ok(key) => self.request_key(key),
            Err(error) => LockRequest::new(self, Err(error)),
        }
    }

    /// Requests the lock with this key, which need not be that of a resource.
    pub(crate) fn request_key(&self, key: Arc<[u8]>) -> LockRequest<'_> {
        LockRequest::new(self, Ok(LockKeys::of_one(key)))
    }

    /// Requests the locks of several resources at once: all of them, or none. At most 64 resources,
    /// with 63 KiB of keys in all; a resource that is named twice is locked once.
    ///
    /// ```no_run
    /// # fn transfer() {}
    /// # let client = redlatch::LockClient::new("redis://localhost")?;
    /// let locks = client.request_all(["account:1", "account:2"]).lock()?;
    /// transfer();
    /// drop(locks); // releases both
    /// # Ok::<(), redlatch::Error>(())
    /// ```
    ///
    /// On each node, one script locks all of them or none, and a majority of such nodes decides.
    /// One guard with one validity holds all of them; it extends and releases them together.
    /// Requests for the same resources in another order, or for some of them, cannot deadlock: no
    /// client holds some while it waits for others.
    ///
    /// A set that waits stands in the queue of each of its resources. While the others are held,
    /// those that are free are reserved for it, for as long as [the
    /// guarantees](crate::guide::waiting#sets-in-the-queue) say: one ttl of this request. On a
    /// [ZooKeeper ensemble](crate::guide::zookeeper), one transaction puts a set into all its
    /// queues, and it keeps its place for as long as it waits.
    ///
    /// What it does not provide:
    ///
    /// * Atomic work. It locks resources and does not change them: if a holder dies half way
    ///   through its work, half of the work is done, and the locks expire. Write a journal, or use
    ///   a transaction where there is one.
    /// * A place for as long as it takes. If its resources do not come free within one ttl of each
    ///   other, it waits until they do. A longer ttl keeps more for it, and others waiting longer.
    /// * Nested waiting. A thread that holds one resource and waits for another, which is reserved
    ///   for a set that waits for the first, waits for a ttl of the set at most.
    /// * Nodes of a Redis cluster, unless all keys are in one slot: the nodes must be independent.
    pub fn request_all<I: IntoIterator<Item: AsRef<[u8]>>>(&self, resources: I) -> LockRequest<'_> {
        LockRequest::new(self, self.keys(resources))
    }

    pub(crate) fn key(&self, resource: &[u8]) -> Result<Arc<[u8]>, ResourceError> {
        if resource.is_empty() {
            return Err(ResourceError::Empty);
        }
        check_length(self.core.key_prefix.len() + resource.len())?;
        let key: Arc<[u8]> = self
            .core
            .key_prefix
            .iter()
            .chain(resource)
            .copied()
            .collect();
        if is_reserved(&key) || !self.core.backend.has_place_for(&key) {
            return Err(ResourceError::Reserved);
        }
        Ok(key)
    }

    /// The keys of several resources, each once, in the order of their bytes.
    fn keys<I: IntoIterator<Item: AsRef<[u8]>>>(
        &self,
        resources: I,
    ) -> Result<LockKeys, ResourceError> {
        let mut keys = BTreeSet::new();
        for (index, resource) in resources.into_iter().enumerate() {
            // An endless iterator must not be read to its end.
            if index >= RESOURCES_MAX {
                return Err(ResourceError::TooMany {
                    count: index + 1,
                    most: RESOURCES_MAX,
                });
            }
            keys.insert(self.key(resource.as_ref())?);
        }
        check_length(keys.iter().map(|key| key.len()).sum())?;
        let first = keys.pop_first().ok_or(ResourceError::None)?;
        Ok(LockKeys {
            first,
            more: keys.into_iter().collect(),
        })
    }
}

fn check_length(length: usize) -> Result<(), ResourceError> {
    let most = KEY_MAX;
    if length > most {
        Err(ResourceError::TooLong { length, most })
    } else {
        Ok(())
    }
}

// Looking at a lock.

impl LockClient {
    /// Looks at what the nodes hold for `resource`, without locking it: free, held or shared, for
    /// how much longer, by whom if the request [named an owner](crate::LockRequest::owner), and who
    /// waits for it in the nodes' queue; and which threads of this client hold it or wait for it,
    /// which the nodes [do not know](Inspection::own_threads).
    ///
    /// ```no_run
    /// # use redlatch::LockState;
    /// # let client = redlatch::LockClient::new("redis://localhost")?;
    /// let seen = client.inspect("orders:42")?;
    /// match seen.state {
    ///     LockState::Free => eprintln!("free"),
    ///     LockState::Held(holder) => eprintln!("held for another {:?}", holder.remaining),
    ///     other => eprintln!("{other:?}"),
    /// }
    /// for waiter in &seen.waiters {
    ///     let owner = waiter.owner().map(|name| name.to_string());
    ///     eprintln!("{} waits", owner.unwrap_or("an unknown owner".to_owned()));
    /// }
    /// # Ok::<(), redlatch::Error>(())
    /// ```
    ///
    /// It takes as long as the slowest node, up to [`node_timeout`](crate::Builder::node_timeout),
    /// or longer in a new client, as [`nodes`](Self::nodes) does.
    ///
    /// # Errors
    ///
    /// The resource's name cannot be used, or fewer nodes than a majority answered.
    pub fn inspect(&self, resource: impl AsRef<[u8]>) -> Result<Inspection, Error> {
        let key = self.key(resource.as_ref()).map_err(Error::Resource)?;
        self.inspect_key(&key)
    }

    fn inspect_key(&self, key: &Arc<[u8]>) -> Result<Inspection, Error> {
        if self.core.is_forked() {
            return Err(Error::OtherProcess);
        }
        let mut seen = self.core.backend.inspect(Arc::clone(key))?;
        seen.own_threads = self.core.own_threads(key);
        Ok(seen)
    }
}
