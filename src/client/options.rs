//! What a request may ask for besides the exclusive lock: a share of it, the name of its owner in
//! the lock's value, and an end of the wait. Also the end of all waits of a client.

use super::{LockClient, LockRequest};
use crate::cancel_token::CancelToken;
use crate::engine::Share;
#[cfg(doc)]
use crate::error::Error;
#[cfg(doc)]
use crate::guard::LockGuard;

/// The longest label of an owner, in bytes: enough for names of a host, a process and a thread.
pub(super) const OWNER_MAX: usize = 256;

impl LockRequest<'_> {
    /// Requests the lock as a reader: any number of readers hold it at the same time, and nobody
    /// else. A request without this is a writer's: it is for the exclusive lock, which has one
    /// holder.
    ///
    /// ```no_run
    /// # use redlatch::{LockClient, Error};
    /// # fn read_the_catalog() {}
    /// # fn write_the_catalog() {}
    /// # fn example(client: &LockClient) -> Result<(), Error> {
    /// let reading = client.request("catalog").shared().lock()?; // other readers may read too
    /// read_the_catalog();
    /// drop(reading);
    /// let writing = client.request("catalog").lock()?; // no reader and no other writer
    /// write_the_catalog();
    /// # drop(writing);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// A reader is a holder like any other. It needs a majority of the nodes and has a ttl of its
    /// own; if its process dies, it delays a writer until its ttl has passed (on ZooKeeper, until
    /// its session has ended). A program that sets the resource's key by a plain `SET NX` counts as
    /// a writer.
    ///
    /// Readers and writers wait in one queue: a reader that comes after a waiting writer is served
    /// after it, and readers that stand next to each other are served together. So readers do not
    /// keep out a writer that waits, and [`try_lock`](Self::try_lock) gets no share while one does.
    ///
    /// **Threads of one client that read at the same time have one share together**, so that a
    /// hundred of them cost one round. A thread that asks within 10 ms after the share was asked
    /// for takes part in it, or waits for it with the thread that asks. The last of them to give it
    /// up releases it on the nodes. Each has a guard of its own, and the share's validity: one
    /// extension is for all of them, and so is a loss. When one that is not the last
    /// [releases](LockGuard::release) it, no node is asked, and the result goes by the clock alone,
    /// as in a handoff. To the nodes they are one holder, and [`inspect`](LockClient::inspect)
    /// shows one. Threads with different settings (ttl, [`owner`](Self::owner),
    /// [`fenced`](Self::fenced), [`keep_alive`](Self::keep_alive), [`max_hold`](Self::max_hold),
    /// [`min_validity`](Self::min_validity)) or
    /// with [`hold_at_least`](Self::hold_at_least) take shares of their own: give readers different
    /// owners to see each. A writer that waits in the queue is passed over by readers of those 10
    /// ms and by no later ones.
    ///
    /// **A reader should not wait for the same lock.** Waiting for the exclusive lock, it waits for
    /// itself, until its own ttl has passed, or up to 24 hours if it is kept alive. Waiting for a
    /// second share, it does so too if a writer waits in between. No error tells it: drop the first
    /// guard before. [`guide::limits`](crate::guide::limits#what-readers-and-permits-do-not-do) has
    /// what else readers do not do.
    ///
    /// With [`fenced`](Self::fenced), a reader gets a number that is at least that of the last
    /// writer, and less than the next writer's. So what it reads includes every write whose number
    /// is not larger, and none with a larger one.
    ///
    /// Redis nodes must be Redis 5 or later, or Valkey, and the user needs [further
    /// rights](crate::guide::settings#servers-and-rights). On ZooKeeper, other programs do not see
    /// readers and permits. (The readers-writer lock is that of
    /// operating systems. Redisson's `RReadWriteLock` has it on one server, where each reader has a
    /// timeout too.)
    ///
    /// # Errors
    ///
    /// For a set of resources, acquiring the lock fails with
    /// [`ResourceError::SharedSet`](crate::error::ResourceError::SharedSet).
    pub fn shared(mut self) -> Self {
        self.settings.share = Some(Share::Reader);
        self
    }

    /// Requests one of `count` permits, from 1 to 1024: there are at most so many holders at a
    /// time, each in a slot of its own, a number from 0, which [`LockGuard::slot`] returns.
    ///
    /// ```no_run
    /// # use redlatch::{LockClient, Error};
    /// # fn render_on(gpu: u32) {}
    /// # fn example(client: &LockClient) -> Result<(), Error> {
    /// let gpu = client.request("gpu").one_of(4).lock()?;
    /// render_on(gpu.slot().expect("it is one of four"));
    /// # drop(gpu);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// A permit is a lock with a number, and a majority of the nodes has to grant the same one. (It
    /// is not enough that each node counts its grants: with two permits on three nodes, three
    /// clients can have two nodes each.) It has a ttl of its own, and is extended, kept alive and
    /// released for itself. One that is given back goes to the client that has waited longest, and
    /// one whose holder dies is free when its ttl has passed. (On ZooKeeper, the ensemble grants
    /// each number once, and a dead holder's permit is free when its session has ended.)
    ///
    /// All clients should name the same count. A client that names a smaller one is granted only
    /// numbers below it, while others may hold those above. The exclusive lock of the resource,
    /// requested without this, excludes all permits, and waits until they have been given back; so
    /// does a [reader](Self::shared).
    ///
    /// With [`fenced`](Self::fenced), each grant of a permit gets a larger fencing token than all
    /// grants of it before. What a permit's number protects, such as one GPU of four, compares the
    /// tokens that were sent to it. Two permits that are granted at the same time may have the same
    /// token, except on ZooKeeper.
    ///
    /// For waiting, for threads that have a permit and wait for another or for the exclusive lock,
    /// and for what the nodes need, see [`shared`](Self::shared).
    ///
    /// # Errors
    ///
    /// Acquiring the lock fails with
    /// [`ResourceError::Permits`](crate::error::ResourceError::Permits) if `count` is not within
    /// its limits, and with [`ResourceError::SharedSet`](crate::error::ResourceError::SharedSet)
    /// for a set of resources.
    pub fn one_of(mut self, count: u32) -> Self {
        self.settings.share = Some(Share::Permit { of: count, number: None });
        self
    }

    /// Writes a label into the lock's value, behind the token, for
    /// [`inspect`](LockClient::inspect) and for people who look at the key. While the call waits,
    /// its entry in the nodes' queue has the label too. At most 256 bytes, none by default. Every
    /// client that can read the keys can read it.
    ///
    /// ```no_run
    /// # fn example(client: &redlatch::LockClient) -> Result<(), redlatch::Error> {
    /// let lock = client.request("orders:42").owner("billing, release 7").lock()?;
    /// # drop(lock);
    /// # Ok(())
    /// # }
    /// ```
    pub fn owner(mut self, label: impl AsRef<[u8]>) -> Self {
        self.settings.owner = label.as_ref().to_vec();
        self
    }

    /// Sets an [owner](Self::owner) that names this host, process and thread: `host:pid:thread`.
    ///
    /// ```no_run
    /// # fn example(client: &redlatch::LockClient) -> Result<(), redlatch::Error> {
    /// let lock = client.request("orders:42").owned_by_this_thread().lock()?;
    /// # drop(lock);
    /// # Ok(())
    /// # }
    /// ```
    pub fn owned_by_this_thread(self) -> Self {
        let thread = std::thread::current();
        let name = thread.name().map_or_else(|| format!("{:?}", thread.id()), str::to_owned);
        let mut label = format!("{}:{}:{name}", host(), std::process::id());
        let end = (0..=OWNER_MAX.min(label.len())).rev().find(|end| label.is_char_boundary(*end));
        label.truncate(end.unwrap_or(0));
        self.owner(label)
    }

    /// Has the call end as [`Error::Cancelled`] once this token is
    /// [cancelled](CancelToken::cancel), however long it would wait: for a server whose client has
    /// hung up, for instance. If the token is cancelled before the call, nothing is sent.
    ///
    /// ```no_run
    /// # use redlatch::{CancelToken, LockClient, Error};
    /// # fn example(client: &LockClient, hung_up: &CancelToken) -> Result<(), Error> {
    /// let lock = client.request("orders:42").cancelled_by(hung_up).lock()?;
    /// # drop(lock);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// The lock is not given up when the token is cancelled after the call has returned. The
    /// client's own [token](LockClient::cancel_token) cancels the call too; a second call of this
    /// method replaces the first.
    pub fn cancelled_by(mut self, token: &CancelToken) -> Self {
        self.settings.cancelled_by = Some(token.clone());
        self
    }
}

