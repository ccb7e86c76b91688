//! What is asked for, when more than a resource and a ttl is to be said about it.

use super::LockClient;
use crate::clock;
use crate::engine::{Extras, Patience};
use crate::error::{LockError, ResourceError};
#[cfg(doc)]
use crate::fencing::FencingToken;
use crate::guard::LockGuard;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What a lock lives for unless the request says otherwise. The Redlock description uses ten
/// seconds in its example: several hundred times a round over healthy nodes, and not longer than
/// others can be expected to wait for a holder that died.
const DEFAULT_TTL: Duration = Duration::from_secs(10);

/// The longest label of an owner, in bytes: enough for names of a host, a process and a thread.
const OWNER_MAX: usize = 256;

/// A lock that is to be asked for: made by [`LockClient::request`], and carried out by
/// [`acquire`](Self::acquire).
///
/// ```no_run
/// # use redlatch::{LockClient, LockError};
/// # use std::time::Duration;
/// # fn charge_the_card() {}
/// # fn example(client: &LockClient) -> Result<(), LockError> {
/// let request = client.request("orders:42").ttl(Duration::from_secs(5));
/// if let Some(lock) = request.wait_for(Duration::from_secs(1)).acquire()? {
///     charge_the_card();
///     drop(lock);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
#[must_use = "a request does nothing before `acquire`"]
pub struct LockRequest<'a> {
    client: &'a LockClient,
    keys: Result<Keys, ResourceError>,
    pub(super) terms: Terms,
}

/// The keys of what is to be locked: the first, and those to be locked together with it.
pub(super) type Keys = (Arc<[u8]>, Vec<Arc<[u8]>>);

impl LockClient {
    /// A request for the lock of `resource`, to say more about it than a ttl and how long to wait:
    /// that it is to be kept alive, for instance.
    /// The four methods above are short for this.
    pub fn request(&self, resource: impl AsRef<[u8]>) -> LockRequest<'_> {
        LockRequest::new(self, self.key(resource.as_ref()).map(|key| (key, Vec::new())))
    }

    /// A request for the locks of several resources at once: all of them, or none. At most 64, with
    /// 64 KiB of keys in all; one that is named twice is locked once.
    ///
    /// On each node, one script takes all or nothing, and a majority of such nodes wins. There is
    /// one guard with one validity for all of them; it extends and releases them together. Whoever
    /// asks for the same resources in another order, or for some of them, cannot bring about a
    /// deadlock: nobody holds some while waiting for others.
    ///
    /// This is a two-phase commit of which the nodes' expiry is the time-out: the script prepares,
    /// on all keys or none of a node; the majority commits; the removal that follows a failed
    /// attempt rolls back, and where it does not arrive the ttl does it, so that no node is left
    /// in doubt for longer than that.
    ///
    /// What it does not give:
    ///
    /// * Atomic work. It locks resources and does not change them: whoever dies half way through
    ///   the work leaves half of it done, and the locks expire. Write a journal, or use a
    ///   transaction where there is one.
    /// * Order between sets. Threads of this client that ask for the same set are served in the
    ///   order they came; against those that ask for another set with a resource in common, and
    ///   against locks of one resource, chance decides, and who asks for many waits longer.
    /// * Servers of a cluster, unless all keys are in one slot: the nodes are servers that know
    ///   nothing of each other.
    pub fn request_all<I: IntoIterator<Item: AsRef<[u8]>>>(&self, resources: I) -> LockRequest<'_> {
        LockRequest::new(self, self.keys(resources))
    }
}

/// What is asked for, apart from the resource.
#[derive(Clone, Debug)]
pub(super) struct Terms {
    pub(super) ttl: Duration,
    pub(super) wait: Wait,
    /// If it is to be another than the client's.
    pub(super) min_validity: Option<Duration>,
    pub(super) is_fenced: bool,
    /// What the lock's value says of its owner.
    pub(super) owner: Vec<u8>,
    pub(super) keep_alive: bool,
    pub(super) max_hold: Option<Duration>,
}

