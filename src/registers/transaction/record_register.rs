//! The register that has the record of a transaction, as each side reads and changes it.

use crate::error::{RegisterError, TransactionError};
use crate::registers::register::{Caller, Register, Value};
use redlatch_registers::transaction::{InvalidRecord, Record, TransactionId, UnknownName, VOTED};
use std::time::Duration;

/// The register that has the record of a transaction.
pub(super) struct RecordRegister<'a> {
    pub(super) caller: Caller<'a>,
    pub(super) id: TransactionId,
    pub(super) register: Register,
}

impl RecordRegister<'_> {
    /// Changes the record. What is not changed is not written.
    pub(super) async fn change<T>(
        &self,
        mut change: impl FnMut(&mut Option<Record>) -> Result<T, UnknownName>,
    ) -> Result<T, TransactionError> {
        let update = self.register.update(|bytes| {
            let mut record = read(bytes.as_deref())?;
            let result = change(&mut record);
            if result.is_ok() {
                *bytes = record.as_ref().map(Record::to_bytes);
            }
            Ok(result)
        });
        let changed = update.await?;
        self.check_group().await?;
        Ok(changed?)
    }

    pub(super) async fn look(&self) -> Result<Option<Record>, TransactionError> {
        let value = self.register.value().await?;
        self.seen(value.as_ref()).await
    }

    /// Notes that these sides have come so far, and returns the record: in place, in one round, or
    /// by a change if the record was not seen, or another ballot was promised for it.
    pub(super) async fn raise(
        &self,
        seen: Option<&Record>,
        names: &[&str],
        to: u8,
    ) -> Result<Option<Record>, TransactionError> {
        if let Some(seen) = seen {
            let raised = self.register.raise(seen.raised(names, to)?).await?;
            let record = self.seen(raised.as_ref()).await?;
            let is_done = record
                .as_ref()
                .map_or(Ok(true), |record| record.have(names, to))?;
            if is_done {
                return Ok(record);
            }
        }
        let change = self.change(|record| {
            for name in names {
                match to {
                    VOTED => Record::vote(record, name)?,
                    _ => Record::finish(record, name)?,
                };
            }
            Ok(record.clone())
        });
        change.await
    }

    /// Waits until the record is as it is wanted, for up to `wait`, and looks.
    pub(super) async fn wait_until(
        &self,
        wait: Duration,
        is_wanted: impl Fn(Option<&Value>) -> bool,
    ) -> Result<Option<Record>, TransactionError> {
        let value = self.register.wait_until(wait, is_wanted).await?;
        self.seen(value.as_ref()).await
    }

    async fn seen(&self, value: Option<&Value>) -> Result<Option<Record>, TransactionError> {
        self.check_group().await?;
        Ok(read(value.map(Value::bytes))?)
    }

    /// Are the nodes the group that the id names, also after what was asked last? They may have
    /// lost their data and have been formed anew meanwhile: in that group there is no record, which
    /// means nothing.
    pub(super) async fn check_group(&self) -> Result<(), TransactionError> {
        if self.register.nodes()?.group().await?.id == self.id.group() {
            return Ok(());
        }
        Err(TransactionError::OtherGroup { id: self.id })
    }
}

/// The record in a register. `None`: the register has no value, or all have finished.
pub(super) fn read(bytes: Option<&[u8]>) -> Result<Option<Record>, RegisterError> {
    bytes
        .map_or(Ok(None), Record::read)
        .map_err(|InvalidRecord { format, .. }| RegisterError::OtherFormat { url: None, format })
}
