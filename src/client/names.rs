//! Requests for locks by the names of resources, and the keys of these on the nodes.

use super::LockClient;
use super::request::{LockKeys, LockRequest};
use crate::config::is_reserved;
use crate::error::ResourceError;
use crate::node::command::KEY_MAX;
use std::collections::BTreeSet;
use std::sync::Arc;

/// The most resources in one set. Every node looks at all their keys in one step, and does nothing
/// else meanwhile.
const RESOURCES_MAX: usize = 64;

impl LockClient {
    /// Requests the lock of `resource`, with more settings than a ttl. The methods that acquire a
    /// lock directly are short for this.
    ///
    /// ```no_run
    /// # use redlatch::{LockClient, Error};
    /// # fn example(client: &LockClient) -> Result<(), Error> {
    /// let lock = client.request("orders:42").fenced().keep_alive().lock()?;
    /// let token = lock.fencing_token();
    /// # let _ = token;
    /// # Ok(())
    /// # }
    /// ```
    pub fn request(&self, resource: impl AsRef<[u8]>) -> LockRequest<'_> {
        let keys = self.key(resource.as_ref());
        LockRequest::new(self, keys.map(|first| LockKeys { first, more: Vec::new() }))
    }

    /// Requests the locks of several resources at once: all of them, or none. At most 64 resources,
    /// with 63 KiB of keys in all; a resource that is named twice is locked once.
    ///
    /// ```no_run
    /// # use redlatch::{Error, LockClient};
    /// # fn transfer() {}
    /// # fn example(client: &LockClient) -> Result<(), Error> {
    /// let locks = client.request_all(["account:1", "account:2"]).lock()?;
    /// transfer();
    /// drop(locks); // releases both
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// On each node, one script locks all of them or none, and a majority of such nodes decides.
    /// One guard with one validity holds all of them; it extends and releases them together.
    /// Requests for the same resources in another order, or for some of them, cannot deadlock:
    /// no client holds some while it waits for others.
    ///
    /// A set that waits stands in the [nodes' queue](crate::guide::guarantees#sets-in-the-queue) of
    /// each of its resources, with one number in all of them. While the others are held, those that
    /// are free are reserved for it, until it has waited for one ttl of this request. Then it waits
    /// for the one that it lacks alone, with its number, and others have the rest; when that one is
    /// reserved for it, it waits for all again, as the first.
    ///
    /// This is a two-phase commit with the keys' expiry as its time-out. The script prepares: all
    /// keys of a node, or none. The majority commits. After a failed attempt, a removal rolls back;
    /// where it does not arrive, the ttl does, so that no node is in doubt for longer than that.
    ///
    /// On a [ZooKeeper ensemble](crate::guide::zookeeper), one transaction puts a set into all its
    /// queues. It keeps its place for as long as it waits, and what is said here of a ttl and of
    /// clusters does not apply.
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
}

impl LockClient {
    /// The key of a resource.
    pub(super) fn key(&self, resource: &[u8]) -> Result<Arc<[u8]>, ResourceError> {
        if resource.is_empty() {
            return Err(ResourceError::Empty);
        }
        check_length(self.core.key_prefix.len() + resource.len())?;
        let key: Arc<[u8]> = self.core.key_prefix.iter().chain(resource).copied().collect();
        if is_reserved(&key) || !self.core.backend.has_place_for(&key) {
            return Err(ResourceError::Reserved);
        }
        Ok(key)
    }

    /// The keys of several resources, each once, in the order of their bytes.
    pub(super) fn keys<I: IntoIterator<Item: AsRef<[u8]>>>(
        &self,
        resources: I,
    ) -> Result<LockKeys, ResourceError> {
        let mut keys = BTreeSet::new();
        for (index, resource) in resources.into_iter().enumerate() {
            // An endless iterator must not be read to its end.
            if index >= RESOURCES_MAX {
                return Err(ResourceError::TooMany { count: index + 1, most: RESOURCES_MAX });
            }
            keys.insert(self.key(resource.as_ref())?);
        }
        check_length(keys.iter().map(|key| key.len()).sum())?;
        let first = keys.pop_first().ok_or(ResourceError::None)?;
        Ok(LockKeys { first, more: keys.into_iter().collect() })
    }
}

/// Checks the length of a key, of all keys of a set, or of a pattern of keys.
pub(super) fn check_length(length: usize) -> Result<(), ResourceError> {
    let most = KEY_MAX;
    if length > most { Err(ResourceError::TooLong { length, most }) } else { Ok(()) }
}
