//! The results of a transaction, one for each operation.

use super::opcode;
use super::server_error::ServerError;
use super::stat::Stat;
use crate::jute::{JuteError, Reader};

/// What became of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OperationResult<'a> {
    /// The znode was created, with this path.
    Created(&'a str),
    /// The delete or check was carried out.
    Done,
    /// The transaction was not carried out. `None`: not because of this operation.
    Failed(Option<ServerError>),
}

/// The results of a transaction in the order of its operations. They were checked when the reply
/// was decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Results<'a> {
    bytes: &'a [u8],
    count: usize,
}

impl<'a> Results<'a> {
    /// Reads `count` results and the header behind them.
    pub(super) fn read(reader: &mut Reader<'a>, count: usize) -> Result<Self, JuteError> {
        let start = reader.rest();
        let mut failed = 0;
        for _ in 0..count {
            let result = read_one(reader)?.ok_or(JuteError::BadResults)?;
            failed += usize::from(matches!(result, OperationResult::Failed(_)));
        }
        // All or none.
        if read_one(reader)?.is_some() || (failed != 0 && failed != count) {
            return Err(JuteError::BadResults);
        }
        Ok(Self { bytes: &start[..start.len() - reader.rest().len()], count })
    }

    pub fn iter(&self) -> impl Iterator<Item = OperationResult<'a>> + use<'a> {
        let mut reader = Reader::new(self.bytes);
        // The errors were returned when the reply was decoded.
        (0..self.count).map_while(move |_| read_one(&mut reader).ok().flatten())
    }

    /// The error that stopped the transaction; `None` if it was carried out.
    pub fn error(&self) -> Option<ServerError> {
        self.failure().map(|(_, error)| error)
    }

    /// The same with the place of the operation that has failed, from 0. If no operation says why,
    /// it is the first.
    pub fn failure(&self) -> Option<(usize, ServerError)> {
        let mut failed = false;
        for (place, result) in self.iter().enumerate() {
            match result {
                OperationResult::Failed(Some(ServerError::RuntimeInconsistency) | None) => {
                    failed = true;
                }
                OperationResult::Failed(Some(error)) => return Some((place, error)),
                OperationResult::Created(_) | OperationResult::Done => {}
            }
        }
        failed.then_some((0, ServerError::RuntimeInconsistency))
    }
}

/// One result; `None` at the header behind the last one.
fn read_one<'a>(reader: &mut Reader<'a>) -> Result<Option<OperationResult<'a>>, JuteError> {
    let code = reader.int()?;
    let is_last = reader.boolean()?;
    let _error = reader.int()?;
    if is_last {
        return Ok(None);
    }
    Ok(Some(match code {
        // A create2 is answered as a create was, without a stat. A container has one.
        opcode::CREATE => OperationResult::Created(reader.text()?),
        opcode::CREATE2 | opcode::CREATE_CONTAINER => {
            let path = reader.text()?;
            Stat::read(reader)?;
            OperationResult::Created(path)
        }
        opcode::DELETE | opcode::CHECK => OperationResult::Done,
        opcode::ERROR => OperationResult::Failed(ServerError::of_code(reader.int()?)),
        _ => return Err(JuteError::BadResults),
    }))
}
