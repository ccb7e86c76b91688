//! Who waits in a call that acquires a lock: its thread, or nobody, if it was started.

use super::{Backend, EventRecorder, LockSpec, Start};
use crate::engine::HeldLock;
use crate::error::Error;
use crate::wait_queue::{Joined, WaitQueues};
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

pub(crate) trait Waiting {
    /// Is set when nobody waits for the call any more. Only of calls that were started.
    fn is_dropped(&self) -> Option<&Arc<AtomicBool>>;

    /// Stands in a queue of this process, until the call is its head. `round` is how long it takes
    /// at most to ask the nodes.
    fn stand(
        &self,
        queues: &Arc<WaitQueues>,
        key: &Arc<[u8]>,
        round: Duration,
        spec: &LockSpec<'_>,
    ) -> impl Future<Output = Joined> + Send;

    /// As [`Backend::acquire`].
    fn acquire(
        &self,
        backend: &dyn Backend,
        spec: &LockSpec<'_>,
        start: &mut Start,
        recorder: Option<&mut EventRecorder<'_>>,
    ) -> impl Future<Output = Result<Option<HeldLock>, Error>> + Send;
}
