//! The register that has the record of a transaction, as each side reads and changes it.

use crate::backend::at_once;
use crate::client::LockClient;
use crate::error::{RegisterError, TransactionError};
use crate::registers::register::{Register, Value};
use redlatch_registers::transaction::{InvalidRecord, Record, TransactionId, UnknownName, VOTED};
use std::pin::pin;
use std::time::Duration;

/// The register that has the record of a transaction.
pub(super) struct RecordRegister<'a> {
    pub(super) client: &'a LockClient,
    pub(super) id: TransactionId,
    pub(super) register: Register,
}

impl RecordRegister<'_> {
    /// Changes the record. What is not changed is not written.
    pub(super) fn change<T>(
        &self,
        mut change: impl FnMut(&mut Option<Record>) -> Result<T, UnknownName>,
    ) -> Result<T, TransactionError> {
        let changed = self.register.update(|bytes| {
            let mut record = read(bytes.as_deref())?;
            let result = change(&mut record);
            if result.is_ok() {
                *bytes = record.as_ref().map(Record::to_bytes);
            }
            Ok(result)
        })?;
        self.check_group()?;
        Ok(changed?)
    }

    pub(super) fn look(&self) -> Result<Option<Record>, TransactionError> {
        self.seen(self.register.read()?.as_ref())
    }

    /// Notes that these sides have come so far, and returns the record: in place, in one round, or
    /// by a change if the record was not seen, or another ballot was promised for it.
    pub(super) fn raise(
        &self,
        seen: Option<&Record>,
        names: &[&str],
        to: u8,
    ) -> Result<Option<Record>, TransactionError> {
        if let Some(seen) = seen {
            let raised = self.register.raise(seen.raised(names, to)?)?;
            let record = self.seen(raised.as_ref())?;
            let is_done = record
                .as_ref()
                .map_or(Ok(true), |record| record.have(names, to))?;
            if is_done {
                return Ok(record);
            }
        }
        self.change(|record| {
            for name in names {
                match to {
                    VOTED => Record::vote(record, name)?,
                    _ => Record::finish(record, name)?,
                };
            }
            Ok(record.clone())
        })
    }

    /// Waits until the record is as it is wanted, for up to `wait`, and looks.
    pub(super) fn wait_until(
        &self,
        wait: Duration,
        is_wanted: impl Fn(Option<&Value>) -> bool,
    ) -> Result<Option<Record>, TransactionError> {
        self.seen(self.register.wait_until(wait, is_wanted)?.as_ref())
    }

    fn seen(&self, value: Option<&Value>) -> Result<Option<Record>, TransactionError> {
        self.check_group()?;
        Ok(read(value.map(Value::bytes))?)
    }

    /// Are the nodes the group that the id names, also after what was asked last? They may have
    /// lost their data and have been formed anew meanwhile: in that group there is no record, which
    /// means nothing.
    pub(super) fn check_group(&self) -> Result<(), TransactionError> {
        let nodes = self.client.core.register_nodes()?;
        if at_once(pin!(nodes.group()))?.id == self.id.group() {
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
