//! How a lock was released.

/// How a lock was released.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "it says whether the lock was held to the end"]
#[expect(clippy::exhaustive_enums, reason = "it was in time or it was not")]
pub enum Released {
    /// It was held to the end: a majority of nodes still held it, or, if it was handed to another
    /// thread of this client, its validity had not passed.
    InTime,
    /// Its validity had passed, or no majority of nodes held it any more: another client may have
    /// held it while this one still worked.
    TooLate,
}