impl LockClient {
    /// The token of all calls of this client and its clones that acquire locks, for a program that
    /// shuts down. Once it is cancelled, the client acquires no more locks: build another one for
    /// that. [`LockRequest::cancelled_by`] is for a single call.
    ///
    /// ```no_run
    /// # use redlatch::{LockClient, Error};
    /// # use std::time::Duration;
    /// # fn wait_for_the_signal_to_stop() {}
    /// # fn work() {}
    /// # fn example(client: LockClient) -> Result<(), Error> {
    /// let token = client.cancel_token();
    /// std::thread::spawn(move || {
    ///     wait_for_the_signal_to_stop();
    ///     token.cancel();
    /// });
    /// loop {
    ///     match client.lock("queue", Duration::from_secs(10)) {
    ///         Ok(lock) => {
    ///             work();
    ///             drop(lock);
    ///         }
    ///         Err(Error::Cancelled) => break,
    ///         Err(error) => return Err(error),
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn cancel_token(&self) -> CancelToken {
        self.core.cancellation.token().clone()
    }
}

/// The name of this machine.
fn host() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").ok();
    let name = name.or_else(|| std::env::var("HOSTNAME").ok()).unwrap_or_default();
    if name.trim().is_empty() { "unknown".to_owned() } else { name.trim().to_owned() }
}
