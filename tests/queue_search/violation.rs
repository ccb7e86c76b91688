//! The properties that are checked.

/// What must never happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Violation {
    TwoHolders,
    /// A waiter who had joined a majority before another began is served after it.
    Overtaken,
    /// A waiter is never served.
    WaitsForEver,
    /// Nobody holds the lock for longer than others can delay those who wait for it.
    LiesFree,
    /// There is something left on a node at the end.
    Residue,
}
