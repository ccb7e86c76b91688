//! What a replicated group is asked about its reign.

use std::sync::Arc;

/// Asks a replicated group in whose reign it is, by its marker in this key. `node::group` has the
/// rule that needs the answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReignQuestion {
    pub key: Arc<[u8]>,
    pub step: ReignStep,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReignStep {
    /// Write the marker, unless it is of this reign and no lower epoch: once for a connection.
    Greet {
        run_id: Arc<str>,
        epoch: u64,
        nonce: Arc<str>,
        /// The marker that the client was greeted with last, on whatever connection; at first none.
        last: Arc<str>,
        /// Does the age of the reign count from when a majority of the group vouches for it?
        is_vouched: bool,
    },
    /// Write into the marker with this nonce that a majority has vouched for the reign.
    Confirm { run_id: Arc<str>, nonce: Arc<str> },
    /// Write the marker with this nonce once more, as it is: a write that replicas acknowledge.
    Touch { run_id: Arc<str>, nonce: Arc<str> },
    /// Answer when that many replicas have acknowledged what was written before, or at this time.
    Wait { replicas: usize, millis: u64 },
    /// Answer in whose reign the commands before this one were carried out.
    Check,
}
