//! A request for a lock: its settings, beyond a resource and a ttl.

use super::LockClient;
use crate::cancel_token::CancelToken;
use crate::config::{OWNER_MAX, this_process};
use crate::engine::Share;
use crate::error::{Error, ResourceError};
#[cfg(doc)]
use crate::fencing::FencingToken;
#[cfg(doc)]
use crate::guard::LockGuard;
use crate::inspect::{NotALock, OwnHolder};
use std::fmt;
use std::sync::Arc;
use std::thread::{self, ThreadId};
use std::time::Duration;

/// The ttl of a request that sets none. The Redlock description uses ten seconds in its example:
/// several hundred times a round over healthy nodes, and not longer than others can be expected to
/// wait for a holder that died.
const DEFAULT_TTL: Duration = Duration::from_secs(10);

/// A lock to acquire, with its settings. Made by [`LockClient::request`] and
/// [`LockClient::request_all`].
///
/// ```no_run
/// # use std::time::Duration;
/// # fn charge_the_card() {}
/// # let client = redlatch::LockClient::new("redis://localhost")?;
/// let request = client.request("orders:42").ttl(Duration::from_secs(5)).keep_alive();
/// if let Some(lock) = request.try_lock_for(Duration::from_secs(1))? {
///     charge_the_card();
///     drop(lock);
/// }
/// # Ok::<(), redlatch::Error>(())
/// ```
#[derive(Clone)]
#[must_use = "a request does nothing before `lock`, `with_lock` or another verb"]
pub struct LockRequest<'a> {
    pub(crate) client: &'a LockClient,
    pub(super) keys: Result<LockKeys, ResourceError>,
    pub(crate) settings: RequestSettings,
}

#[derive(Clone)]
pub(super) struct LockKeys {
    pub(super) first: Arc<[u8]>,
    /// Those that are locked together with the first.
    pub(super) more: Vec<Arc<[u8]>>,
}

#[derive(Clone, Debug)]
pub(crate) struct RequestSettings {
    pub(crate) ttl: Duration,
    /// Instead of the client's.
    pub(crate) min_validity: Option<Duration>,
    pub(super) is_fenced: bool,
    /// The label in the lock's value, instead of the client's.
    pub(crate) owner: Option<Vec<u8>>,
    pub(super) keep_alive: bool,
    pub(super) max_hold: Option<Duration>,
    pub(super) hold_at_least: Duration,
    pub(super) cancelled_by: Option<CancelToken>,
    /// The share that is requested, if it is not the exclusive lock.
    pub(super) share: Option<Share>,
    /// Does no safety depend on the lock? Then it is taken from nodes in quarantine as well.
    pub(crate) counts_in_quarantine: bool,
    /// The thread that counts as the one that takes it. `None`: the one that calls.
    pub(super) thread: Option<Option<ThreadId>>,
}

impl<'a> LockRequest<'a> {
    pub(super) fn new(client: &'a LockClient, keys: Result<LockKeys, ResourceError>) -> Self {
        let settings = RequestSettings {
            ttl: DEFAULT_TTL,
            min_validity: None,
            is_fenced: false,
            owner: None,
            keep_alive: false,
            max_hold: None,
            hold_at_least: Duration::ZERO,
            cancelled_by: None,
            share: None,
            counts_in_quarantine: false,
            thread: None,
        };
        Self {
            client,
            keys,
            settings,
        }
    }

    /// The key of the lock, or of the first of several.
    pub(crate) fn first_key(&self) -> Result<&Arc<[u8]>, Error> {
        match &self.keys {
            Ok(keys) => Ok(&keys.first),
            Err(error) => Err(Error::Resource(*error)),
        }
    }

