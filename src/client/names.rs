//! The keys of resources on the nodes.

use super::LockClient;
use super::request::Keys;
use crate::config::KEY_MAX;
use crate::error::ResourceError;
use crate::node::command::COUNTER_SUFFIX;
use std::collections::BTreeSet;
use std::sync::Arc;

/// The most resources that are locked at once. A node reads all their keys in one step, and does
/// nothing else meanwhile.
const RESOURCES_MAX: usize = 64;

impl LockClient {
    /// The key of a resource.
    pub(super) fn key(&self, resource: &[u8]) -> Result<Arc<[u8]>, ResourceError> {
        let length = self.core.key_prefix.len() + resource.len();
        if resource.is_empty() {
            Err(ResourceError::Empty)
        } else if length > KEY_MAX {
            Err(ResourceError::TooLong { length, most: KEY_MAX })
        } else {
            let key: Arc<[u8]> = self.core.key_prefix.iter().chain(resource).copied().collect();
            // The key of a fencing counter: a lock with this key would replace the counter.
            if key.ends_with(COUNTER_SUFFIX) { Err(ResourceError::Reserved) } else { Ok(key) }
        }
    }

    /// The keys of several resources, each once, in the order of their bytes.
    pub(super) fn keys<I: IntoIterator<Item: AsRef<[u8]>>>(
        &self,
        resources: I,
    ) -> Result<Keys, ResourceError> {
        let mut keys = BTreeSet::new();
        for (index, resource) in resources.into_iter().enumerate() {
            // The iterator may be endless.
            if index >= RESOURCES_MAX {
                return Err(ResourceError::TooMany { count: index + 1, most: RESOURCES_MAX });
            }
            keys.insert(self.key(resource.as_ref())?);
        }
        let length = keys.iter().map(|key| key.len()).sum();
        if length > KEY_MAX {
            return Err(ResourceError::TooLong { length, most: KEY_MAX });
        }
        let first = keys.pop_first().ok_or(ResourceError::None)?;
        Ok((first, keys.into_iter().collect()))
    }
}
