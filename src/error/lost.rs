//! The loss of a lock: of which, and why.

use crate::name::Name;
use std::error::Error;
use std::fmt;
use std::sync::Arc;

/// The lock is not held any more.
///
/// Its text names the lock: `the lock "orders:42" is lost: its validity has passed`.
#[derive(Clone, PartialEq, Eq)]
pub struct LockLost {
    resource: Arc<[u8]>,
    reason: LossReason,
}

impl LockLost {
    pub(crate) fn new(resource: impl Into<Arc<[u8]>>, reason: LossReason) -> Self {
        Self { resource: resource.into(), reason }
    }

    /// The name of the resource whose lock was lost; the first of them, if there are
    /// [several](crate::LockGuard::resources).
    #[must_use]
    pub fn resource(&self) -> Name<'_> {
        Name::new(&self.resource)
    }

    /// How it was lost.
    #[must_use]
    pub fn reason(&self) -> LossReason {
        self.reason
    }
}

impl fmt::Display for LockLost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (resource, reason) = (self.resource(), self.reason);
        let is = if reason == LossReason::OtherProcess { "not held here" } else { "lost" };
        write!(f, "the lock {resource:?} is {is}: {reason}")
    }
}

impl Error for LockLost {}

/// How a lock was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LossReason {
    /// Its validity has passed: its ttl, or on ZooKeeper the time for which its session may be
    /// relied on.
    Expired,
    /// A majority of the nodes no longer has its key: they lost it, or granted the lock to another
    /// client. On ZooKeeper, its session has ended, or its znode was removed.
    Gone,
    /// This is a forked child of the process that acquired the lock. That one may still hold it.
    OtherProcess,
}

impl fmt::Display for LossReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Expired => "its validity has passed",
            Self::Gone => "no majority of nodes holds its key any more",
            Self::OtherProcess => "the process that forked this one acquired it",
        })
    }
}