    /// How long the lock is held unless it is extended, by default 10 s, as in the example of the
    /// Redlock description. Rounded down to whole milliseconds. It must leave some validity after
    /// [drift](crate::Builder::drift_factor) and 2 ms, and is at most
    /// [`max_ttl`](crate::Builder::max_ttl). On ZooKeeper it does not say how long the lock of a
    /// dead client stays taken: see [`guide::zookeeper`](crate::guide::zookeeper).
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.settings.ttl = ttl;
        self
    }

    /// The least validity with which the lock is granted, instead of the client's
    /// [`min_validity`](crate::Builder::min_validity). If the ttl cannot leave as much, it is
    /// refused as too short.
    pub fn min_validity(mut self, least: Duration) -> Self {
        self.settings.min_validity = Some(least);
        self
    }

    /// Requests a [fencing token](FencingToken) with the lock: a number that grows with every
    /// grant; a [reader](Self::shared) gets that of a writer.
    ///
    /// The nodes count the grants under the lock's key with `:redlatch:fence` behind it. If a
    /// majority of their counters agrees, which they do unless a node missed a grant or lost its
    /// data, this takes no more than the one round of the lock itself; otherwise a second one. On
    /// ZooKeeper the token is the number of a transaction, and takes no request.
    pub fn fenced(mut self) -> Self {
        self.settings.is_fenced = true;
        self
    }

    /// Keeps the lock alive as long as its guard exists: the client extends it by its ttl
    /// automatically, each time about a third of that has passed.
    ///
    /// One thread does that for all locks of the client, those that end first before the others.
    /// Neither another lock nor a callback delays it. An extension that too few nodes confirm is
    /// tried again as long as the lock is valid.
    ///
    /// It does not bring back a lock whose validity has passed, because the nodes were silent or
    /// because this process was stopped, and extends none beyond [`max_hold`](Self::max_hold),
    /// which also ends a lock whose guard was leaked. So the holder still calls
    /// [`ensure_held`](LockGuard::ensure_held) before what must not run twice, or registers a
    /// callback with [`on_lost`](LockGuard::on_lost).
    ///
    /// # Errors
    ///
    /// With this setting, acquiring the lock fails if three rounds of
    /// [`node_timeout`](crate::Builder::node_timeout) do not fit into the validity of the ttl (it
    /// must be about 154 ms by default), if the thread cannot be started, or if the client keeps
    /// too many locks alive ([`Error::TooManyKeptAlive`]): 320 extensions are under way at a time,
    /// so with rounds of 50 ms a client keeps about 12,600 locks with a ttl of 3 s alive, and ten
    /// times as many with rounds of 5 ms or a ttl of 30 s. The rounds of the last while count. If
    /// they take longer afterwards, locks can be lost.
    ///
    /// On ZooKeeper the client's session keeps its locks alive, however many there are, and their
    /// ttl does not matter: there are none of these errors.
    pub fn keep_alive(mut self) -> Self {
        self.settings.keep_alive = true;
        self
    }

    /// How long the lock may be held in all, counted from when it was requested. Extensions,
    /// automatic ones included, end no later, less the drift and up to a sixth of the ttl. By
    /// default it is [`Builder::max_hold`](crate::Builder::max_hold), which also limits what is set
    /// here. If neither is set, a lock that is kept alive is held for 24 hours at most, so that it
    /// is free again some day if its guard was leaked or its holder hangs. A longer ttl is an
    /// [error](crate::error::TtlError::BeyondHold); zero, of a lock that is not kept alive, allows
    /// its ttl and no extension.
    pub fn max_hold(mut self, longest: Duration) -> Self {
        self.settings.max_hold = Some(longest);
        self
    }

    /// How long the lock stays taken at least, counted from when it was requested, even if it is
    /// released or its guard is dropped earlier. For a job that starts on several machines at the
    /// same time, by clocks that differ a little, and must run once:
    ///
    /// ```no_run
    /// # use redlatch::Error;
    /// # use std::time::Duration;
    /// # fn send_the_report() -> Result<(), Error> { Ok(()) }
    /// # let client = redlatch::LockClient::new("redis://localhost")?;
    /// // Started every 15 minutes on each of five machines, whose clocks differ by up to a minute.
    /// let request = client.request("report").ttl(Duration::from_secs(10));
    /// let ran = request.hold_at_least(Duration::from_secs(14 * 60)).try_with_lock(|_lock| {
    ///     send_the_report() // may take a moment or an hour: the lock is kept alive meanwhile
    /// })?; // `None`: another machine runs it, or ran it less than 14 minutes ago
    /// # Ok::<(), redlatch::Error>(())
    /// ```
    ///
    /// A release before that time, also at the end of a body that failed, asks the nodes to end the
    /// lock when the time has passed. Such a lock is not handed to another thread of this client,
    /// and its automatic extension stops. [`let_expire`](LockGuard::let_expire) ends it with its
    /// ttl as usual, and an attempt that fails leaves no lock.
    ///
    /// If the holder crashes, or too few nodes get the release, the lock ends with its ttl. The
    /// time may be longer than [`max_ttl`](crate::Builder::max_ttl): see [what
    /// holds](crate::guide::guarantees#locks-that-stay-taken). On ZooKeeper it is at most half the
    /// session timeout, since the lock ends with the session if the process does.
    ///
    /// # Errors
    ///
    /// Acquiring the lock fails with [`TtlError::HoldTooLong`](crate::error::TtlError::HoldTooLong)
    /// if that time is longer than [`max_hold`](Self::max_hold), 24 hours if that is not set, or
    /// longer than 365 days.
    pub fn hold_at_least(mut self, least: Duration) -> Self {
        self.settings.hold_at_least = least;
        self
    }
}

