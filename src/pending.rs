//! A call that goes on without a thread: what its caller has of it.

mod slot;
mod sync;

use crate::core::{Core, Handle};
use crate::driver::{Driven, Task, Work};
use crate::error::Error;
use slot::Slot;
use std::any::Any;
use std::fmt;
use std::future::Future;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

/// A call that goes on without a thread: awaited in a task of any executor, or ended by a callback
/// in a program that has none. [`LockRequest::lock_async`](crate::LockRequest::lock_async) and its
/// siblings make one, and so does [`LockGuard::release_async`](crate::LockGuard::release_async).
///
/// It begins when it is first polled, or by [`then`](Self::then): until then nothing is sent, and
/// it has no place in any queue. From then on it does what a thread does that calls
/// [`lock`](crate::LockRequest::lock), in order with such threads. One thread for all such calls of
/// a client, `redlatch-wait`, goes on with it; the first call starts that thread. It keeps its
/// client, as a guard does.
///
/// Dropping it cancels the wait for a lock, as
/// [`CancelToken::cancel`](crate::CancelToken::cancel) does for this one alone: nothing is left on
/// the nodes, and a lock that was granted in the same moment is released, or goes to the next that
/// waits for it. A release goes on.
///
/// It belongs to no thread, unless the request [names one](crate::LockRequest::for_thread), so
/// [`Error::HeldByThisThread`] is not returned: a task that holds a lock and waits for the same one
/// waits for itself. If a callback of the client's [listener](crate::Builder::on_event) panics, the
/// call ends, and the panic continues where it is polled.
#[must_use = "it does nothing until it is polled"]
pub struct Pending<T> {
    core: Arc<Core>,
    stage: Stage<T>,
    /// Dropped after the call was cancelled.
    _handle: Handle,
}

enum Stage<T> {
    New(Start<T>),
    /// The call of this number goes on, or its result is there.
    Begun {
        slot: Arc<Slot<Finished<T>>>,
        number: u64,
    },
    Over,
}

/// What begins a call.
struct Start<T> {
    call: Box<dyn FnOnce(Driven) -> Call<T> + Send>,
    fetched: Fetched<T>,
}

pub(crate) type Call<T> = Work<'static, Result<T, Error>>;

/// Looks at a result when it is fetched, which may be long after it came.
pub(crate) type Fetched<T> = Box<dyn FnOnce(T) -> Result<T, Error> + Send>;

/// A call that has ended, or panicked.
struct Finished<T> {
    result: Result<Result<T, Error>, Panic>,
    fetched: Fetched<T>,
    /// Of the driver, which must not drop the last reference.
    core: Arc<Core>,
}

type Panic = Box<dyn Any + Send>;

impl<T: Send + 'static> Pending<T> {
    pub(crate) fn new(
        core: &Arc<Core>,
        call: Box<dyn FnOnce(Driven) -> Call<T> + Send>,
        fetched: Fetched<T>,
    ) -> Self {
        Self {
            core: Arc::clone(core),
            stage: Stage::New(Start { call, fetched }),
            _handle: Handle::new(core),
        }
    }

    pub(crate) fn has_begun(&self) -> bool {
        !matches!(self.stage, Stage::New(_))
    }

    /// Begins the call now, if it has not begun, and has `done` called with its result, once.
    ///
    /// `done` is called in the thread of [`LockGuard::on_lost`](crate::LockGuard::on_lost), where
    /// one callback runs after another: it may use the client and may panic, and it must not wait
    /// for another callback. Only if the call cannot begin because the operating system refuses a
    /// thread, or in a forked child, it is called in this thread, before this returns. If a
    /// callback of the client's listener panics, the call ends without a result, and `done` is
    /// dropped.
    ///
    /// The call cannot be dropped any more. A [token](crate::LockRequest::cancelled_by) ends it.
    pub fn then(mut self, done: impl FnOnce(Result<T, Error>) + Send + 'static) {
        if let Err(error) = self.begin_with_callback() {
            return done(Err(error));
        }
        let stage = mem::replace(&mut self.stage, Stage::Over);
        let Stage::Begun { slot, .. } = stage else {
            panic!("`Pending` has a callback after it was ready");
        };
        slot.call(Box::new(move |finished: Finished<T>| {
            let notifier = Arc::clone(&finished.core.notifier);
            notifier.call(Box::new(move || done(finished.fetch())));
        }));
    }

    /// As [`begin`](Self::begin). The thread that will call back runs before anything is sent: who
    /// is granted a lock is told so there, or nothing has begun.
    fn begin_with_callback(&mut self) -> Result<(), Error> {
        if self.core.is_forked() {
            return Err(Error::OtherProcess);
        }
        self.core.notifier.start().map_err(Error::Spawn)?;
        self.begin()
    }

    /// Begins the call, if it has not begun.
    fn begin(&mut self) -> Result<(), Error> {
        if self.core.is_forked() {
            return Err(Error::OtherProcess);
        }
        let start = match mem::replace(&mut self.stage, Stage::Over) {
            Stage::New(start) => start,
            begun => {
                self.stage = begun;
                return Ok(());
            }
        };
        let slot = Arc::new(Slot::new());
        let running = Running {
            call: None,
            slot: Arc::clone(&slot),
            rest: Some((start.fetched, Arc::clone(&self.core))),
        };
        let driver = self.core.backend.driver();
        let begun = driver.begin(|driven| running.task((start.call)(driven)));
        self.stage = Stage::Begun {
            slot,
            number: begun.map_err(Error::Spawn)?,
        };
        if self.core.is_known_forked() {
            return Err(Error::OtherProcess);
        }
        Ok(())
    }
}

