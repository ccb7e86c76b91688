//! What tests of calls need.

use super::{Backend, Cancellation};
use crate::cancel_token::CancelToken;
use crate::owner_process::OwnerProcess;
use crate::wait_queue::{HandoffLimit, WaitQueues};
use std::sync::{Arc, Weak};

/// Of a client that has no backend of this kind any more.
pub(crate) fn cancellation<B: Backend + 'static>() -> Arc<Cancellation> {
    let token = CancelToken::new();
    let process = Arc::new(OwnerProcess::here());
    let queues = [(); 3].map(|()| {
        let process = Arc::clone(&process);
        let limit = HandoffLimit::DEFAULT;
        Arc::new(WaitQueues::new(limit, token.clone(), process))
    });
    Cancellation::new(token, queues, Weak::<B>::new(), process)
}