impl LockKeys {
    pub(super) fn of_one(first: Arc<[u8]>) -> Self {
        Self {
            first,
            more: Vec::new(),
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        std::iter::once(&self.first)
            .chain(&self.more)
            .map(|key| &**key)
    }
}

impl fmt::Debug for LockRequest<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = self.keys.iter().flat_map(LockKeys::iter);
        let keys: Vec<String> = all.map(|key| key.escape_ascii().to_string()).collect();
        f.debug_struct("LockRequest")
            .field("keys", &keys)
            .field("settings", &self.settings)
            .finish()
    }
}

// What a request may ask for besides the exclusive lock: a share of it, the name of its owner in
// the lock's value, and an end of the wait. Also the end of all waits of a client.

impl LockRequest<'_> {
    /// Requests the lock as a reader: any number of readers hold it at the same time, and nobody
    /// else. A request without this is a writer's: it is for the exclusive lock, which has one
    /// holder.
    ///
    /// ```no_run
    /// # fn read_the_catalog() {}
    /// # fn write_the_catalog() {}
    /// # let client = redlatch::LockClient::new("redis://localhost")?;
    /// let reading = client.request("catalog").shared().lock()?; // other readers may read too
    /// read_the_catalog();
    /// drop(reading);
    /// let writing = client.request("catalog").lock()?; // no reader and no other writer
    /// write_the_catalog();
    /// # Ok::<(), redlatch::Error>(())
    /// ```
    ///
    /// A reader is a holder like any other, with a ttl of its own. A program that sets the
    /// resource's key by a plain `SET NX` counts as a writer. Readers and writers wait in one
    /// queue: a reader that comes after a waiting writer is served after it, and
    /// [`try_lock`](Self::try_lock) gets no share while one waits.
    ///
    /// **Threads of one client that ask for a share within 10 ms have one together**, if their
    /// settings are the same and [`hold_at_least`](Self::hold_at_least) is not set. Each has a
    /// guard of its own; an extension is for all of them, and so is a loss. The last of them to
    /// give the share up releases it on the nodes; for the others, the result of a
    /// [release](LockGuard::release) goes by the clock alone. To the nodes and to
    /// [`inspect`](LockClient::inspect) they are one holder.
    ///
    /// **A reader should not wait for the same lock**: it would wait for itself, until its own ttl
    /// has passed, and no error tells it.
    /// [`guide::limits`](crate::guide::limits#what-readers-and-permits-do-not-do) has this and what
    /// else readers do not do.
    ///
    /// With [`fenced`](Self::fenced), a reader gets a number that is at least that of the last
    /// writer, and less than the next writer's. So what it reads includes every write whose number
    /// is not larger, and none with a larger one.
    ///
    /// Redis nodes must be Redis 5 or later, or Valkey, and the user needs [further
    /// rights](crate::guide::settings#servers-and-rights). On ZooKeeper, other programs do not see
    /// readers and permits.
    ///
    /// # Errors
    ///
    /// For a set of resources, acquiring the lock fails with
    /// [`ResourceError::SharedSet`](crate::error::ResourceError::SharedSet).
    pub fn shared(mut self) -> Self {
        self.settings.share = Some(Share::Reader);
        self
    }

    /// Requests one of `count` permits, from 1 to 1024: there are at most this many holders at a
    /// time, each in a slot of its own, a number from 0, which [`LockGuard::slot`] returns.
    ///
    /// ```no_run
    /// # fn render_on(gpu: u32) {}
    /// # let client = redlatch::LockClient::new("redis://localhost")?;
    /// let gpu = client.request("gpu").one_of(4).lock()?;
    /// render_on(gpu.slot().expect("it is one of four"));
    /// # Ok::<(), redlatch::Error>(())
    /// ```
    ///
    /// A permit is a lock with a number, and a majority of the nodes has to grant the same one. It
    /// has a ttl of its own, and is extended, kept alive and released for itself. One that is given
    /// back goes to the client that has waited longest.
    ///
    /// All clients should name the same count: one that names a smaller count is granted only
    /// numbers below it, while others may hold those above. The exclusive lock of the resource,
    /// requested without this, excludes all permits, and waits until they have been given back; so
    /// does a [reader](Self::shared), where also stands what the nodes need and what a thread that
    /// has a permit should not wait for.
    ///
    /// With [`fenced`](Self::fenced), each grant of a permit gets a larger fencing token than all
    /// grants of it before. Two permits that are granted at the same time may have the same token,
    /// except on ZooKeeper: what each protects, such as one GPU of four, compares its own.
    ///
    /// # Errors
    ///
    /// Acquiring the lock fails with
    /// [`ResourceError::Permits`](crate::error::ResourceError::Permits) if `count` is not within
    /// its limits, and with [`ResourceError::SharedSet`](crate::error::ResourceError::SharedSet)
    /// for a set of resources.
    pub fn one_of(mut self, count: u32) -> Self {
        self.settings.share = Some(Share::Permit {
            of: count,
            number: None,
        });
        self
    }

    /// Writes a label into the lock's value, behind the token, for [`inspect`](LockClient::inspect)
    /// and for people who look at the key. While the call waits, its entry in the nodes' queue has
    /// the label too. At most 256 bytes; by default the client's [`owner`](crate::Builder::owner).
    /// An empty one is none. Every client that can read the keys can read it.
    pub fn owner(mut self, label: impl AsRef<[u8]>) -> Self {
        self.settings.owner = Some(label.as_ref().to_vec());
        self
    }

    /// Sets an [owner](Self::owner) that names this host, process and thread: `host:pid:thread`.
    pub fn owned_by_this_thread(self) -> Self {
        let thread = thread::current();
        let name = thread
            .name()
            .map_or_else(|| format!("{:?}", thread.id()), str::to_owned);
        let mut label = format!("{}:{name}", this_process());
        let end = (0..=OWNER_MAX.min(label.len()))
            .rev()
            .find(|end| label.is_char_boundary(*end));
        label.truncate(end.unwrap_or(0));
        self.owner(label)
    }

    /// Has the call end as [`Error::Cancelled`] once this token is
    /// [cancelled](CancelToken::cancel), however long it would wait: for a server whose client has
    /// hung up, for instance. If the token is cancelled before the call, nothing is sent; if it is
    /// after the call has returned, the lock is not given up. The client's own
    /// [token](LockClient::cancel_token) cancels the call too; a second call of this method
    /// replaces the first.
    pub fn cancelled_by(mut self, token: &CancelToken) -> Self {
        self.settings.cancelled_by = Some(token.clone());
        self
    }
}