impl<T: Send + 'static> Future for Pending<T> {
    type Output = Result<T, Error>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if let Err(error) = self.begin() {
            self.stage = Stage::Over;
            return Poll::Ready(Err(error));
        }
        let Stage::Begun { slot, .. } = &self.stage else {
            panic!("`Pending` was polled after it was ready");
        };
        let Poll::Ready(finished) = slot.poll(context.waker()) else {
            return Poll::Pending;
        };
        self.stage = Stage::Over;
        Poll::Ready(finished.fetch())
    }
}

impl<T> Drop for Pending<T> {
    fn drop(&mut self) {
        let Stage::Begun { slot, number, .. } = &self.stage else {
            return;
        };
        // A thread that does not exist in a forked child may hold the mutex.
        if self.core.is_forked() {
            return;
        }
        slot.abandon();
        self.core.backend.driver().cancel(*number);
    }
}

impl<T> fmt::Debug for Pending<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stage = match self.stage {
            Stage::New(_) => "not begun",
            Stage::Begun { .. } => "begun",
            Stage::Over => "over",
        };
        f.debug_struct("Pending")
            .field("stage", &stage)
            .finish_non_exhaustive()
    }
}

impl<T> Finished<T> {
    /// # Panics
    ///
    /// The call has panicked: that goes on here.
    fn fetch(self) -> Result<T, Error> {
        match self.result {
            Ok(result) => (self.fetched)(result?),
            Err(panic) => resume_unwind(panic),
        }
    }
}

/// A call on its way, as the driver has it.
struct Running<T> {
    call: Option<Call<T>>,
    slot: Arc<Slot<Finished<T>>>,
    /// Goes with the result.
    rest: Option<(Fetched<T>, Arc<Core>)>,
}

impl<T: Send + 'static> Running<T> {
    fn task(mut self, call: Call<T>) -> Task {
        self.call = Some(call);
        Box::pin(self)
    }
}

impl<T> Running<T> {
    fn finish(&mut self, result: Result<Result<T, Error>, Panic>) {
        if let Some((fetched, core)) = self.rest.take() {
            // In a child that a callback has forked, nobody waits, and a thread that does not exist
            // may hold the mutex.
            if core.is_known_forked() {
                return;
            }
            self.slot.fill(Finished {
                result,
                fetched,
                core,
            });
        }
    }
}

impl<T> Future for Running<T> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        let Some(call) = &mut this.call else {
            return Poll::Ready(());
        };
        let polled = catch_unwind(AssertUnwindSafe(|| call.as_mut().poll(context)));
        let result = match polled {
            Ok(Poll::Pending) => return Poll::Pending,
            Ok(Poll::Ready(result)) => Ok(result),
            Err(panic) => Err(panic),
        };
        this.call = None;
        this.finish(result);
        Poll::Ready(())
    }
}

impl<T> Drop for Running<T> {
    fn drop(&mut self) {
        // The driver drops no call before its end, unless the event loop has panicked.
        if self.call.take().is_some() {
            let panic = "the thread that led all threads of this client panicked";
            self.finish(Err(Box::new(panic)));
        }
    }
}
