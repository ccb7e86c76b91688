//! Who asks for a lock, and who took it. The simulator compiles this file too.

use crate::cancel_token::CancelToken;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::task::Waker;
use std::thread::{self, ThreadId};

/// Who enters a wait queue.
#[derive(Clone, Copy)]
pub(crate) struct Caller<'a> {
    /// A token that cancels its wait, besides the client's.
    pub(crate) token: Option<&'a CancelToken>,
    /// The thread for which it asks, if for one in particular.
    pub(crate) thread: Option<ThreadId>,
    /// If no thread waits: how it is woken.
    pub(crate) started: Option<StartedCaller<'a>>,
}

/// A call that waits without a thread.
#[derive(Clone, Copy)]
pub(crate) struct StartedCaller<'a> {
    /// It runs no user's code: it is called with the queues locked.
    pub(crate) waker: &'a Waker,
    /// Does nobody wait for the call any more?
    pub(crate) is_dropped: &'a Arc<AtomicBool>,
}

/// The thread that asks for a lock, or took it: another one may have the guard by now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Taker {
    /// `None`: it was for no thread in particular.
    pub(crate) thread: Option<ThreadId>,
    /// Only this thread gives the lock up, and not before the work that it does under it has ended.
    pub(crate) is_bound: bool,
}

impl Taker {
    pub(crate) fn bound_to_this_thread() -> Self {
        Self {
            thread: Some(thread::current().id()),
            is_bound: true,
        }
    }
}
