//! The commands by which the nodes' locks are looked at, listed and removed by force. Their scripts
//! are beside them, and why each may arrive late is in `late_arrivals.md`.

#[cfg(feature = "diagnostics")]
mod listing;
mod look;
#[cfg(feature = "diagnostics")]
mod removal;
mod snapshot;

#[cfg(feature = "diagnostics")]
pub use listing::{KeyPage, Listing, SCAN};
pub use look::{INSPECT, Look};
#[cfg(feature = "diagnostics")]
pub use removal::{ForcedRemoval, REMOVE};
pub use snapshot::{HolderSnapshot, KeySnapshot, LISTED_MAX, SHOWN_MAX, WaiterSnapshot};

#[cfg(feature = "diagnostics")]
use crate::engine::Script;

/// The scripts, in the order of their numbers.
#[cfg(feature = "diagnostics")]
pub const ALL: [Script; 3] = [REMOVE, INSPECT, SCAN];

/// The number of the first one, among those of custom commands.
const FIRST: u32 = 7;

#[cfg(test)]
mod tests;
