//! Settings about names: of keys, and of connections.

use super::Builder;

/// The longest prefix: about half of the longest key.
pub(super) const KEY_PREFIX_MAX: usize = 32 * 1024;

/// Could this key belong to another lock, as its fencing counter, its queue, or a waiter's lease or
/// holders? Their keys are the lock's key with `:redlatch:` and a suffix behind it.
pub(crate) fn is_reserved(key: &[u8]) -> bool {
    const INFIX: &[u8] = b":redlatch:";
    key.windows(INFIX.len()).any(|part| part == INFIX)
}

impl Builder {
    /// The prefix of every lock's key, before the resource's name. By default it is empty, so that
    /// the lock also excludes other programs that lock the same name with `SET name value NX PX
    /// ttl`. At most 32 KiB, without `:redlatch:` in it: such keys belong to other locks.
    ///
    /// On ZooKeeper the prefix and the name are one element of a path, with what servers refuse
    /// there percent-encoded.
    pub fn key_prefix(mut self, prefix: impl AsRef<[u8]>) -> Self {
        self.key_prefix = prefix.as_ref().to_vec();
        self
    }

    /// The name of our connections in `CLIENT LIST`: printable ASCII, no spaces, by default
    /// `redlatch`. On ZooKeeper it has no effect.
    pub fn client_name(mut self, name: impl Into<String>) -> Self {
        self.client_name = Some(name.into());
        self
    }
}