/// How long to wait for the lock, from when it is asked for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Wait {
    Not,
    For(Duration),
    Until(Instant),
    Forever,
}

impl Wait {
    /// As of now.
    pub(super) fn patience(self) -> Patience {
        match self {
            Self::Not => Patience::Once,
            Self::For(wait) => Patience::Until(clock::now().after(wait)),
            Self::Until(deadline) => Patience::Until(clock::at(deadline)),
            Self::Forever => Patience::Forever,
        }
    }
}

impl<'a> LockRequest<'a> {
    pub(super) fn new(client: &'a LockClient, keys: Result<Keys, ResourceError>) -> Self {
        let terms = Terms {
            ttl: DEFAULT_TTL,
            wait: Wait::Forever,
            min_validity: None,
            is_fenced: false,
            owner: Vec::new(),
            keep_alive: false,
            max_hold: None,
        };
        Self { client, keys, terms }
    }

    /// For how long the lock is to live unless it is extended: whole milliseconds, what is below is
    /// cut off; by default 10 s, as in the example of the Redlock description. It must leave some
    /// validity after [drift](crate::Builder::drift_factor) and 2 ms, and is at most
    /// [`max_ttl`](crate::Builder::max_ttl).
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.terms.ttl = ttl;
        self
    }

    /// Makes one attempt, and does not wait if others hold the lock. A split vote is put again, as
    /// [`LockClient::try_lock`] says.
    pub fn no_wait(mut self) -> Self {
        self.terms.wait = Wait::Not;
        self
    }

    /// Waits for up to `wait`, counted from when the lock is asked for. Zero makes one attempt, and
    /// what is too long to be counted means for ever.
    pub fn wait_for(mut self, wait: Duration) -> Self {
        self.terms.wait = Wait::For(wait);
        self
    }

    /// Waits until `deadline`. One that has passed makes one attempt.
    pub fn wait_until(mut self, deadline: Instant) -> Self {
        self.terms.wait = Wait::Until(deadline);
        self
    }

    /// Waits as long as it takes. So does a request that does not say how long, as does
    /// [`LockClient::lock`].
    pub fn wait_forever(mut self) -> Self {
        self.terms.wait = Wait::Forever;
        self
    }

    /// The least validity with which the lock is to be handed out, instead of the client's
    /// [`min_validity`](crate::Builder::min_validity). One that the ttl cannot leave makes the ttl
    /// too short.
    pub fn min_validity(mut self, least: Duration) -> Self {
        self.terms.min_validity = Some(least);
        self
    }

    /// Asks for a [fencing token](FencingToken) with the lock, which grows with every grant.
    ///
    /// The nodes count the grants under the lock's key with `:redlatch:fence` behind it. Where
    /// their counters agree, as they do unless one missed a grant or lost its data, this takes no
    /// more than the one round that the lock takes; where they do not, a second one.
    pub fn fenced(mut self) -> Self {
        self.terms.is_fenced = true;
        self
    }

    /// Writes a label into the lock's value, behind the token, for
    /// [`inspect`](LockClient::inspect) and for people who look at the key. At most 256 bytes,
    /// none by default. Everybody who can read the key can read it.
    pub fn owner(mut self, label: impl AsRef<[u8]>) -> Self {
        self.terms.owner = label.as_ref().to_vec();
        self
    }

    /// The same with a label that names this host, process and thread: `host:pid:thread`.
    pub fn owned_by_this_thread(self) -> Self {
        let thread = std::thread::current();
        let name = thread.name().map_or_else(|| format!("{:?}", thread.id()), str::to_owned);
        let mut label = format!("{}:{}:{name}", host(), std::process::id());
        let end = (0..=OWNER_MAX.min(label.len())).rev().find(|end| label.is_char_boundary(*end));
        label.truncate(end.unwrap_or(0));
        self.owner(label)
    }

    /// Keeps the lock alive as long as its guard lives: it is extended by its ttl again and again,
    /// when about a third of that has passed.
    ///
    /// That is done by one thread for all locks of the client, started with the first that is kept
    /// alive; renewals that are due at about the same time are written together. No other lock
    /// holds them up, nor does a callback. Of locks that wait for their turn, those that end first
    /// come first. A renewal that too
    /// few nodes confirm is tried again, after random pauses that grow, as long as the lock is
    /// valid. What it does not do: bring back a lock whose validity has passed, be it that the
    /// nodes were silent, or that this process stood still; renew one that is released, dropped or
    /// passed on; or keep one for longer than [`max_hold`](Self::max_hold), which also ends a lock
    /// whose guard was leaked. So the holder still asks [`ensure_held`](LockGuard::ensure_held)
    /// before what must not run twice, or is told with [`on_lost`](LockGuard::on_lost).
    ///
    /// With this, [`acquire`](Self::acquire) refuses a ttl whose validity has no room for three
    /// rounds of [`node_timeout`](crate::Builder::node_timeout) (about 154 ms by default), or which
    /// is longer than `max_hold`; and it fails if the system has no thread to give. It also refuses
    /// a lock too many ([`LockError::TooManyKept`]): 320 renewals are under way at a time, so with
    /// rounds of 50 ms a client can keep about 12,600 locks of 3 s alive, and at a tenth of the
    /// distance or with ten times the ttl, ten times as many. What counts is how long rounds have
    /// taken lately. If they take longer afterwards, locks may be lost.
    pub fn keep_alive(mut self) -> Self {
        self.terms.keep_alive = true;
        self
    }

    /// For how long the lock may be held in all, counted from when it was asked for: renewals and
    /// extensions end no later, and with them the lock, less what drift takes and up to a sixth of
    /// the ttl. By default what [`Builder::max_hold`](crate::Builder::max_hold) says, which also
    /// bounds what is said here; and if neither says anything, a lock that is kept alive is held
    /// for 24 hours at most, so that one whose guard was leaked, or whose holder hangs, is free
    /// again one day.
    pub fn max_hold(mut self, longest: Duration) -> Self {
        self.terms.max_hold = Some(longest);
        self
    }

    /// Asks for the lock. `None` if others hold it, and waiting was not asked for or has not
    /// helped.
    ///
    /// # Errors
    ///
    /// As [`LockClient::try_lock_for`], or as [`LockClient::lock`] if it waits for ever. What
    /// [`keep_alive`](Self::keep_alive) refuses.
    pub fn acquire(self) -> Result<Option<LockGuard>, LockError> {
        let (key, more_keys) = self.keys.map_err(LockError::Resource)?;
        let (length, most) = (self.terms.owner.len(), OWNER_MAX);
        if length > most {
            return Err(LockError::Resource(ResourceError::OwnerTooLong { length, most }));
        }
        let fence = self.terms.is_fenced.then_some(self.client.core.fencing_expiry);
        let extras = Extras { more_keys, owner: self.terms.owner.clone(), fence };
        let extras = (extras != Extras::default()).then(|| Arc::new(extras));
        self.client.acquire(&key, extras, &self.terms)
    }
}

impl fmt::Debug for LockRequest<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let keys = self.keys.iter().flat_map(|(first, more)| std::iter::once(first).chain(more));
        let keys: Vec<String> = keys.map(|key| key.escape_ascii().to_string()).collect();
        f.debug_struct("LockRequest").field("keys", &keys).field("terms", &self.terms).finish()
    }
}

/// What this machine calls itself.
fn host() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").ok();
    let name = name.or_else(|| std::env::var("HOSTNAME").ok()).unwrap_or_default();
    if name.trim().is_empty() { "unknown".to_owned() } else { name.trim().to_owned() }
}
