//! How a call that acquires a lock waits. Its loops are written once, as `async` functions over
//! this trait.

use crate::clock::Time;
use std::future::Future;

/// How a call waits. All else of a call is the same, whoever waits.
pub(crate) trait Caller {
    /// Pauses until `time`. Returns `true`, and early, if the call is cancelled.
    fn pause_until(&self, time: Time) -> impl Future<Output = bool>;
}
