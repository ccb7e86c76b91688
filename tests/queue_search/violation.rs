//! The properties that are checked.

/// What must never happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Violation {
    TwoHolders,
    /// A waiter who had joined a majority before another began is served after it.
    Overtaken,
    /// A waiter is never served.
    WaitsForEver,
    /// There is something left on a node at the end.
    Residue,
}
