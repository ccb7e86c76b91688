//! The limits of handoffs within a client.

use std::time::Duration;

/// How often in a row, and for how long, a lock may be handed off before other processes get a
/// chance.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HandoffLimit {
    pub(crate) count: u32,
    pub(crate) time: Duration,
    /// For how long if another client is known to wait.
    pub(crate) awaited: Duration,
}

impl HandoffLimit {
    pub(crate) const DEFAULT: Self =
        Self { count: 1_000, time: Duration::from_secs(1), awaited: Duration::from_millis(10) };
}
