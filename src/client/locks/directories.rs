//! Listing the locks on a ZooKeeper ensemble, whose directories are below one root.

use super::{FoundLock, Locks};
use crate::core::Ensemble;
use crate::error::Error;
use redlatch_protocol::glob;

/// In how many directories a server is asked at a time whether somebody is there.
const BATCH: usize = 200;

impl Locks<'_> {
    /// Reads the next names, if there are any.
    pub(super) fn read_directories(
        &mut self,
        ensemble: &Ensemble,
        pattern: &[u8],
    ) -> Result<(), Error> {
        let Some(directories) = &mut self.directories else {
            let mut all = ensemble.directories().map_err(Error::NoQuorum)?;
            let core = &self.client.core;
            // What cannot be the lock of any client is no lock.
            let is_lock = |key: &[u8]| {
                let name = key.get(core.key_prefix.len()..).filter(|name| !name.is_empty());
                name.is_some_and(|name| self.client.key(name).is_ok())
            };
            all.retain(|it| glob::is_listed(pattern, &it.key) && is_lock(&it.key));
            self.directories = Some(all);
            return Ok(());
        };
        let batch = directories.split_off(directories.len().saturating_sub(BATCH));
        if batch.is_empty() {
            self.is_over = true;
            return Ok(());
        }
        let inhabited = ensemble.inhabited(batch).map_err(Error::NoQuorum)?;
        let prefix = self.client.core.key_prefix.len();
        for directory in inhabited {
            let lock = FoundLock { name: directory.key[prefix..].into() };
            // The queue and the shares are one lock's.
            if self.known.insert(lock.clone()) {
                self.found.push(lock);
            }
        }
        Ok(())
    }
}
