//! Registers of the library's own, such as the records of transactions.

use super::Register;
use crate::client::LockClient;
use crate::error::RegisterError;
use crate::registers::RegisterKeys;
use std::sync::Arc;

impl LockClient {
    /// The register with a name that users' registers cannot have: it contains `:redlatch:`.
    pub(in crate::client) fn reserved_register(&self, name: &[u8]) -> Register {
        let prefix = &self.core.key_prefix[..];
        let lock = Arc::from([prefix, name].concat());
        Register { client: self.clone(), keys: RegisterKeys::new(prefix, name), lock }
    }
}

impl Register {
    /// Creates it with this value, in one round. Nobody else may give it one before: see
    /// [`Change::create`](crate::registers::Change::create).
    pub(in crate::client) fn create(&self, value: &[u8]) -> Result<(), RegisterError> {
        self.run_first(|draft| super::put(draft, Some(value.to_vec()))).map(|_| ())
    }

    /// As [`change`](Self::change), with a result. The value is written only if it becomes another
    /// one, and not if the change fails.
    pub(in crate::client) fn update<T>(
        &self,
        mut change: impl FnMut(&mut Option<Vec<u8>>) -> Result<T, RegisterError>,
    ) -> Result<T, RegisterError> {
        let updated = self.run(|draft| {
            let before = draft.current().map(|value| value.bytes().to_vec());
            let mut after = before.clone();
            let result = change(&mut after)?;
            if after != before {
                super::put(draft, after)?;
            }
            Ok(result)
        })?;
        Ok(updated.0)
    }
}