impl LockRequest<'_> {
    /// Has this thread count as the one that takes the lock, instead of the one that calls. For
    /// programs that call in one thread for another, such as a binding to another language; and
    /// with `None` for those whose guard leaves the thread that calls: from `spawn_blocking`, or
    /// from a pool. Then no thread in particular holds the lock, and none is said to wait for
    /// itself. A call [without a thread](crate::Pending) is for none unless this names one. See
    /// [`Event::HeldByThisThread`](crate::Event::HeldByThisThread) and
    /// [`own_holder`](Self::own_holder).
    pub fn for_thread(mut self, thread: Option<ThreadId>) -> Self {
        self.settings.thread = Some(thread);
        self
    }

    /// Which thread of this client, if any, holds what this request asks for, so that both cannot
    /// have it at the same time; of several, rather the one that asks. A permit is held by threads
    /// of this client if they have all of them, and by the one that asks if it has all. Asks no
    /// node. For the text of a program whose wait ended with `None`, or that would rather not begin
    /// it:
    ///
    /// ```no_run
    /// # use redlatch::{LockClient, OwnHolder};
    /// # use std::time::Duration;
    /// # let client = LockClient::new("redis://localhost")?;
    /// let request = || client.request("orders:42").ttl(Duration::from_secs(10));
    /// if request().try_lock_for(Duration::from_secs(1))?.is_none() {
    ///     match request().own_holder() {
    ///         // Such as "this thread holds it itself".
    ///         Some(holder) => eprintln!("orders:42: {holder}"),
    ///         None => eprintln!("orders:42: other clients hold it"),
    ///     }
    /// }
    /// # Ok::<(), redlatch::Error>(())
    /// ```
    ///
    /// `None` also if its name cannot be used, and in a forked child.
    #[must_use]
    pub fn own_holder(&self) -> Option<OwnHolder> {
        let hold =
            self.client
                .core
                .own_hold(self.known_keys()?, self.settings.share, self.thread())?;
        Some(hold.holder)
    }

    /// Why nobody can have what this request asks for, if its name is the key of data that is not a
    /// lock: for the text of a failure, after a call that has returned `None`. It is what that call
    /// has found: this asks no node. Such a call waits for data that ends by itself, and for what
    /// may be another program's lock; other data is [an error](Error::NotALock).
    #[must_use]
    pub fn other_data(&self) -> Option<NotALock> {
        self.known_keys()?
            .find_map(|key| self.client.core.backend.other_data(key))
    }

    /// The keys of which the client may know something. `None` if a name cannot be used, and in a
    /// forked child.
    fn known_keys(&self) -> Option<impl Iterator<Item = &[u8]>> {
        let keys = self.keys.as_ref().ok()?;
        let is_forked = self.client.core.is_forked();
        (!is_forked).then(|| keys.iter())
    }

    /// The thread for which it asks, if for one in particular.
    pub(super) fn thread(&self) -> Option<ThreadId> {
        self.settings
            .thread
            .unwrap_or_else(|| Some(thread::current().id()))
    }
}

impl LockClient {
    /// The token of all calls of this client and its clones that acquire locks, for a program that
    /// shuts down. Once it is cancelled, the client acquires no more locks: build another one for
    /// that. [`LockRequest::cancelled_by`] is for a single call.
    #[must_use]
    pub fn cancel_token(&self) -> CancelToken {
        self.core.cancellation.token().clone()
    }
}
