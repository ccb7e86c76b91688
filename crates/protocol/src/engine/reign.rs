//! What a replicated group is asked about its reign.

use std::sync::Arc;
use std::time::Duration;

/// Asks a replicated group in whose reign it is, by its marker in this key. `node::group` has the
/// rules that need the answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReignQuestion {
    pub key: Arc<[u8]>,
    /// Of a group whose replicas acknowledge each vote.
    pub acknowledged: Option<Acknowledgements>,
    pub step: ReignStep,
}

/// What the clients of a group assume whose replicas acknowledge each vote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Acknowledgements {
    /// How many replicas it has.
    pub replicas: u32,
    /// How long new locks do not count in a reign that is not proven.
    pub quarantine: Duration,
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
    },
    /// Write into the marker with this nonce since when the reign counts: a vote is acknowledged.
    Confirm { run_id: Arc<str>, nonce: Arc<str> },
    /// Write into the marker with this nonce that nothing is missing: the servers have proven it.
    Prove { run_id: Arc<str>, nonce: Arc<str> },
    /// Write the marker once more, as it is: a write that replicas acknowledge.
    Touch,
    /// Answer when that many replicas have acknowledged what was written before, or at this time.
    Wait { replicas: usize, millis: u64 },
    /// Answer in whose reign the commands before this one were carried out.
    Check,
}
