//! What a process does that takes part in transactions.

use redlatch_registers::transaction::{Disk, TransactionId};

/// How a transaction has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(
    clippy::exhaustive_enums,
    reason = "code that acts on it must know all"
)]
pub enum Decision {
    /// Each participant has changed, or will before it does anything else.
    Committed,
    /// No participant has changed.
    Aborted,
    /// It is over, and how it has ended is not known any more; or it never was. **Its change may
    /// have been made**, so do not make it again before you have looked: a participant that keeps
    /// the ids of its changes has this one if it was committed, and only then.
    Over,
}

/// One side of a transaction: what only this process can do, usually with a database of its own.
///
/// Each step must be durable when it returns, and each may come again after a crash: then it does
/// what is missing, or nothing. The library calls them in this order, where each arrow is a change
/// of the transaction's record in between:
///
/// ```text
///   prepare ──▶ commit ──▶ forget
///          └──▶ roll_back
/// ```
///
/// What fails, but for `prepare`, could not be done now: it stays as it was, and is repeated.
///
/// Between `prepare` and what follows, weeks may pass: nobody but the record can say how the
/// transaction ends. So what is prepared must stay possible, such as goods that are set aside.
pub trait Participant {
    /// Why a step failed.
    type Error;

    /// Makes the change ready, invisible to others, and notes the id. After `Ok`, both
    /// [`commit`](Self::commit) and [`roll_back`](Self::roll_back) must be possible, also after a
    /// crash. An error means that this side cannot take part, and the transaction is aborted unless
    /// another process of this side takes part in it.
    ///
    /// Fails, or does nothing, if the id is prepared or committed already. If several processes may
    /// be asked to join the same transaction, it fails also if the id was committed and forgotten:
    /// keep the ids of the changes.
    fn prepare(&mut self, id: &TransactionId) -> Result<(), Self::Error>;

    /// Makes the change, and notes in the same step that the id is committed and not prepared any
    /// more. Does nothing if nothing is prepared under the id.
    fn commit(&mut self, id: &TransactionId) -> Result<(), Self::Error>;

    /// Undoes what was prepared, and removes the id in the same step. Does nothing if nothing is
    /// prepared under the id.
    fn roll_back(&mut self, id: &TransactionId) -> Result<(), Self::Error>;

    /// The ids that are prepared, and neither committed nor rolled back.
    fn prepared(&mut self) -> Result<Vec<TransactionId>, Self::Error>;

    /// The ids that are committed and not forgotten. Without them, a crash between the commit and
    /// the change of the record would leave a record for ever; and an id that is here must not be
    /// among the [prepared](Self::prepared), since its record may be gone, which means aborted.
    fn committed(&mut self) -> Result<Vec<TransactionId>, Self::Error>;

    /// Removes a committed id: the record knows that this side has finished.
    fn forget(&mut self, id: &TransactionId) -> Result<(), Self::Error>;
}

/// What the participant's disk says of a transaction.
pub(super) fn disk<P: Participant + ?Sized>(
    participant: &mut P,
    id: &TransactionId,
) -> Result<Disk, P::Error> {
    // In the order in which an id moves: one that another process commits between the two answers
    // is not taken for one that is not there.
    let is_prepared = participant.prepared()?.contains(id);
    if participant.committed()?.contains(id) {
        return Ok(Disk::Committed);
    }
    Ok(if is_prepared {
        Disk::Prepared
    } else {
        Disk::Nothing
    })
}
