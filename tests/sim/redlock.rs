//! A call that acquires a lock: the library's own main loop, in a thread that runs as a future.

#[path = "../../src/redlock/call.rs"]
#[allow(dead_code, reason = "a simulated call does not look what its lock is")]
mod call;
mod other_data;

use crate::backend::{CancellableCall, EventRecorder, LockSpec};
use crate::owner_process::OwnerProcess;
use crate::task::{Line, Task};
use crate::wait_queue::HeadHandle;
use call::Call;
pub(crate) use call::NodesCaller;
use other_data::LastLooks;
use redlatch_protocol::engine::{Acquire, Acquired, Rules};
use std::sync::Arc;

/// A thread that runs this machine.
pub(crate) fn acquire(
    mut acquire: Acquire,
    head: Option<HeadHandle>,
    rules: Arc<Rules>,
) -> Task<Acquired> {
    let line = Line::default();
    let caller = line.clone();
    Task::new(line, async move {
        let spec = LockSpec {
            call: CancellableCall { line: &caller },
        };
        let mut recorder = EventRecorder::default();
        let owner_process = OwnerProcess::here();
        let mut call = Call {
            caller: &caller,
            spec: &spec,
            head: head.as_ref(),
            recorder: Some(&mut recorder),
            rules: &rules,
            owner_process: &owner_process,
            last_looks: &LastLooks,
            looked: None,
            reports: Vec::new(),
        };
        match call.run(&mut acquire).await {
            Ok(outcome) => outcome,
            Err(never) => match never {},
        }
    })
}
