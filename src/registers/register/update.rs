//! How the library uses registers of its own, such as the records of transactions.

use super::{Register, Value, put};
use crate::error::RegisterError;
use redlatch_registers::{Change, Draft, RegisterCommand};
use std::sync::Arc;

impl Register {
    pub(in crate::registers) async fn value(&self) -> Result<Option<Value>, RegisterError> {
        let command = RegisterCommand::Read { watcher: None };
        Ok(self.look(&command).await?.value)
    }

    /// Creates it with this value, in one round. Nobody else may give it one before: see
    /// [`Change::create`](redlatch_registers::Change::create).
    pub(in crate::registers) async fn create(&self, value: &[u8]) -> Result<(), RegisterError> {
        let put = |draft: &mut Draft| put(draft, Some(value.to_vec()));
        let alone = Arc::default();
        self.run_with(&alone, Change::create, put).await?;
        Ok(())
    }

    /// Raises the last bytes of the value in place, if no other ballot is promised, and reads it.
    pub(in crate::registers) async fn raise(
        &self,
        levels: Arc<[u8]>,
    ) -> Result<Option<Value>, RegisterError> {
        let command = RegisterCommand::Raise(levels);
        Ok(self.look(&command).await?.value)
    }

    /// As [`change`](Self::change), with a result. The value is written only if it becomes another
    /// one, and not if the change fails. Nothing is remembered of it: others may
    /// [raise](Self::raise) bytes of the value, which this client must see before the next change.
    pub(in crate::registers) async fn update<T>(
        &self,
        mut change: impl FnMut(&mut Option<Vec<u8>>) -> Result<T, RegisterError>,
    ) -> Result<T, RegisterError> {
        let update = self.run_alone(|draft| {
            let before = draft.current().map(|value| value.bytes().to_vec());
            let mut after = before.clone();
            let result = change(&mut after)?;
            if after != before {
                put(draft, after)?;
            }
            Ok(result)
        });
        let (result, _) = update.await?;
        Ok(result)
    }
}
