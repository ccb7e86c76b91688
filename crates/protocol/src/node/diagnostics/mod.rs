//! What a server says of itself when an operator asks, and what follows from it. No lock depends on
//! any of this.

mod durability;
mod examination;
#[cfg(feature = "groups")]
mod group_clocks;
mod host;
#[cfg(feature = "groups")]
mod sentinels;
mod status;
mod warning;

pub use durability::Durability;
pub(super) use examination::Examination;
pub use examination::{ClockDifference, ClockReading, CrashLoss, Fsync, Memory};
pub use examination::{Persistence, Role};
#[cfg(feature = "groups")]
pub use group_clocks::ServerClock;
pub use host::Host;
#[cfg(feature = "groups")]
pub use sentinels::{SentinelAnswer, SentinelAnswers};
pub use status::{GroupStatus, NodeStatus};
pub use warning::{NodeWarning, Standards, add_warnings};
