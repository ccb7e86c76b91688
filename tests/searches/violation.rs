//! The properties that are checked.

/// What must never happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Violation {
    /// An exclusive holder beside any other holder.
    TwoHolders,
    /// Two holders of one slot.
    SlotTwice,
    /// More holders of permits than there are permits.
    TooManyPermits,
    /// A waiter who had joined a majority before another began is served after it, where they
    /// exclude each other.
    Overtaken,
    /// Somebody waits although only shares are held that do not exclude it, and although nobody
    /// is before it in the queue whom they exclude.
    WaitsForShares,
    /// A waiter is never served.
    WaitsForEver,
    /// Nobody holds the lock for longer than others can delay those who wait for it.
    LiesFree,
    /// There is something left on a node at the end.
    Residue,
}
